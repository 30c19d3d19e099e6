#include "weights/plan/prediction.hpp"

#include <algorithm>
#include <queue>
#include <unordered_map>

namespace weft::weights {

namespace {

/// What one rank has queued, as the time when it is through.
struct Queues {
  double nic_out = 0, nic_in = 0;
  double host_out = 0, host_in = 0;
};

/// Transfers to one subscriber of one chunk and hop: those that pass them on wait for all.
struct Gate {
  std::uint32_t awaited = 0;
  double open_at = 0;
  std::vector<std::uint32_t> waiting;
};

/// A transfer that may begin.
struct Ready {
  double at;
  std::uint32_t transfer;
  bool operator>(const Ready& other) const noexcept {
    return at != other.at ? at > other.at : transfer > other.transfer;
  }
};

class Simulation {
 public:
  Simulation(const World& world, const Loads& loads, std::span<const Transfer> transfers,
             const PlanOptions& options)
      : world_(world),
        loads_(loads),
        transfers_(transfers),
        options_(options),
        publishers_(world.publishers.size()),
        subscribers_(world.subscribers.size()),
        outboxes_(world.publishers.size()) {}

  double run() {
    arrange();
    double end = 0;
    while (!ready_.empty()) {
      const Ready next = ready_.top();
      ready_.pop();
      const double arrived = carry(next);
      end = std::max(end, arrived);
      arrive(transfers_[next.transfer], arrived);
    }
    return end;
  }

 private:
  /// The gate of what arrives in a hop.
  Gate& gate(std::uint32_t subscriber, std::uint32_t chunk, std::uint32_t hop) {
    const std::uint64_t slot = std::uint64_t{chunk} << 32 | hop;
    return gates_[subscriber][slot];
  }

  void arrange() {
    gates_.resize(world_.subscribers.size());
    for (std::uint32_t i = 0; i < transfers_.size(); ++i) {
      const Transfer& transfer = transfers_[i];
      ++gate(transfer.to, transfer.chunk, transfer.hop).awaited;
      if (transfer.hop == 0)
        outboxes_[transfer.from.rank].waiting.push_back(i);
      else
        gate(transfer.from.rank, transfer.chunk, transfer.hop - 1).waiting.push_back(i);
    }
    for (Outbox& outbox : outboxes_) send_chunk(outbox, 0);
  }

  /// A publisher sends a chunk at once, and the next one when it has left.
  struct Outbox {
    std::vector<std::uint32_t> waiting;
    std::size_t next = 0;
    std::size_t under_way = 0;
  };
  void send_chunk(Outbox& outbox, double at) {
    const auto& waiting = outbox.waiting;
    if (outbox.next == waiting.size()) return;
    const std::uint32_t chunk = transfers_[waiting[outbox.next]].chunk;
    for (; outbox.next < waiting.size() && transfers_[waiting[outbox.next]].chunk == chunk;
         ++outbox.next, ++outbox.under_way)
      ready_.push({at, waiting[outbox.next]});
  }
  void left(Outbox& outbox, double at) {
    if (--outbox.under_way == 0) send_chunk(outbox, at);
  }

  /// When it has arrived.
  double carry(const Ready& ready) {
    const Transfer& transfer = transfers_[ready.transfer];
    const bool published = transfer.from.side == Side::publisher;
    const auto& ranks = published ? world_.publishers : world_.subscribers;
    Queues& from = (published ? publishers_ : subscribers_)[transfer.from.rank];
    Queues& to = subscribers_[transfer.to];
    const bool on_host = loads_.on_host(transfer.from, transfer.to);
    const double host_speed = options_.host_gbps * 1e9 / 8;
    const auto pass = [&](double& queue, double speed) {
      queue = std::max(queue, ready.at) + static_cast<double>(transfer.bytes) / speed;
      return queue;
    };
    const double gone = pass(on_host ? from.host_out : from.nic_out,
                             on_host ? host_speed : nic_speed(ranks[transfer.from.rank]));
    const double taken = pass(on_host ? to.host_in : to.nic_in,
                              on_host ? host_speed : nic_speed(world_.subscribers[transfer.to]));
    if (published) left(outboxes_[transfer.from.rank], gone);
    return std::max(gone, taken) + options_.seconds_per_transfer;
  }

  void arrive(const Transfer& transfer, double at) {
    Gate& opened = gate(transfer.to, transfer.chunk, transfer.hop);
    opened.open_at = std::max(opened.open_at, at);
    if (--opened.awaited > 0) return;
    for (const std::uint32_t each : opened.waiting) ready_.push({opened.open_at, each});
  }

  const World& world_;
  const Loads& loads_;
  const std::span<const Transfer> transfers_;
  const PlanOptions& options_;
  std::vector<Queues> publishers_, subscribers_;
  std::vector<Outbox> outboxes_;
  std::vector<std::unordered_map<std::uint64_t, Gate>> gates_;  // by subscriber
  std::priority_queue<Ready, std::vector<Ready>, std::greater<>> ready_;
};

}  // namespace

double predict(const World& world, const Loads& loads, std::span<const Transfer> transfers,
               const PlanOptions& options) {
  return Simulation(world, loads, transfers, options).run();
}

}  // namespace weft::weights
