// Messages to one peer that go over the control connection, because their NIC does not get them
// there.
#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <optional>
#include <utility>
#include <weft/memory.hpp>

namespace weft::core {

class TransferState;

/// Whom the end of a message concerns.
struct Delivery {
  std::shared_ptr<TransferState> transfer;  // whose signal it is, if any
  bool counted = true;                      // it came out of the outbox
};

/// They are taken in their order, and so is the peer's word that it has them.
class Detour {
 public:
  /// Bytes that may be under way: far less than the control connection queues (ControlTuning), so
  /// that heartbeats stay on time; but one message always may.
  static constexpr std::size_t most_bytes = std::size_t{1} << 20;

  void add(Blob message, Delivery delivery) {
    waiting_.push_back({std::move(message), std::move(delivery)});
  }
  /// The next that may go; nothing if there is none, or enough are under way.
  std::optional<Blob> next() {
    if (waiting_.empty()) return std::nullopt;
    Entry& first = waiting_.front();
    const std::size_t size = first.message.size();
    if (bytes_ > 0 && bytes_ + size > most_bytes) return std::nullopt;
    bytes_ += size;
    Blob message = std::move(first.message);
    under_way_.emplace_back(size, std::move(first.delivery));
    waiting_.pop_front();
    return message;
  }
  /// The peer has the oldest of those under way; nothing if there is none.
  std::optional<Delivery> arrived() {
    if (under_way_.empty()) return std::nullopt;
    bytes_ -= under_way_.front().first;
    Delivery delivery = std::move(under_way_.front().second);
    under_way_.pop_front();
    return delivery;
  }
  /// None of them will arrive.
  std::deque<Delivery> close() {
    std::deque<Delivery> all;
    for (auto& [size, delivery] : under_way_) all.push_back(std::move(delivery));
    for (Entry& each : waiting_) all.push_back(std::move(each.delivery));
    *this = Detour();
    return all;
  }

 private:
  struct Entry {
    Blob message;
    Delivery delivery;
  };
  std::deque<Entry> waiting_;
  std::deque<std::pair<std::size_t, Delivery>> under_way_;
  std::size_t bytes_ = 0;  // of these
};

}  // namespace weft::core
