#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "command/options.hpp"
#include "common/local_address.hpp"
#include "common/options.hpp"

namespace weft::perf {
namespace {

std::optional<std::string> error_of_targets(const Options& options) {
  const std::uint64_t there = options.peers.size(), most = most_targets_of(options.grid);
  if (there > most_targets) return fmt::format("--peer takes {} targets at most", most_targets);
  if (there > 0 && most > there)
    return fmt::format("--targets asks for {} at once, and --peer has {}", most, there);
  return std::nullopt;
}

std::optional<std::string> error_of_from(const Options& options) {
  const std::uint64_t there = options.from.size(), most = most_initiators_of(options.grid);
  if (there > most_initiators)
    return fmt::format("--from takes {} initiators at most", most_initiators);
  if (there > 0 && most > there)
    return fmt::format("--initiators asks for {} at once, and --from has {}", most, there);
  return std::nullopt;
}

bool any_is_raw(const std::vector<Baseline>& baselines) {
  return std::any_of(baselines.begin(), baselines.end(),
                     [](const Baseline& each) { return each.kind == Baseline::Kind::raw; });
}

std::optional<std::string> error_of_baselines(const Options& options) {
  Sites sites;
  sites.initiators = most_initiators_of(options.grid);
  sites.targets = most_targets_of(options.grid);
  sites.initiators_elsewhere = std::any_of(options.from.begin(), options.from.end(), is_elsewhere);
  sites.target_elsewhere = !options.peers.empty() && any_is_raw(options.sweep.baselines) &&
                           !tool::is_this_machine(options.peers.front());
  sites.cores = std::thread::hardware_concurrency();
  for (const Baseline& baseline : options.sweep.baselines) {
    if (auto fits = check(baseline, sites); !fits) return fits.error().message();
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> usage_error(const Options& options) {
  if (!options.listen && !options.local && options.peers.empty())
    return "one of --local, --listen and --peer is needed";
  if (options.listen) {
    const auto wrong = tool::complaint_about_listening(options.site.listen, options.site.advertise);
    if (!wrong.empty()) return wrong;
  }
  const std::uint64_t count = options.sweep.run.length.operations;
  if (count > 0 && count < most_initiators_of(options.grid))
    return "each initiator needs an operation of --count at least";
  if (const auto wrong = error_of_targets(options)) return wrong;
  if (const auto wrong = error_of_from(options)) return wrong;
  return error_of_baselines(options);
}

}  // namespace weft::perf
