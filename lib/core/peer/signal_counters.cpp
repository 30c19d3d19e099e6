#include "peer/signal_counters.hpp"

#include <algorithm>

namespace weft::core {
namespace {

// What an entry costs besides payloads and failures, so that empty signals count too: its node in
// the table, in the list of orphans, and malloc's share (libstdc++ 12: 230 bytes).
constexpr std::size_t entry_bytes = 256;
// What a failure costs besides its sentence: an Error in a list, and the peer's name.
constexpr std::size_t failure_bytes = 192;

}  // namespace

std::size_t SignalCounters::cost(const Failure& failure) {
  return failure_bytes + failure.error.message().size();
}

/// Counts an entry that no expectation waits for, and drops one that says nothing any more. Entries
/// with a waiting expectation don't count: to hold the peer back for them would keep away what they
/// wait for.
void SignalCounters::account(Counters::iterator entry) {
  auto& [id, counter] = *entry;
  const bool idle = counter.idle();
  const bool counts = !idle && counter.waiting.empty();
  if (counts && !counter.counted) bytes_ += entry_bytes, ++ids_;
  if (!counts && counter.counted) bytes_ -= entry_bytes, --ids_;
  counter.counted = counts;
  const bool orphan = counts && (!counter.failures.empty() || given_up_.contains(id));
  if (orphan && !counter.orphan) counter.orphan = orphans_.insert(orphans_.end(), id);
  if (!orphan && counter.orphan) {
    orphans_.erase(*counter.orphan);
    counter.orphan.reset();
  }
  if (idle) counters_.erase(entry);
}

void SignalCounters::claim(Counter& counter, ExpectState& expectation) {
  const std::uint64_t given =
      std::min(counter.arrived - counter.claimed, expectation.wanted - expectation.arrived.count);
  counter.claimed += given;
  expectation.arrived.count += given;
  while (!counter.payloads.empty() && counter.payloads.front().number < counter.claimed) {
    Blob& bytes = counter.payloads.front().bytes;
    bytes_ -= bytes.size() + kept_overhead;
    expectation.arrived.payloads.push_back(std::move(bytes));
    counter.payloads.pop_front();
  }
}

/// Gives what is there to the expectations that wait, the oldest first.
void SignalCounters::serve(Counters::iterator entry, Endings& endings) {
  Counter& counter = entry->second;
  while (!counter.waiting.empty()) {
    const auto expectation = counter.waiting.front();
    claim(counter, *expectation);
    std::optional<Error> error;
    if (expectation->arrived.count < expectation->wanted) {
      error = why_not(entry);
      if (!error) break;
    }
    counter.waiting.pop_front();
    if (error && counter.waiting.empty()) ended_short(*expectation);
    endings.emplace_back(expectation, std::move(error));
  }
  account(entry);
}

/// Why a signal of the id won't come; nothing if it may.
std::optional<Error> SignalCounters::why_not(Counters::iterator entry) {
  auto& [id, counter] = *entry;
  if (!counter.failures.empty()) {
    Failure& failure = counter.failures.front();
    if (--failure.count > 0) return failure.error;
    bytes_ -= cost(failure);
    Error error = std::move(failure.error);
    counter.failures.pop_front();
    return error;
  }
  if (failed_.erase(id, id) > 0)
    return Error(Code::remote_failed,
                 "the peer's transfer ended without its signal; why is not known any more "
                 "(unclaimed_bytes)")
        .with_peer(peer_);
  if (lost_.erase(id, id) > 0)
    return Error(Code::queue_full,
                 "a signal of this id came after its expectation had ended, and was dropped to "
                 "keep within unclaimed_bytes")
        .with_peer(peer_);
  return closed_;
}

/// No other expectation waits for the id.
void SignalCounters::ended_short(const ExpectState& expectation) {
  if (expectation.late == Late::drop) forgotten_.insert(expectation.id, expectation.id);
  if (expectation.late == Late::keep) given_up_.insert(expectation.id, expectation.id);
}

void SignalCounters::arrived(std::uint64_t id, Blob bytes, Endings& endings) {
  if (forgotten_.contains(id)) {
    ++dropped_;
    return;
  }
  const auto entry = counters_.try_emplace(id).first;
  Counter& counter = entry->second;
  if (!bytes.empty()) {
    bytes_ += bytes.size() + kept_overhead;
    counter.payloads.push_back({counter.arrived, std::move(bytes)});
  }
  ++counter.arrived;
  serve(entry, endings);
}

void SignalCounters::failed(std::uint64_t id, const Error& error, Endings& endings) {
  if (forgotten_.contains(id)) {
    ++dropped_;
    return;
  }
  const auto entry = counters_.try_emplace(id).first;
  auto& failures = entry->second.failures;
  if (!failures.empty() && failures.back().error.code() == error.code() &&
      failures.back().error.message() == error.message()) {
    ++failures.back().count;
    return;
  }
  bytes_ += cost(failures.emplace_back(Failure{error, 1}));
  serve(entry, endings);
}

void SignalCounters::await(const std::shared_ptr<ExpectState>& expectation, Endings& endings) {
  const std::uint64_t id = expectation->id;
  forgotten_.erase(id, id);
  given_up_.erase(id, id);
  const auto entry = counters_.try_emplace(id).first;
  entry->second.waiting.push_back(expectation);
  serve(entry, endings);
}

bool SignalCounters::give_up(const ExpectState& expectation) {
  const auto entry = counters_.find(expectation.id);
  if (entry == counters_.end()) return false;
  auto& waiting = entry->second.waiting;
  const bool waited =
      std::erase_if(waiting, [&](const auto& other) { return other.get() == &expectation; }) > 0;
  if (waited && waiting.empty()) ended_short(expectation);
  account(entry);
  return waited;
}

void SignalCounters::close(const Error& error, Endings& endings) {
  closed_ = error;
  std::vector<std::uint64_t> ids;
  for (const auto& [id, counter] : counters_)
    if (!counter.waiting.empty()) ids.push_back(id);
  for (const std::uint64_t id : ids) serve(counters_.find(id), endings);
}

/// Returns how many there were.
std::uint64_t SignalCounters::drop_signals(Counter& counter) {
  for (const Payload& payload : counter.payloads) bytes_ -= payload.bytes.size() + kept_overhead;
  counter.payloads.clear();
  const std::uint64_t count = counter.arrived - counter.claimed;
  counter.claimed = counter.arrived;
  return count;
}

std::uint64_t SignalCounters::drop_failures(Counter& counter) {
  std::uint64_t count = 0;
  for (const Failure& failure : counter.failures) {
    bytes_ -= cost(failure);
    count += failure.count;
  }
  counter.failures.clear();
  return count;
}

bool SignalCounters::shrink() {
  if (orphans_.empty()) return false;
  const std::uint64_t id = orphans_.front();
  const auto entry = counters_.find(id);
  Counter& counter = entry->second;
  if (const std::uint64_t failures = drop_failures(counter); failures > 0) {
    // One of them stays noted, unless one was.
    const std::uint64_t noted = failed_.size();
    failed_.insert(id, id);
    const std::uint64_t more = noted + failures - failed_.size();
    dropped_ += more;
    vanished_ += more;
  }
  if (given_up_.contains(id)) {
    if (const std::uint64_t signals = drop_signals(counter); signals > 0) {
      dropped_ += signals;
      vanished_ += lost_.insert(id, id);
    }
  }
  account(entry);
  return true;
}

std::vector<std::uint64_t> SignalCounters::known_between(std::uint64_t first,
                                                         std::uint64_t last) const {
  std::vector<std::uint64_t> ids;
  if (last - first < counters_.size()) {
    for (std::uint64_t id = first;; ++id) {
      if (counters_.contains(id)) ids.push_back(id);
      if (id == last) return ids;
    }
  }
  for (const auto& [id, counter] : counters_)
    if (first <= id && id <= last) ids.push_back(id);
  return ids;
}

void SignalCounters::forget(std::uint64_t first, std::uint64_t last) {
  forgotten_.insert(first, last);
  given_up_.erase(first, last);
  lost_.erase(first, last);
  dropped_ += failed_.erase(first, last);
  for (const std::uint64_t id : known_between(first, last)) {
    const auto entry = counters_.find(id);
    if (!entry->second.waiting.empty()) {
      forgotten_.erase(id, id);
      continue;
    }
    dropped_ += drop_signals(entry->second) + drop_failures(entry->second);
    account(entry);
  }
}

}  // namespace weft::core
