#include "services/credits.hpp"

namespace weft::core {
namespace {

// What nothing has used for so long is idle, or for up to twice as long. A guess: far longer than
// the pauses of a busy peer; to have it again takes a round trip of the control connection.
constexpr auto idle_time = std::chrono::seconds(2);

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
  if (now - tidied_at_ < idle_time) return;
  tidied_at_ = now;
  for (const auto& rail : rails_)
    workers_.hand_to(rail->worker(), [&rail = *rail] { rail.tidy(); });
}

}  // namespace weft::core
