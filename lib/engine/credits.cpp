#include "engine/credits.hpp"

namespace weft::core {
namespace {

// Buffers that nothing needs may stay so much longer.
constexpr auto tidy_period = std::chrono::seconds(1);

}  // namespace

void Credits::take(const PeerState& peer, const CreditsGivenBack& notice) {
  Rail& rail = peer.message_rail();
  rail.worker().post([known = peers_.find(peer.link), &rail, count = notice.count] {
    rail.messenger().credits_given_back(*known, count);
  });
}

void Credits::take(const PeerState& peer, const BounceCredits& notice) {
  using Step = BounceCredits::Step;
  const bool ours = notice.step == Step::wanted || notice.step == Step::given_back;
  const std::uint32_t index = ours ? notice.giver : notice.user;
  if (index >= rails_.size()) return;
  Rail& rail = *rails_[index];
  rail.worker().post(
      [known = peers_.find(peer.link), &rail, notice] { rail.hear(*known, notice); });
}

void Credits::tidy(Clock::time_point now) {
  const bool due = now - tidied_at_ >= tidy_period;
  if (due) tidied_at_ = now;
  for (const auto& rail : rails_)
    if (rail->pressed() || (due && rail->loose()))
      workers_.hand_to(rail->worker(), [&rail = *rail, now] { rail.tidy(now); });
}

}  // namespace weft::core
