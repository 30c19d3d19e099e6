// The public class of a rank of the subscriber group.
#include <fmt/format.h>

#include <utility>
#include <weft/weights.hpp>

#include "base/log.hpp"
#include "weights/member.hpp"
#include "weights/names.hpp"
#include "weights/receiver.hpp"
#include "weights/versions.hpp"

namespace weft::weights {
namespace {

using namespace std::chrono_literals;

// As Engine::~Engine.
constexpr auto closing_time = 2s;

Result<void> check_sets(const std::vector<Segments>& sets) {
  if (sets.empty() || sets.size() > 2)
    return fail(Code::invalid_argument,
                fmt::format("a subscriber has one or two sets of segments, not {}", sets.size()));
  for (const auto& segment : sets.back())
    if (!segment) return fail(Code::invalid_argument, "a segment is missing");
  bool alike = sets.front().size() == sets.back().size();
  for (std::size_t i = 0; alike && i < sets.front().size(); ++i)
    alike = sets.front()[i] && sets.front()[i]->size() == sets.back()[i]->size();
  if (!alike) return fail(Code::invalid_argument, "the two sets of segments differ in size");
  return {};
}

}  // namespace

class Subscriber::State {
 public:
  State(Engine& engine, Rank self, std::vector<Segments> sets, SubscriberOptions options)
      : member(engine),
        versions(std::make_shared<Versions>(sets.size(), options.state_file,
                                            [inbox = member.inbox()] { inbox->post([] {}); })),
        receiver(member, std::move(self), std::move(sets), std::move(options), versions) {}
  ~State() {
    member.stop();
    versions->close();
    if (!receiver.close(Deadline::in(closing_time)))
      core::log(
          LogLevel::warning,
          "weights: a peer may still read or write the memory of a subscriber that is closed");
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  bool forked() const noexcept { return member.forked(); }

  Member member;
  const std::shared_ptr<Versions> versions;
  Receiver receiver;
};

Subscriber::Subscriber(std::shared_ptr<State> state) : state_(std::move(state)) {}
Subscriber::Subscriber(Subscriber&&) noexcept = default;
Subscriber& Subscriber::operator=(Subscriber&& other) noexcept {
  std::swap(state_, other.state_);
  return *this;
}
Subscriber::~Subscriber() {
  leave(std::move(state_));
}

Result<Subscriber> Subscriber::open(Engine& engine, Rank self, std::vector<Segments> sets,
                                    SubscriberOptions options) {
  if (options.leader.empty())
    return fail(Code::invalid_argument, "the leader's address is missing");
  if (auto alike = check_sets(sets); !alike) return fail(std::move(alike.error()));
  if (auto usable = check_rank(engine, self, sets.front()); !usable)
    return fail(std::move(usable.error()));
  auto state =
      std::make_shared<State>(engine, std::move(self), std::move(sets), std::move(options));
  if (auto started = state->receiver.start(); !started) return fail(std::move(started.error()));
  if (auto started = state->member.start({&state->receiver}); !started)
    return fail(std::move(started.error()));
  return Subscriber(std::move(state));
}

Result<void> Subscriber::usable() const {
  if (!state_) return fail(Code::closed, "the subscriber was moved from");
  if (state_->forked()) return fail(core::forked_error());
  return {};
}

std::optional<std::uint64_t> Subscriber::step() const noexcept {
  return state_ ? state_->versions->step() : std::nullopt;
}

Standing Subscriber::standing() const {
  return state_ ? state_->versions->standing() : Standing{};
}

Result<Reading> Subscriber::read() const {
  if (auto can = usable(); !can) return fail(std::move(can.error()));
  auto pinned = state_->versions->pin();
  if (!pinned) return fail(std::move(pinned.error()));
  return Reading(pinned->step, pinned->set, std::move(pinned->pin));
}

Result<void> Subscriber::wait(std::uint64_t step, Deadline deadline) const {
  if (auto can = usable(); !can) return can;
  return state_->versions->wait(step, deadline);
}

}  // namespace weft::weights
