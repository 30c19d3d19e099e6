#include "topo/nic_counters.hpp"

#include <charconv>
#include <filesystem>
#include <fstream>
#include <limits>

namespace weft {
namespace {

using NicCount = NicCounters::Count;

constexpr auto largest_count = std::numeric_limits<std::uint64_t>::max();

constexpr NicCount NicCounters::*all_nic_counters[] = {
    &NicCounters::sent,          &NicCounters::received,
    &NicCounters::written,       &NicCounters::written_by_peers,
    &NicCounters::read,          &NicCounters::read_by_peers,
    &NicCounters::messages_sent, &NicCounters::messages_received,
};

NicCount sum_of(NicCount a, NicCount b) {
  if (!a || !b || *a > largest_count - *b) return std::nullopt;
  return *a + *b;
}

}  // namespace

NicCount NicCounters::left_by_rdma() const {
  return sum_of(written, read_by_peers);
}

NicCount NicCounters::came_by_rdma() const {
  return sum_of(written_by_peers, read);
}

NicCounters growth(const NicCounters& before, const NicCounters& after) {
  NicCounters grown{.nic = after.nic, .rails = after.rails};
  for (const auto counter : all_nic_counters) {
    const NicCount then = before.*counter, now = after.*counter;
    if (then && now && *now >= *then) grown.*counter = *now - *then;
  }
  return grown;
}

namespace topo {
namespace {

namespace fs = std::filesystem;

struct CounterFile {
  NicCount NicCounters::*counter;
  const char* path;
  std::uint64_t unit;  // bytes
  std::uint64_t end;   // at which it stops, whatever comes
};

// Linux, drivers/infiniband/hw/efa/efa_verbs.c: efa_port_stats_names (those of RDMA only in newer
// kernels), and Documentation/ABI/stable/sysfs-class-infiniband: port_xmit_data, in units of four
// bytes, and of 32 bits where a device has no more.
constexpr CounterFile counter_files[] = {
    {&NicCounters::sent, "hw_counters/tx_bytes", 1, largest_count},
    {&NicCounters::received, "hw_counters/rx_bytes", 1, largest_count},
    {&NicCounters::written, "hw_counters/rdma_write_bytes", 1, largest_count},
    {&NicCounters::written_by_peers, "hw_counters/rdma_write_recv_bytes", 1, largest_count},
    {&NicCounters::read, "hw_counters/rdma_read_bytes", 1, largest_count},
    {&NicCounters::read_by_peers, "hw_counters/rdma_read_resp_bytes", 1, largest_count},
    {&NicCounters::messages_sent, "hw_counters/send_bytes", 1, largest_count},
    {&NicCounters::messages_received, "hw_counters/recv_bytes", 1, largest_count},
    {&NicCounters::sent, "counters/port_xmit_data", 4, std::numeric_limits<std::uint32_t>::max()},
    {&NicCounters::received, "counters/port_rcv_data", 4,
     std::numeric_limits<std::uint32_t>::max()},
};

/// Empty where there is no such file, or no number in it ("N/A (no PMA)").
NicCount count_in(const fs::path& port, const CounterFile& from) {
  std::ifstream file(port / from.path);
  std::string word;
  if (!(file >> word)) return std::nullopt;
  std::uint64_t value = 0;
  const char* const end = word.data() + word.size();
  const auto [rest, error] = std::from_chars(word.data(), end, value);
  if (error != std::errc{} || rest != end) return std::nullopt;
  if (value == from.end || value > largest_count / from.unit) return std::nullopt;
  return value * from.unit;
}

NicCounters counters_of(const fs::path& port) {
  NicCounters counters;
  for (const CounterFile& file : counter_files)
    if (!(counters.*file.counter)) counters.*file.counter = count_in(port, file);
  return counters;
}

}  // namespace

std::optional<NicCounters> read_nic_counters(const std::string& sysfs, const std::string& device) {
  if (device.empty() || device.front() == '.' || device.find('/') != device.npos)
    return std::nullopt;
  std::optional<NicCounters> sum;
  std::error_code failed;
  for (fs::directory_iterator port(fs::path(sysfs) / "class/infiniband" / device / "ports", failed);
       !failed && port != fs::directory_iterator(); port.increment(failed)) {
    const NicCounters counters = counters_of(port->path());
    if (sum)
      for (const auto each : all_nic_counters) (*sum).*each = sum_of((*sum).*each, counters.*each);
    else
      sum = counters;
  }
  if (sum) sum->nic = device;
  return sum;
}

}  // namespace topo
}  // namespace weft
