// What the fabric is like and what goes wrong in it: numbers with names, that hold for all NICs,
// for those of one host, or for one NIC, and that change while the device runs.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace weft::efa_sim {

/// The settings; README.md says what each means. Probabilities are from 0 to 1, switches 0 or 1.
enum class Setting : std::size_t {
  // What the device can do; read when a process opens it.
  part,
  read,
  write,
  unsolicited,
  interrupts,
  send_queue,
  receive_queue,
  inline_size,
  message,
  // What it has room for.
  region_pages,
  write_pages,
  pages,
  regions,
  address_handles,
  // How it moves data.
  mtu,
  reorder,
  delay_us,
  jitter_us,
  require_address,
  // What goes wrong when a process asks for something.
  absent,
  open_fail,
  link_down,
  fork,
  register_fail,
  register_cost,
  register_cost_held,
  reuse_keys,
  // What goes wrong with operations.
  eagain,
  stall,
  error,
  error_nth,
  error_operation,
  error_status,
  error_part,
  rnr,
  rnr_us,
  rnr_fail,
  drop_data,
  duplicate,
  duplicate_us,
  nic_down,
  dead_queue_pair,
  dead_process,
  peer_timeout_ms,
  count_
};
constexpr std::size_t setting_count = static_cast<std::size_t>(Setting::count_);

/// The settings as they are for one NIC.
class NicSettings {
 public:
  double operator[](Setting setting) const { return values_[static_cast<std::size_t>(setting)]; }
  bool on(Setting setting) const { return (*this)[setting] != 0; }
  std::uint32_t number(Setting setting) const {
    return static_cast<std::uint32_t>(std::min((*this)[setting], 4294967295.0));
  }

 private:
  friend class Settings;
  std::array<double, setting_count> values_;
};

class Settings {
 public:
  /// With these from the beginning.
  explicit Settings(std::string_view initial = {});
  /// Takes over "name=value" with commas or white space between. A name may begin with "h3." (for
  /// host 3) and then with "efa_1." (for the NIC of that name); the narrower setting wins. The word
  /// "clear" goes back to the beginning. Throws std::invalid_argument, and then nothing
  /// was taken over.
  void apply(std::string_view text);
  NicSettings of(std::uint32_t host, const std::string& nic) const;

 private:
  std::map<std::string, double> initial_, set_;
};

/// A NIC of every simulated host.
struct NicDescription {
  std::string name;
  std::string pci;
  std::uint32_t gigabits;
  int numa_node = -1;  // -1: as where the machine doesn't say
};

/// Reads "name@pci-address@gigabits" or "name@pci-address@gigabits@numa-node" with commas between.
/// Throws std::invalid_argument.
std::vector<NicDescription> parse_nics(std::string_view text);
/// The text for a number of NICs, as an instance with many of them would have them.
std::string nics_text(unsigned count);

/// The parts of a text between any of the separators, without empty ones.
std::vector<std::string> split(std::string_view text, std::string_view separators);

}  // namespace weft::efa_sim
