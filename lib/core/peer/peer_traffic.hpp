// What goes between this engine and one peer, counted.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>
#include <weft/transfer.hpp>

#include "base/sync.hpp"

namespace weft::core {

/// From any thread. Bytes of this engine's transfers are counted by rail, so that the threads of
/// two rails seldom meet.
class PeerTraffic {
 public:
  using ByDirection = std::array<std::uint64_t, 2>;
  struct Received {
    std::uint64_t count = 0, bytes = 0;  // of payload
  };
  struct Totals {
    ByDirection begun_here{};   // bytes of this engine's transfers
    ByDirection begun_there{};  // bytes of the peer's transfers, as their signals say
    Received signals, messages;

    Totals& operator+=(const Totals& other) {
      for (std::size_t i = 0; i < begun_here.size(); ++i) {
        begun_here[i] += other.begun_here[i];
        begun_there[i] += other.begun_there[i];
      }
      signals.count += other.signals.count;
      signals.bytes += other.signals.bytes;
      messages.count += other.messages.count;
      messages.bytes += other.messages.bytes;
      return *this;
    }
  };

  explicit PeerTraffic(std::size_t rails) : begun_here_(rails) {}

  /// A transfer of this engine's has ended. `rail`: the first that carried it.
  void add_own(std::size_t rail, Direction direction, std::uint64_t bytes) noexcept {
    add(begun_here_[rail].bytes[index_of(direction)], bytes);
  }
  /// A transfer of the peer's has ended.
  void add_of_peer(Direction direction, std::uint64_t bytes) noexcept {
    add(begun_there_.bytes[index_of(direction)], bytes);
  }
  void add_signal(std::uint64_t payload) noexcept { signals_.add(payload); }
  void add_message(std::uint64_t payload) noexcept { messages_.add(payload); }

  Totals read() const {
    Totals totals;
    for (std::size_t i = 0; i < totals.begun_here.size(); ++i) {
      for (const Bytes& each : begun_here_)
        totals.begun_here[i] += each.bytes[i].load(std::memory_order_relaxed);
      totals.begun_there[i] = begun_there_.bytes[i].load(std::memory_order_relaxed);
    }
    totals.signals = signals_.read();
    totals.messages = messages_.read();
    return totals;
  }

 private:
  using Count = std::atomic<std::uint64_t>;
  static std::size_t index_of(Direction direction) noexcept {
    return static_cast<std::size_t>(direction);
  }
  static void add(Count& count, std::uint64_t more) noexcept {
    count.fetch_add(more, std::memory_order_relaxed);
  }
  struct alignas(cache_line) Bytes {
    std::array<Count, 2> bytes{};  // by Direction
  };
  struct alignas(cache_line) Arrivals {
    void add(std::uint64_t payload) noexcept {
      PeerTraffic::add(count, 1);
      PeerTraffic::add(bytes, payload);
    }
    Received read() const {
      return {count.load(std::memory_order_relaxed), bytes.load(std::memory_order_relaxed)};
    }
    Count count{0}, bytes{0};
  };

  std::vector<Bytes> begun_here_;  // by rail
  Bytes begun_there_;
  Arrivals signals_, messages_;
};

}  // namespace weft::core
