#include "weights/sender.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "weights/names.hpp"

namespace weft::weights {
namespace {

using namespace std::chrono_literals;

// Between two looks whether a round is still wanted. A guess.
constexpr auto import_time = 200ms;

std::vector<Pair> pairs_of(std::span<const Piece> pieces) {
  std::vector<Pair> pairs;
  for (const Piece& piece : pieces)
    for (std::uint64_t i = 0; i < piece.count; ++i)
      pairs.push_back({piece.src_offset + i * piece.src_stride,
                       piece.dst_offset + i * piece.dst_stride, piece.length});
  return pairs;
}

}  // namespace

void Sender::plan(const std::vector<Send>& sends, bool verify) {
  Planned planned{.writes = {}, .verify = verify};
  for (const Send& send : sends)
    for (const auto pieces : writes_of(send.pieces))
      planned.writes.push_back({send.to, send.stage, send.passed_on, pieces.front().src_segment,
                                pieces.front().dst_segment, pairs_of(pieces)});
  std::stable_sort(planned.writes.begin(), planned.writes.end(),
                   [](const Write& a, const Write& b) { return a.stage < b.stage; });
  const core::Lock lock(mutex_);
  planned_ = std::make_shared<const Planned>(std::move(planned));
}

void Sender::begin(const Round& round, const Segments& from, Deadline deadline) {
  const core::Lock lock(mutex_);
  std::erase_if(granted_, [&](const Granted& each) { return each.round != round; });
  round_.emplace(
      Running{round, from, deadline, planned_, std::vector<bool>(planned_->writes.size(), false)});
  bytes_ = 0;
  changed_.notify_all();
}

void Sender::granted(const Note& note) {
  const core::Lock lock(mutex_);
  granted_.push_back(
      {note.rank, note.round, std::make_shared<const std::vector<Blob>>(note.grants)});
  changed_.notify_all();
}

void Sender::arrived(Stage stage) {
  const core::Lock lock(mutex_);
  if (round_) round_->arrived.insert(stage);
  changed_.notify_all();
}

void Sender::end(bool cancel) {
  const core::Lock lock(mutex_);
  round_.reset();
  if (cancel)
    for (weft::Transfer& each : transfers_) each.cancel();
}

void Sender::open() {
  const core::Lock lock(mutex_);
  closed_ = false;
}

void Sender::close() {
  const core::Lock lock(mutex_);
  closed_ = true;
  changed_.notify_all();
}

bool Sender::serve(Deadline deadline) {
  while (const auto due = next(deadline)) {
    const auto written = write(*due);
    if (!written) report(due->round, written.error().to_string());
    const core::Lock lock(mutex_);
    writing_ = false;
  }
  const core::Lock lock(mutex_);
  return !closed_;
}

std::optional<Sender::Due> Sender::next(Deadline deadline) {
  core::Lock lock(mutex_);
  std::optional<Due> due;
  changed_.wait(mutex_, deadline,
                [&]() WEFT_REQUIRES(mutex_) { return closed_ || (due = find_due()).has_value(); });
  if (closed_) return std::nullopt;
  writing_ = due.has_value();
  return due;
}

/// The earliest stage first.
std::optional<Sender::Due> Sender::find_due() {
  if (!round_) return std::nullopt;
  const auto& writes = round_->planned->writes;
  for (std::size_t i = 0; i < writes.size(); ++i) {
    const Write& write = writes[i];
    if (round_->begun[i] || (write.passed_on && !round_->arrived.contains(write.stage - 1)))
      continue;
    const auto granted = std::find_if(granted_.begin(), granted_.end(),
                                      [&, &round = round_->id](const Granted& each) {
                                        return each.rank == write.to && each.round == round;
                                      });
    if (granted == granted_.end()) continue;
    round_->begun[i] = true;
    const bool known = write.src_segment < round_->from.size();
    return Due{round_->id,       known ? round_->from[write.src_segment] : nullptr,
               round_->deadline, round_->planned,
               &write,           granted->grants};
  }
  return std::nullopt;
}

Result<void> Sender::write(const Due& due) {
  const Write& write = *due.write;
  if (!due.from)
    return fail(Code::invalid_argument, fmt::format("there is no segment {}", write.src_segment));
  const auto remote = remote_for(due);
  if (!remote) return fail(remote.error());
  auto transfer = member_.engine().write(
      *due.from, *remote, write.pairs,
      // An engine carries what is due earlier first: so stages leave in their order.
      {.deadline = Deadline::at(due.deadline.when() + std::chrono::nanoseconds(write.stage)),
       .signal = Signal{.id = signal_id(due.round, write.stage)},
       .on_end =
           [this, round = due.round, inbox = member_.inbox()](const Ended& ended) {
             if (ended.state == weft::State::done) return;
             inbox->post([this, round,
                          why = ended.error != nullptr
                                    ? ended.error->to_string()
                                    : std::string("it ended")] { tell_leader(round, why); });
           },
       .priority = Priority::bulk,
       .wait_for_room = due.deadline,
       .verify = due.planned->verify});
  if (!transfer) return fail(std::move(transfer.error()));
  const std::uint64_t bytes = transfer->report().bytes;
  const core::Lock lock(mutex_);
  if (round_ && round_->id == due.round)
    bytes_ += bytes;
  else
    transfer->cancel();
  transfers_.push_back(std::move(*transfer));
  return {};
}

/// Gives up when the round is over: the other rank may be frozen.
Result<Remote> Sender::remote_for(const Due& due) {
  if (std::exchange(imported_in_, due.round) != due.round) remotes_.clear();
  const std::tuple key(due.write->to, due.write->dst_segment);
  if (const auto known = remotes_.find(key); known != remotes_.end()) return known->second;
  if (due.write->dst_segment >= due.grants->size())
    return fail(Code::invalid_argument,
                fmt::format("rank {} has no segment {}", due.write->to, due.write->dst_segment));
  while (true) {
    auto remote = member_.engine().import(
        due.grants->at(due.write->dst_segment),
        Deadline::at(std::min(due.deadline.when(), Clock::now() + import_time)));
    if (remote) remotes_.emplace(key, *remote);
    if (remote || remote.error().code() != Code::timed_out || due.deadline.passed() ||
        !runs(due.round))
      return remote;
  }
}

bool Sender::runs(const Round& round) const {
  const core::Lock lock(mutex_);
  return !closed_ && round_ && round_->id == round;
}

void Sender::report(const Round& round, const std::string& why) {
  member_.inbox()->post([this, round, why] { tell_leader(round, why); });
}

/// On the member's thread.
void Sender::tell_leader(const Round& round, const std::string& why) {
  member_.send(leader_.contact(), {.kind = NoteKind::failed, .round = round, .text = why});
}

std::uint64_t Sender::bytes() const {
  const core::Lock lock(mutex_);
  return bytes_;
}

bool Sender::quiescent() {
  const core::Lock lock(mutex_);
  std::erase_if(transfers_, [](const weft::Transfer& each) { return each.quiescent(); });
  return transfers_.empty() && !writing_;
}

bool Sender::wait_quiescent(Deadline deadline) {
  std::vector<weft::Transfer> transfers;
  {
    const core::Lock lock(mutex_);
    transfers = std::exchange(transfers_, {});
  }
  bool all = true;
  for (weft::Transfer& each : transfers) {
    const auto waited = each.wait_quiescent(deadline);
    all &= waited.has_value() || each.quiescent();
  }
  return all;
}

}  // namespace weft::weights
