#include "peer/mailbox.hpp"

#include <algorithm>

#include "peer/peer_state.hpp"

namespace weft::core {
namespace {

// What an entry costs besides its payload, so that empty ones count too.
constexpr std::size_t entry_bytes = 64;

std::size_t cost(const Blob& bytes) {
  return bytes.size() + entry_bytes;
}

bool matches(const ReceiveState& receive, const Message& message) {
  return ((receive.tag ^ message.tag) & receive.mask) == 0;
}

}  // namespace

/// Counts an entry that no expectation waits for, and drops one that says nothing any more. Entries
/// with a waiting expectation don't count: to hold the peer back for them would keep away what they
/// wait for.
void Mailbox::account(Counters::iterator entry) {
  Counter& counter = entry->second;
  const bool idle = counter.idle();
  const bool counts = !idle && counter.waiting.empty();
  if (counts && !counter.counted) unclaimed_ += entry_bytes;
  if (!counts && counter.counted) unclaimed_ -= entry_bytes;
  counter.counted = counts;
  if (idle) counters_.erase(entry);
}

void Mailbox::claim(Counter& counter, ExpectState& expectation) {
  const std::uint64_t given =
      std::min(counter.arrived - counter.claimed, expectation.wanted - expectation.arrived.count);
  counter.claimed += given;
  expectation.arrived.count += given;
  while (!counter.payloads.empty() && counter.payloads.front().first < counter.claimed) {
    unclaimed_ -= cost(counter.payloads.front().second);
    expectation.arrived.payloads.push_back(std::move(counter.payloads.front().second));
    counter.payloads.pop_front();
  }
}

/// Gives what is there to the expectations that wait, the oldest first.
void Mailbox::serve(std::uint64_t id, Endings& endings) {
  const auto entry = counters_.find(id);
  if (entry == counters_.end()) return;
  Counter& counter = entry->second;
  while (!counter.waiting.empty()) {
    const auto expectation = counter.waiting.front();
    claim(counter, *expectation);
    std::optional<Error> error;
    if (expectation->arrived.count < expectation->wanted) {
      if (!counter.failures.empty()) {
        error = std::move(counter.failures.front());
        counter.failures.pop_front();
      } else if (closed_) {
        error = closed_;
      } else {
        break;
      }
    }
    counter.waiting.pop_front();
    endings.slots.emplace_back(expectation, std::move(error));
  }
  account(entry);
}

void Mailbox::tell(const Endings& endings) {
  for (const auto& [slot, error] : endings.slots) slot->complete(error);
  if (endings.room && when_room) when_room();
}

void Mailbox::signal_arrived(std::uint64_t id, Blob bytes) {
  Endings endings;
  {
    const Lock lock(mutex_);
    Counter& counts = counters_[id];
    if (!bytes.empty()) {
      unclaimed_ += cost(bytes);
      counts.payloads.emplace_back(counts.arrived, std::move(bytes));
    }
    ++counts.arrived;
    serve(id, endings);
  }
  tell(endings);
}

void Mailbox::signal_failed(std::uint64_t id, const Error& error) {
  Endings endings;
  {
    const Lock lock(mutex_);
    counters_[id].failures.push_back(error);
    serve(id, endings);
  }
  tell(endings);
}

void Mailbox::message_arrived(std::uint64_t tag, Blob bytes) {
  Endings endings;
  {
    const Lock lock(mutex_);
    Message message{peer_, tag, std::move(bytes)};
    const auto waiting = std::find_if(receives_.begin(), receives_.end(), [&](const auto& receive) {
      return matches(*receive, message);
    });
    if (waiting != receives_.end()) {
      (*waiting)->message = std::move(message);
      endings.slots.emplace_back(*waiting, std::nullopt);
      receives_.erase(waiting);
    } else {
      unclaimed_ += cost(message.bytes);
      messages_.push_back(std::move(message));
    }
  }
  tell(endings);
}

void Mailbox::close(const Error& error) {
  Endings endings;
  {
    const Lock lock(mutex_);
    if (closed_) return;
    closed_ = error;
    std::vector<std::uint64_t> ids;
    for (const auto& [id, counts] : counters_)
      if (!counts.waiting.empty()) ids.push_back(id);
    for (const std::uint64_t id : ids) serve(id, endings);
    for (const auto& receive : receives_) endings.slots.emplace_back(receive, error);
    receives_.clear();
  }
  tell(endings);
}

void Mailbox::await(const std::shared_ptr<ExpectState>& expectation) {
  Endings endings;
  {
    const Lock lock(mutex_);
    const bool was_full = unclaimed_ > limit_;
    counters_[expectation->id].waiting.push_back(expectation);
    serve(expectation->id, endings);
    endings.room = was_full && unclaimed_ <= limit_;
  }
  tell(endings);
}

void Mailbox::await(const std::shared_ptr<ReceiveState>& receive) {
  Endings endings;
  {
    const Lock lock(mutex_);
    const bool was_full = unclaimed_ > limit_;
    const auto found =
        std::find_if(messages_.begin(), messages_.end(),
                     [&](const Message& message) { return matches(*receive, message); });
    if (found != messages_.end()) {
      unclaimed_ -= cost(found->bytes);
      receive->message = std::move(*found);
      messages_.erase(found);
      endings.slots.emplace_back(receive, std::nullopt);
    } else if (closed_) {
      endings.slots.emplace_back(receive, closed_);
    } else {
      receives_.push_back(receive);
    }
    endings.room = was_full && unclaimed_ <= limit_;
  }
  tell(endings);
}

bool Mailbox::give_up(const ExpectState& expectation) {
  const Lock lock(mutex_);
  const auto entry = counters_.find(expectation.id);
  if (entry == counters_.end()) return false;
  const bool waited = std::erase_if(entry->second.waiting, [&](const auto& other) {
                        return other.get() == &expectation;
                      }) > 0;
  account(entry);
  return waited;
}

bool Mailbox::give_up(const ReceiveState& receive) {
  const Lock lock(mutex_);
  return std::erase_if(receives_, [&](const auto& other) { return other.get() == &receive; }) > 0;
}

bool ExpectState::give_up() {
  return peer->mailbox.give_up(*this);
}

bool ReceiveState::give_up() {
  return peer->mailbox.give_up(*this);
}

}  // namespace weft::core
