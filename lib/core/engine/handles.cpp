// The public handles of what an engine makes.
#include <algorithm>
#include <utility>
#include <weft/engine.hpp>

#include "base/thread.hpp"
#include "engine/engine_state.hpp"
#include "services/file_copies.hpp"
#include "services/outside_callbacks.hpp"

namespace weft {
namespace {

/// Waits for something of an engine's, which makes progress meanwhile if that is the caller's job.
/// What outlives its engine has ended. `done` is a cheap look, `ended` the wait itself, `help` what
/// the waiting thread can do for it. An error: the handle was moved from (`weak` is null), or this
/// is a forked child.
template <typename Done, typename Wait, typename Help>
Result<bool> wait_with(const std::weak_ptr<core::EngineState>* weak, Done&& done, Wait&& ended,
                       Deadline deadline, Help&& help) {
  if (weak == nullptr) return fail(core::moved_from());
  const auto engine = weak->lock();
  if (!engine) return ended(deadline);
  if (engine->gate.forked()) return fail(core::forked_error());
  if (engine->config.progress == Progress::manual)
    return engine->workers.wait([&](Deadline until) { return done() && ended(until); }, deadline);
  if (!done()) help(*engine);
  return ended(deadline);
}

/// For the end of a transfer, or for more.
template <typename Wait>
Result<bool> wait_for(core::Submitted* transfer, Wait&& ended, Deadline deadline) {
  if (transfer != nullptr) {
    transfer->see();
    transfer->await(deadline);
  }
  return wait_with(
      transfer != nullptr ? &transfer->prepared().engine : nullptr,
      [&] { return transfer->ended(); }, ended, deadline,
      [&](core::EngineState&) { transfer->take_part(deadline); });
}

/// For what a peer sends. What is about to come is not worth two changes of threads.
template <typename Awaited>
Result<bool> wait_for_arrival(const std::shared_ptr<Awaited>& awaited, Deadline deadline) {
  return wait_with(
      awaited ? &awaited->engine : nullptr, [&] { return awaited->done(); },
      [&](Deadline until) { return awaited->wait(until); }, deadline,
      [&](core::EngineState& engine) {
        const core::CallGate::Call call(engine.gate);
        if (call.refused() || core::InCallback::now()) return;
        engine.workers.drive(
            awaited->peer->message_rail().worker(), [&] { return awaited->done(); }, deadline);
      });
}

/// Of an expectation or a receive, whose handle goes.
template <typename Awaited>
void give_up(const std::shared_ptr<Awaited>& awaited) {
  if (!awaited || !awaited->give_up()) return;
  if (const auto engine = awaited->engine.lock()) engine->messages.given_up(*awaited);
}

}  // namespace

std::string_view to_string(State state) noexcept {
  switch (state) {
    case State::active:
      return "active";
    case State::done:
      return "done";
    case State::failed:
      return "failed";
    case State::cancelled:
      return "cancelled";
    case State::timed_out:
      return "timed_out";
  }
  return "unknown";
}

Memory Memory::own(std::size_t bytes) {
  return Memory(Source::own, bytes);
}
Memory Memory::huge(std::size_t bytes, std::size_t page_bytes) {
  Memory memory(Source::huge, bytes);
  memory.page_bytes_ = page_bytes;
  return memory;
}
Memory Memory::shared(std::size_t bytes) {
  return Memory(Source::shared, bytes);
}
Memory Memory::map(int fd, std::uint64_t offset, std::size_t bytes) {
  Memory memory(Source::map, bytes);
  memory.fd_ = fd;
  memory.offset_ = offset;
  return memory;
}
Memory Memory::adopt(void* address, std::size_t bytes, std::shared_ptr<void> owner) {
  Memory memory(Source::adopt, bytes);
  memory.address_ = address;
  memory.owner_ = std::move(owner);
  return memory;
}
Memory Memory::file(std::string path, std::uint64_t offset, std::size_t bytes,
                    const FileOptions& options) {
  Memory memory = file(-1, offset, bytes, options);
  memory.path_ = std::move(path);
  return memory;
}
Memory Memory::file(int fd, std::uint64_t offset, std::size_t bytes, const FileOptions& options) {
  Memory memory(Source::file, bytes);
  memory.fd_ = fd;
  memory.offset_ = offset;
  memory.read_only_ = options.read_only;
  memory.file_ = options;
  return memory;
}

Grant::Grant(std::shared_ptr<core::GrantState> state) : state_(std::move(state)) {}
Grant::Grant(Grant&&) noexcept = default;
Grant& Grant::operator=(Grant&&) noexcept = default;
Grant::~Grant() = default;
Blob Grant::blob() const {
  return core::encode_grant(state_->current());
}
std::uint64_t Grant::lease_id() const noexcept {
  return state_->description().lease;
}
Result<void> Grant::renew(Nanoseconds ttl) {
  const auto engine = state_ ? state_->segment().engine() : nullptr;
  if (!engine) return fail(Code::closed, "the grant's engine is gone");
  return core::call(engine, [&] { return engine->grants.renew(*state_, ttl); });
}
Result<Revoked> Grant::revoke(Deadline deadline) {
  const auto engine = state_ ? state_->segment().engine() : nullptr;
  if (!engine) return fail(Code::closed, "the grant's engine is gone");
  return core::call(engine, [&] { return engine->grants.revoke(state_, deadline); });
}
Result<Revoked> Grant::fence(Deadline deadline, FenceScope reach) {
  const auto engine = state_ ? state_->segment().engine() : nullptr;
  if (!engine) return fail(Code::closed, "the grant's engine is gone");
  return core::call(engine, [&] { return engine->grants.fence(state_, deadline, reach); });
}
Error Grant::why_quarantined() const {
  if (!state_) return Error(Code::closed, "the grant was moved from");
  return state_->why_quarantined();
}

FileCopy::FileCopy(std::unique_ptr<core::FileCopyState> state) : state_(std::move(state)) {}
FileCopy::FileCopy(FileCopy&&) noexcept = default;
FileCopy& FileCopy::operator=(FileCopy&&) noexcept = default;
FileCopy::~FileCopy() = default;
bool FileCopy::ended() {
  return state_->ended();
}
Result<void> FileCopy::wait(Deadline deadline) {
  if (!state_) return fail(core::moved_from());
  if (auto outside = core::check_outside_callbacks(); !outside) return outside;
  return state_->wait(deadline);
}
void FileCopy::cancel() {
  state_->cancel();
}
bool FileCopy::quiescent() {
  return state_->quiescent();
}
Result<void> FileCopy::wait_quiescent(Deadline deadline) {
  if (!state_) return fail(core::moved_from());
  if (auto outside = core::check_outside_callbacks(); !outside) return outside;
  return state_->wait_quiescent(deadline);
}

Segment::Segment(std::shared_ptr<core::SegmentState> state) : state_(std::move(state)) {}
Segment::Segment(Segment&&) noexcept = default;
Segment& Segment::operator=(Segment&&) noexcept = default;
Segment::~Segment() = default;
std::byte* Segment::data() const noexcept {
  return state_->place().kind == MemoryKind::host ? state_->address() : nullptr;
}
std::uint64_t Segment::size() const noexcept {
  return state_->size();
}
Place Segment::place() const noexcept {
  return state_->place();
}
int Segment::fd() const noexcept {
  return state_->fd();
}
Result<Grant> Segment::grant(std::span<const Range> ranges, Rights rights, Nanoseconds ttl,
                             Keys keys) {
  const auto engine = state_ ? state_->engine() : nullptr;
  if (!engine) return fail(Code::closed, "the segment's engine is gone");
  return core::call(engine, [&] { return engine->grants.grant(state_, ranges, rights, ttl, keys); })
      .map([](auto&& grant) { return Grant(std::move(grant)); });
}
Result<void> Segment::copy_from(const Segment& source, std::span<const Pair> pairs,
                                Deadline deadline) {
  if (auto outside = core::check_outside_callbacks(); !outside) return outside;
  return begin_copy_from(source, pairs).and_then([&](FileCopy&& copy) {
    return copy.wait(deadline);
  });
}
Result<FileCopy> Segment::begin_copy_from(const Segment& source, std::span<const Pair> pairs) {
  if (!state_ || !source.state_) return fail(core::moved_from());
  const auto engine = state_->engine();
  if (!engine || source.state_->engine() != engine)
    return fail(Code::invalid_argument, "both segments have to be one engine's, which is open");
  return core::call(engine,
                    [&] { return core::FileCopyState::begin(state_, source.state_, pairs); })
      .map([](auto&& copy) { return FileCopy(std::move(copy)); });
}
Result<void> Segment::release(Deadline deadline) {
  if (!state_) return fail(core::moved_from());
  const auto engine = state_->engine();
  // An engine that is gone has closed its rails: nothing reaches the memory by them.
  if (!engine) return core::wait_for_copies(*state_, deadline);
  return core::call(engine, [&] { return engine->grants.release(*state_, deadline); });
}

Remote::Remote(std::shared_ptr<core::RemoteState> state) : state_(std::move(state)) {}
const std::string& Remote::peer() const noexcept {
  return state_->description().engine;
}
std::uint64_t Remote::segment_size() const noexcept {
  return state_->description().segment_size;
}
std::span<const Range> Remote::ranges() const noexcept {
  return state_->description().ranges;
}
Rights Remote::rights() const noexcept {
  return state_->description().rights;
}
Place Remote::place() const noexcept {
  return state_->description().place;
}

Prepared::Prepared(std::shared_ptr<const core::PreparedState> state) : state_(std::move(state)) {}
std::size_t Prepared::size() const noexcept {
  return state_->pieces.size();
}
std::uint64_t Prepared::bytes() const noexcept {
  return state_->bytes;
}

Transfer::Transfer(std::shared_ptr<core::Submitted> state) : state_(std::move(state)) {}
Transfer::Transfer(Transfer&&) noexcept = default;
Transfer& Transfer::operator=(Transfer&&) noexcept = default;
Transfer::~Transfer() = default;
State Transfer::state() const noexcept {
  state_->see();
  return state_->state();
}
bool Transfer::quiescent() const noexcept {
  return state_->quiescent();
}
void Transfer::cancel() {
  state_->cancel();
}
Report Transfer::report() const {
  state_->see();
  return state_->report();
}
std::vector<Placed> Transfer::placed() const {
  return state_->placed();
}
Result<void> Transfer::wait(Deadline deadline) {
  const auto waited = wait_for(
      state_.get(), [&](Deadline until) { return state_->wait_ended(until); }, deadline);
  if (!waited) return fail(waited.error());
  if (!*waited) return fail(Code::timed_out, "the transfer has not ended yet");
  if (auto error = state_->error()) return fail(std::move(*error));
  return {};
}
Result<void> Transfer::wait_quiescent(Deadline deadline) {
  const auto waited = wait_for(
      state_.get(), [&](Deadline until) { return state_->wait_quiescent(until); }, deadline);
  if (!waited) return fail(waited.error());
  if (!*waited) return fail(Code::timed_out, "operations of the transfer are still in flight");
  return wait(deadline);
}

Expectation::Expectation(std::shared_ptr<core::ExpectState> state) : state_(std::move(state)) {}
Expectation::Expectation(Expectation&&) noexcept = default;
Expectation& Expectation::operator=(Expectation&& other) noexcept {
  std::swap(state_, other.state_);
  return *this;
}
Expectation::~Expectation() {
  give_up(state_);
}
bool Expectation::ready() const noexcept {
  return state_->done();
}
Result<Signals> Expectation::wait(Deadline deadline) {
  const auto waited = wait_for_arrival(state_, deadline);
  if (!waited) return fail(waited.error());
  if (!*waited) return fail(state_->overdue());
  if (const auto& error = state_->error()) return fail(*error);
  return std::move(state_->arrived);
}

Receive::Receive(std::shared_ptr<core::ReceiveState> state) : state_(std::move(state)) {}
Receive::Receive(Receive&&) noexcept = default;
Receive& Receive::operator=(Receive&& other) noexcept {
  std::swap(state_, other.state_);
  return *this;
}
Receive::~Receive() {
  give_up(state_);
}
bool Receive::ready() const noexcept {
  return state_->done();
}
Result<Message> Receive::wait(Deadline deadline) {
  const auto waited = wait_for_arrival(state_, deadline);
  if (!waited) return fail(waited.error());
  if (!*waited) return fail(state_->overdue());
  if (const auto& error = state_->error()) return fail(*error);
  return std::move(state_->message);
}

}  // namespace weft
