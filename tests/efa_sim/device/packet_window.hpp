// Packets in flight. Any of them may be the next to arrive, as in a network with many paths.
#pragma once

#include <cstddef>
#include <random>
#include <utility>
#include <vector>

namespace weft::efa_sim {

template <typename Packet>
class PacketWindow {
 public:
  bool empty() const { return packets_.empty(); }
  std::size_t size() const { return packets_.size(); }
  void add(Packet packet) { packets_.push_back(std::move(packet)); }

  /// Takes out any packet. With one at a time in the window, they arrive in order.
  template <typename Random>
  Packet take(Random& random) {
    std::uniform_int_distribution<std::size_t> any(0, packets_.size() - 1);
    std::swap(packets_[any(random)], packets_.back());
    Packet packet = std::move(packets_.back());
    packets_.pop_back();
    return packet;
  }

 private:
  std::vector<Packet> packets_;
};

}  // namespace weft::efa_sim
