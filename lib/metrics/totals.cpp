#include "metrics/totals.hpp"

namespace weft::core {

void TransferTotals::add(const EndedTransfer& transfer) {
  const auto direction = static_cast<std::size_t>(transfer.path.direction);
  const std::size_t priority = index_of(transfer.priority);
  Class& same = classes[direction][priority];
  ++same.ended[static_cast<std::size_t>(transfer.state) - static_cast<std::size_t>(State::done)];
  same.bytes_done += transfer.bytes_done;
  ranges[direction] += transfer.ranges;
  runs[direction] += transfer.runs;
  retries += transfer.retries;
  Carried& way = carried[transfer.path.index()];
  way.bytes += transfer.bytes_done;
  way.copied += transfer.copied;
  if (transfer.state != State::done) return;
  same.elapsed.add(static_cast<std::uint64_t>(transfer.elapsed.count()));
  queued[priority].add(static_cast<std::uint64_t>(transfer.queued.count()));
  sizes[direction].add(transfer.bytes);
}

TransferTotals& TransferTotals::operator+=(const TransferTotals& other) {
  for (std::size_t direction = 0; direction < directions; ++direction) {
    for (std::size_t priority = 0; priority < priorities; ++priority) {
      Class& sum = classes[direction][priority];
      const Class& more = other.classes[direction][priority];
      for (std::size_t i = 0; i < final_states; ++i) sum.ended[i] += more.ended[i];
      sum.bytes_done += more.bytes_done;
      sum.elapsed += more.elapsed;
    }
    sizes[direction] += other.sizes[direction];
    ranges[direction] += other.ranges[direction];
    runs[direction] += other.runs[direction];
  }
  for (std::size_t i = 0; i < priorities; ++i) queued[i] += other.queued[i];
  retries += other.retries;
  for (std::size_t i = 0; i < PathKind::count; ++i) {
    carried[i].bytes += other.carried[i].bytes;
    carried[i].copied += other.carried[i].copied;
  }
  return *this;
}

TransferCounters::TransferCounters(std::size_t rails)
    : rails_(rails), shards_(std::make_unique<Shard[]>(rails)) {}

std::vector<TransferTotals> TransferCounters::read() const {
  std::vector<TransferTotals> totals;
  totals.reserve(rails_);
  for (std::size_t rail = 0; rail < rails_; ++rail) {
    const std::lock_guard lock(shards_[rail].mutex);
    totals.push_back(shards_[rail].totals);
  }
  return totals;
}

}  // namespace weft::core
