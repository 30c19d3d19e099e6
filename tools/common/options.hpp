// Options, as both programs have them: one spelling, one meaning and one parser each.
#pragma once

#include <CLI/CLI.hpp>
#include <concepts>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>
#include <weft/deadline.hpp>
#include <weft/error.hpp>

#include "common/names.hpp"
#include "common/units.hpp"

namespace weft::tool {

/// "1.5", from `least` to a day.
Result<Nanoseconds> parse_seconds(const std::string& text, double least);

/// From the least to the greatest number that an option takes.
struct Bounds {
  std::uint64_t least = 0;
  std::uint64_t greatest = std::numeric_limits<std::uint64_t>::max();
};

/// The type of an option's value, be the option left out or not.
template <typename Target>
struct ValueOf {
  using Type = Target;
};
template <typename Value>
struct ValueOf<std::optional<Value>> {
  using Type = Value;
};

/// The options below one heading of a command's help. A wrong value ends the parsing with a
/// CLI::ValidationError that names the option.
class OptionGroup {
 public:
  OptionGroup(CLI::App& command, std::string heading)
      : command_(command), heading_(std::move(heading)) {}

  CLI::Option* flag(const std::string& name, bool& target, const std::string& text);
  CLI::Option* file(const std::string& name, std::string& target, const std::string& text);
  CLI::Option* text(const std::string& name, std::string& target, const std::string& type,
                    const std::string& text);
  /// Values with commas between them.
  CLI::Option* list(const std::string& name, std::vector<std::string>& target,
                    const std::string& text);
  /// Likewise, and `parse` reads each of them.
  template <typename Value, typename Parse>
  CLI::Option* parsed_list(const std::string& name, std::vector<Value>& target, Parse parse,
                           const std::string& type, const std::string& text) {
    return command_
        .add_option_function<std::vector<std::string>>(
            name,
            [&target, parse, name](const std::vector<std::string>& given) {
              target.clear();
              for (const std::string& each : given) {
                auto value = parse(each);
                if (!value) throw CLI::ValidationError(name, value.error().message());
                target.push_back(std::move(*value));
              }
            },
            text)
        ->delimiter(',')
        ->type_name(type)
        ->group(heading_);
  }
  /// Seconds, of which there may be fractions.
  CLI::Option* seconds(const std::string& name, Nanoseconds& target, double least,
                       const std::string& text);
  CLI::Option* words(const std::string& name, std::string& target,
                     const std::vector<std::string>& known, const std::string& text);

  /// "17", "64K".
  template <typename Target>
  CLI::Option* number(const std::string& name, Target& target, Multiples multiples, Bounds bounds,
                      const std::string& text) {
    using Number = typename ValueOf<Target>::Type;
    bounds.greatest = std::min<std::uint64_t>(bounds.greatest, std::numeric_limits<Number>::max());
    return parsed(
        name, target,
        [=](const std::string& given) {
          return parse_bounded(given, multiples, bounds).map([](std::uint64_t value) {
            return static_cast<Number>(value);
          });
        },
        multiples == Multiples::binary ? "N[K|M|G]" : "N", text);
  }

  /// Likewise, with commas between them.
  template <typename Number>
  CLI::Option* numbers(const std::string& name, std::vector<Number>& target, Multiples multiples,
                       Bounds bounds, const std::string& text) {
    bounds.greatest = std::min<std::uint64_t>(bounds.greatest, std::numeric_limits<Number>::max());
    return parsed_list(
        name, target,
        [=](const std::string& given) {
          return parse_bounded(given, multiples, bounds).map([](std::uint64_t value) {
            return static_cast<Number>(value);
          });
        },
        multiples == Multiples::binary ? "N[K|M|G],..." : "N,...", text);
  }

  template <typename Target, typename Enum>
  CLI::Option* choice(const std::string& name, Target& target, const Names<Enum>& names,
                      const std::string& text) {
    return parsed(
        name, target,
        [names](const std::string& given) -> Result<Enum> {
          if (const auto found = names.find(given); found != names.end()) return found->second;
          return none_of(given, listed(names, ", "));
        },
        listed(names, "|"), text);
  }

  /// `parse` turns the text into the target, or complains about it.
  template <typename Target, typename Parse>
  CLI::Option* parsed(const std::string& name, Target& target, Parse parse, const std::string& type,
                      const std::string& text) {
    return add(name, type, text, [&target, parse, name](const std::string& given) {
      auto value = parse(given);
      if (!value) throw CLI::ValidationError(name, value.error().message());
      target = std::move(*value);
    });
  }

 private:
  static Result<std::uint64_t> parse_bounded(const std::string& text, Multiples multiples,
                                             Bounds bounds);
  static tl::unexpected<Error> none_of(const std::string& given, const std::string& known);
  CLI::Option* add(const std::string& name, const std::string& type, const std::string& text,
                   std::function<void(const std::string&)> take);

  CLI::App& command_;
  const std::string heading_;
};

/// What weft::options() says of one of them, without its backticks.
std::string doc_of(std::string_view option);
/// The names that `providers` takes, as its sentence has them.
std::string provider_names();

// Options of both programs.
CLI::Option* add_nics(OptionGroup& group, std::vector<std::string>& nics);
CLI::Option* add_rail_address(OptionGroup& group, std::string& address);
CLI::Option* add_advertise(OptionGroup& group, std::string& address);
CLI::Option* add_unauthenticated(OptionGroup& group, bool& allowed);
CLI::Option* add_ready_fd(OptionGroup& group, int& descriptor);
/// Writes the address there, and closes it; nothing for -1.
Result<void> tell_ready(int descriptor, const std::string& address);
CLI::Option* add_metrics(OptionGroup& group, std::string& address);
CLI::Option* add_timeout(OptionGroup& group, Nanoseconds& timeout);
CLI::Option* add_progress(OptionGroup& group, std::string& when);

/// The names that --model takes.
std::string known_models();
/// For --model: refuses unknown names.
CLI::Validator known_model();

/// The complaint about --listen with a port alone, or with every interface's address and no
/// --advertise; or nothing.
std::string complaint_about_listening(const std::string& listen, const std::string& advertise);

}  // namespace weft::tool
