// Options that benchmarks have in common: spelled, and read, as weft-perf's.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstddef>
#include <string>
#include <vector>
#include <weft/engine.hpp>

#include "common/options.hpp"

namespace weft::perf::bench {

using tool::Bounds;
using tool::Multiples;
using tool::OptionGroup;

inline std::string seconds_text(Nanoseconds time) {
  return fmt::format("{:g}", std::chrono::duration<double>(time).count());
}

// What the targets hold is the default.

template <typename Number>
CLI::Option* add_numbers(OptionGroup& group, const std::string& name, std::vector<Number>& numbers,
                         Multiples multiples, Bounds bounds, const std::string& text) {
  return group.numbers(name, numbers, multiples, bounds, text)
      ->default_str(fmt::format("{}", fmt::join(numbers, ",")));
}

inline CLI::Option* add_providers(OptionGroup& group, std::vector<std::string>& providers,
                                  const std::string& text) {
  return group.list("--providers", providers, text)
      ->default_str(fmt::format("{}", fmt::join(providers, ",")));
}

inline CLI::Option* add_sizes(OptionGroup& group, std::vector<std::size_t>& sizes) {
  return add_numbers(group, "--size", sizes, Multiples::binary, {1}, "Bytes of a transfer");
}

inline CLI::Option* add_windows(OptionGroup& group, std::vector<unsigned>& windows,
                                const std::string& text = "Transfers in flight") {
  return add_numbers(group, "--window", windows, Multiples::decimal, {1}, text);
}

inline CLI::Option* add_repeats(OptionGroup& group, unsigned& repeats,
                                const std::string& text = "Runs of each point") {
  return group.number("--repeats", repeats, Multiples::decimal, {1, 1000}, text)
      ->default_str(std::to_string(repeats));
}

inline CLI::Option* add_time(OptionGroup& group, Nanoseconds& time,
                             const std::string& text = "Length of one run") {
  return group.seconds("--time", time, 0.001, text)->default_str(seconds_text(time));
}

inline CLI::Option* add_engine_progress(OptionGroup& group, bool& manual) {
  static const tool::Names<bool> names = {{"threads", false}, {"manual", true}};
  return group
      .choice("--engine-progress", manual, names,
              "Progress of the initiator: threads, manual (the waiting thread polls)")
      ->default_str("threads");
}

}  // namespace weft::perf::bench
