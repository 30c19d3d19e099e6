#include "settings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <stdexcept>

namespace weft::efa_sim {
namespace {

struct Known {
  std::string_view name;
  double initial;
};

// In the order of Setting.
constexpr Known known[] = {
    {"part", 0xefa0},
    {"read", 1},
    {"write", 1},
    {"unsolicited", 1},
    {"interrupts", 1},
    {"send_queue", 4096},
    {"receive_queue", 32768},
    {"inline", 32},
    {"message", 8928},
    {"region_pages", 48 << 20},
    {"write_pages", 1 << 20},
    {"pages", 24 << 20},
    {"regions", 1 << 18},
    {"address_handles", 5120},
    {"mtu", 8192},
    {"reorder", 32},
    {"delay_us", 0},
    {"jitter_us", 0},
    {"require_address", 1},
    {"absent", 0},
    {"open_fail", 0},
    {"link_down", 0},
    {"fork", 0},
    {"register_fail", 0},
    {"register_cost", 0},
    {"register_cost_held", 0},
    {"reuse_keys", 0},
    {"eagain", 0},
    {"stall", 0},
    {"error", 0},
    {"error_nth", 0},
    {"error_operation", 0},
    {"error_status", 12},
    {"error_part", 0.5},
    {"rnr", 0},
    {"rnr_us", 0},
    {"rnr_fail", 0},
    {"drop_data", 0},
    {"duplicate", 0},
    {"duplicate_us", 1000},
    {"nic_down", 0},
    {"dead_queue_pair", 0},
    {"dead_process", 0},
    {"peer_timeout_ms", 2000},
};
static_assert(std::size(known) == setting_count);

[[noreturn]] void refuse(const std::string& why) {
  throw std::invalid_argument(why);
}

bool is_known(std::string_view name) {
  return std::ranges::any_of(known, [&](const Known& each) { return each.name == name; });
}

double number_in(std::string_view word, std::string_view text) {
  // Words for the operations, so that nobody has to know their numbers.
  constexpr std::string_view operations[] = {"any", "send", "read", "write"};
  if (const auto found = std::ranges::find(operations, text); found != std::end(operations))
    return static_cast<double>(found - std::begin(operations));
  double value = 0;
  std::uint64_t bits = 0;
  const char* const end = text.data() + text.size();
  if (text.starts_with("0x")) {
    if (std::from_chars(text.data() + 2, end, bits, 16).ptr == end && text.size() > 2)
      return static_cast<double>(bits);
  } else if (std::from_chars(text.data(), end, value).ptr == end && !text.empty()) {
    if (value >= 0) return value;
  }
  refuse(fmt::format("'{}' is no number", word));
}

}  // namespace

std::vector<std::string> split(std::string_view text, std::string_view separators) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find_first_of(separators), text.size());
    if (end > 0) parts.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

Settings::Settings(std::string_view initial) {
  apply(initial);
  initial_ = set_;
}

void Settings::apply(std::string_view text) {
  auto changed = set_;
  for (const std::string& word : split(text, ", \t\n")) {
    if (word == "clear") {
      changed = initial_;
      continue;
    }
    const std::size_t equals = word.find('=');
    if (equals == std::string::npos) refuse(fmt::format("'{}' is not name=value", word));
    const std::string name = word.substr(0, equals);
    // npos + 1 = 0: a name without a scope.
    if (!is_known(std::string_view(name).substr(name.rfind('.') + 1)))
      refuse(fmt::format("there is no setting '{}'", name));
    changed[name] = number_in(word, std::string_view(word).substr(equals + 1));
  }
  set_ = std::move(changed);
}

NicSettings Settings::of(std::uint32_t host, const std::string& nic) const {
  NicSettings result;
  const std::string scopes[] = {"", fmt::format("h{}.", host), nic + ".",
                                fmt::format("h{}.{}.", host, nic)};
  for (std::size_t i = 0; i < setting_count; ++i) {
    result.values_[i] = known[i].initial;
    for (const std::string& scope : scopes) {
      const auto found = set_.find(scope + std::string(known[i].name));
      if (found != set_.end()) result.values_[i] = found->second;
    }
  }
  return result;
}

std::vector<NicDescription> parse_nics(std::string_view text) {
  std::vector<NicDescription> nics;
  for (const std::string& word : split(text, ", \t\n")) {
    const auto parts = split(word, "@");
    if (parts.size() < 3 || parts.size() > 4)
      refuse(fmt::format("'{}' is not name@pci-address@gigabits or ...@numa-node", word));
    nics.push_back({parts[0], parts[1], static_cast<std::uint32_t>(number_in(word, parts[2]))});
    if (parts.size() == 4) nics.back().numa_node = static_cast<int>(number_in(word, parts[3]));
    if (parts[0].size() > 31 || parts[1].size() > 31) refuse(fmt::format("'{}' is long", word));
  }
  if (nics.size() > 64) refuse("at most 64 NICs");
  return nics;
}

std::string nics_text(unsigned count) {
  std::string text;
  for (unsigned i = 0; i < count; ++i) {
    // Four to a switch of their own.
    text += fmt::format("{}efa_{}@0000:{:02x}:{:02x}.0@100", i == 0 ? "" : ",", i,
                        0x10 + i / 4 * 0x10, 0x1a + i % 4);
  }
  return text;
}

}  // namespace weft::efa_sim
