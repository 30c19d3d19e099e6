#include "metrics/totals.hpp"

#include "base/sync.hpp"

namespace weft::core {

void TransferTotals::add(const EndedTransfer& transfer) {
  const auto direction = static_cast<std::size_t>(transfer.path.direction);
  const std::size_t priority = index_of(transfer.priority);
  Class& same = classes[direction][priority];
  ++same.ended[static_cast<std::size_t>(transfer.state) - static_cast<std::size_t>(State::done)];
  same.bytes_done += transfer.bytes_done;
  same.ranges += transfer.ranges;
  same.runs += transfer.runs;
  same.retries += transfer.retries;
  Carried& way = carried[transfer.path.index()];
  way.bytes += transfer.bytes_done;
  way.copied += transfer.copied;
  if (transfer.state != State::done) return;
  same.elapsed.add(static_cast<std::uint64_t>(transfer.elapsed.count()));
  same.queued.add(static_cast<std::uint64_t>(transfer.queued.count()));
  same.sizes.add(transfer.bytes);
}

TransferTotals::Class& TransferTotals::Class::operator+=(const Class& other) {
  for (std::size_t i = 0; i < final_states; ++i) ended[i] += other.ended[i];
  bytes_done += other.bytes_done;
  ranges += other.ranges;
  runs += other.runs;
  retries += other.retries;
  elapsed += other.elapsed;
  queued += other.queued;
  sizes += other.sizes;
  return *this;
}

TransferTotals::Class TransferTotals::of(Direction direction) const {
  Class sum;
  for (const Class& each : classes[static_cast<std::size_t>(direction)]) sum += each;
  return sum;
}

TransferTotals::Class TransferTotals::of_priority(std::size_t priority) const {
  Class sum;
  for (const auto& each : classes) sum += each[priority];
  return sum;
}

TransferTotals& TransferTotals::operator+=(const TransferTotals& other) {
  for (std::size_t direction = 0; direction < directions; ++direction)
    for (std::size_t priority = 0; priority < priorities; ++priority)
      classes[direction][priority] += other.classes[direction][priority];
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
    const Lock lock(shards_[rail].mutex);
    totals.push_back(shards_[rail].totals);
  }
  return totals;
}

}  // namespace weft::core
