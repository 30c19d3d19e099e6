#include "workload/grid.hpp"

#include <fmt/format.h>

#include <charconv>
#include <limits>
#include <optional>
#include <string>

namespace weft::perf {
namespace {

constexpr std::size_t most_numbers = 4096;
constexpr std::uint64_t greatest = std::numeric_limits<std::uint64_t>::max();

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (;;) {
    const std::size_t at = text.find(separator);
    parts.push_back(text.substr(0, at));
    if (at == text.npos) return parts;
    text.remove_prefix(at + 1);
  }
}

/// How a range goes from one number to the next.
struct Increment {
  bool times = true;
  std::uint64_t by = 2;

  std::optional<std::uint64_t> after(std::uint64_t number) const {
    if (times ? number > greatest / by : number > greatest - by) return std::nullopt;
    return times ? number * by : number + by;
  }
};

Result<Increment> parse_step(std::string_view text, Multiples multiples) {
  Increment step;
  step.times = text.starts_with('x');
  if (!step.times && !text.starts_with('+'))
    return fail(Code::invalid_argument,
                fmt::format("'{}' is no step: it is x2, or +4 to add", text));
  auto by = parse_number(text.substr(1), multiples);
  if (!by) return fail(std::move(by.error()));
  step.by = *by;
  if (step.by < (step.times ? 2U : 1U))
    return fail(Code::invalid_argument, fmt::format("the step '{}' never ends", text));
  return step;
}

Result<void> append_range(std::string_view text, Multiples multiples,
                          std::vector<std::uint64_t>& numbers) {
  const auto parts = split(text, ':');
  if (parts.size() > 3)
    return fail(Code::invalid_argument, fmt::format("'{}' is no range: it is FROM:TO:xN", text));
  const auto from = parse_number(parts.front(), multiples);
  if (!from) return fail(from.error());
  if (parts.size() == 1) return numbers.push_back(*from), Result<void>();
  const auto to = parse_number(parts[1], multiples);
  if (!to) return fail(to.error());
  const auto step =
      parts.size() == 3 ? parse_step(parts[2], multiples) : Result<Increment>(Increment{});
  if (!step) return fail(step.error());
  if (*from > *to)
    return fail(Code::invalid_argument, fmt::format("the range '{}' runs backwards", text));
  if (*from == 0 && step->times)
    return fail(Code::invalid_argument, fmt::format("the range '{}' never leaves 0", text));
  for (std::optional<std::uint64_t> next = from.value(); next && *next <= *to;
       next = step->after(*next)) {
    if (numbers.size() > most_numbers) break;
    numbers.push_back(*next);
  }
  return {};
}

}  // namespace

Result<std::vector<std::uint64_t>> parse_grid(std::string_view text, Multiples multiples) {
  std::vector<std::uint64_t> numbers;
  for (const std::string_view item : split(text, ','))
    if (auto appended = append_range(item, multiples, numbers); !appended)
      return fail(std::move(appended.error()));
  if (numbers.size() > most_numbers)
    return fail(Code::invalid_argument,
                fmt::format("'{}' means more than {} numbers", text, most_numbers));
  return numbers;
}

}  // namespace weft::perf
