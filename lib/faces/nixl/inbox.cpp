#include "nixl/inbox.hpp"

#include <utility>

#include "base/sync.hpp"

namespace weft::nixl {

void Inbox::take(abi::Notifications& arrived) {
  const core::Lock lock(mutex_);
  const std::size_t before = arrived.size();
  empty(arrived);
  // A caller that polls makes the progress that it polls for.
  if (arrived.size() == before && engine_.progress().value_or(0) > 0) empty(arrived);
}

void Inbox::empty(abi::Notifications& arrived) {
  std::size_t count = 0;
  do {
    count = engine_.poll(events_);
    for (std::size_t i = 0; i < count; ++i) handle(std::exchange(events_[i], {}), arrived);
  } while (count > 0);
}

void Inbox::handle(const Event& event, abi::Notifications& arrived) {
  if (event.kind == Event::Kind::peer_up) met(*event.who);
  if (event.kind == Event::Kind::signals_arrived) signalled(event.cookie, arrived);
}

void Inbox::met(const Peer& peer) {
  const std::uint64_t cookie = next_++;
  auto& sender = senders_.emplace(cookie, Sender{peer, {}, {}}).first->second;
  if (!await_next(cookie, sender)) senders_.erase(cookie);
}

bool Inbox::await_next(std::uint64_t cookie, Sender& sender) {
  auto expectation = sender.peer.expect(notification_signal, 1,
                                        {.cookie = cookie, .event = true, .late = Late::hold});
  if (!expectation) return false;
  sender.expectation = std::move(*expectation);
  return true;
}

void Inbox::signalled(std::uint64_t cookie, abi::Notifications& arrived) {
  const auto found = senders_.find(cookie);
  if (found == senders_.end()) return;
  Sender& sender = found->second;
  const auto signals = sender.expectation->wait(Deadline::now());
  if (signals) {
    for (const Blob& part : signals->payloads)
      if (auto whole = sender.assembly.take(part))
        arrived.emplace_back(std::move(whole->agent), std::move(whole->bytes));
  }
  // A transfer of the peer's that failed ends an expectation too; the next one gets the next
  // signal.
  const bool goes_on = signals || signals.error().code() == Code::remote_failed;
  if (!goes_on || !await_next(cookie, sender)) senders_.erase(found);
}

}  // namespace weft::nixl
