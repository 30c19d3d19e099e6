#include "driver/log.hpp"

namespace weft::cuda_sim {
namespace {

// A test that runs for hours must not fill the machine's memory.
constexpr std::size_t most_records = std::size_t{1} << 20;

}  // namespace

void Log::add(Record record) {
  record.sequence = draw();
  if (record.operation == Operation::copy) count(record);
  if (records_.size() < most_records)
    records_.push_back(record);
  else
    ++counters_.records_lost;
}

void Log::count(const Record& copy) {
  ++copies_[static_cast<std::size_t>(copy.phase)];
  if (copy.phase != Phase::ended || copy.status != success) return;
  const auto direction = static_cast<std::size_t>(copy.direction);
  ++counters_.copies[direction];
  counters_.bytes[direction] += copy.bytes;
  if (!copy.pageable) return;
  ++counters_.pageable_copies;
  counters_.pageable_bytes += copy.bytes;
}

void Log::clear() {
  records_.clear();
  copies_ = {};
  counters_ = {};
}

}  // namespace weft::cuda_sim
