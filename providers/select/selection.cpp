#include "providers/select/selection.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <fnmatch.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>

namespace weft::providers {
namespace {

constexpr std::size_t none = std::numeric_limits<std::size_t>::max();

bool fits(const std::string& pattern, const std::string& name) {
  return fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
}

/// The position of the first pattern that fits; `none` if none does.
std::size_t first_fit(std::span<const std::string> patterns, const std::string& name) {
  const auto found = std::find_if(patterns.begin(), patterns.end(),
                                  [&](const std::string& each) { return fits(each, name); });
  return found == patterns.end() ? none : static_cast<std::size_t>(found - patterns.begin());
}

/// The names in a list of Config, and what it forbids by "^name".
std::vector<std::string> named_in(std::span<const std::string> terms) {
  std::vector<std::string> names;
  for (const std::string& term : terms)
    if (!term.starts_with('^')) names.push_back(term);
  return names;
}

std::vector<std::string> forbidden_in(std::span<const std::string> terms) {
  std::vector<std::string> names;
  for (const std::string& term : terms)
    if (term.starts_with('^')) names.push_back(term.substr(1));
  return names;
}

bool contains(const auto& list, const auto& value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

/// A whole provider.
Choice all_of(const ProviderName& provider) {
  Choice all{provider.name, std::vector<unsigned>(provider.ways.size())};
  std::iota(all.ways.begin(), all.ways.end(), 0U);
  return all;
}

/// The meaning of a name: a provider, or one way of a provider. Where libfabric and Weft give one
/// name to different things ("shm"), it is Weft's.
std::optional<Choice> meaning_of(std::span<const ProviderName> known, std::string_view name) {
  for (const ProviderName& each : known)
    if (each.name == name) return all_of(each);
  for (const ProviderName& each : known)
    for (unsigned way = 0; way < each.ways.size(); ++way)
      if (each.ways[way] == name) return Choice{each.name, {way}};
  return std::nullopt;
}

/// Adds what is not among the choices yet.
void add(std::vector<Choice>& choices, const Choice& more) {
  const auto same = std::find_if(choices.begin(), choices.end(), [&](const Choice& each) {
    return each.provider == more.provider;
  });
  if (same == choices.end()) {
    choices.push_back(more);
    return;
  }
  for (const unsigned way : more.ways)
    if (!contains(same->ways, way)) same->ways.push_back(way);
}

void remove(std::vector<Choice>& choices, const Choice& less) {
  for (Choice& each : choices) {
    if (each.provider != less.provider) continue;
    std::erase_if(each.ways, [&](unsigned way) { return contains(less.ways, way); });
  }
  std::erase_if(choices, [](const Choice& each) { return each.ways.empty(); });
}

/// "tcp (net, tcp;ofi_rxm)": all names that mean it or one of its ways.
std::string names_for(std::span<const ProviderName> known, const ProviderName& provider) {
  std::vector<std::string_view> ways;
  for (const std::string_view way : provider.ways)
    if (const auto meaning = meaning_of(known, way);
        way != provider.name && meaning->provider == provider.name)
      ways.push_back(way);
  if (ways.empty()) return std::string(provider.name);
  return fmt::format("{} ({})", provider.name, fmt::join(ways, ", "));
}

/// One decision after the other about the same found_nics.
class Chooser {
 public:
  Chooser(std::span<const FoundNic> seen, std::span<const ProviderName> known, const Wanted& wanted)
      : seen_(seen),
        known_(known),
        wanted_(wanted),
        providers_(named_in(wanted.providers)),
        without_(forbidden_in(wanted.providers)),
        nics_(named_in(wanted.nics)),
        without_nics_(forbidden_in(wanted.nics)) {
    result_.reasons.resize(seen.size());
  }

  Result<Selection> choose() {
    if (auto checked = check_names(); !checked) return fail(std::move(checked.error()));
    for (const Choice& choice : choices_of(known_, wanted_.providers)) {
      take_from(choice);
      const bool named = !providers_.empty();
      if (named && !has_rail_of(choice.provider))
        return fail(Code::unavailable, why_none_of(choice.provider));
    }
    for (std::size_t i = 0; i < seen_.size(); ++i)
      if (result_.reasons[i].empty()) result_.reasons[i] = why_never_chosen(seen_[i]);
    return std::move(result_);
  }

 private:
  Result<void> check_names() const {
    for (const auto* list : {&providers_, &without_})
      for (const std::string& name : *list)
        if (!meaning_of(known_, name)) return fail(Code::not_found, unknown_provider(name));
    for (const std::string& pattern : nics_) {
      const bool seen = std::any_of(seen_.begin(), seen_.end(), [&](const FoundNic& each) {
        return each.is_nic && !each.domain.empty() && fits(pattern, each.domain);
      });
      if (!seen) return fail(Code::not_found, unknown_nic(pattern));
    }
    return {};
  }

  std::string unknown_provider(const std::string& name) const {
    std::vector<std::string> names;
    for (const ProviderName& each : known_) names.push_back(names_for(known_, each));
    return fmt::format("this build has no provider '{}'; it has: {}", name, fmt::join(names, ", "));
  }

  std::string unknown_nic(const std::string& pattern) const {
    std::vector<std::string> names;
    for (const FoundNic& each : seen_) {
      if (each.is_nic && !each.domain.empty() && !contains(names, each.domain))
        names.push_back(each.domain);
    }
    return fmt::format("no NIC is called '{}'; there are: {}", pattern, fmt::join(names, ", "));
  }

  void take_from(const Choice& choice) {
    std::vector<std::size_t> usable;
    for (std::size_t i = 0; i < seen_.size(); ++i) {
      if (!covers(choice, seen_[i])) continue;
      result_.reasons[i] = why_not(seen_[i]);
      if (result_.reasons[i].empty()) usable.push_back(i);
    }
    usable = one_way_each(usable, choice);
    std::stable_sort(usable.begin(), usable.end(),
                     [&](std::size_t a, std::size_t b) { return distance(a) < distance(b); });
    const std::size_t limit = nics_.empty() ? std::max(1U, wanted_.max_nics) : usable.size();
    for (std::size_t i = 0; i < usable.size(); ++i) {
      const FoundNic& nic = seen_[usable[i]];
      result_.reasons[usable[i]] =
          i < limit ? nic.score
                    : fmt::format(
                          "{} others are as near or nearer, and no more than {} were asked "
                          "for (max_nics)",
                          limit, limit);
      if (i < limit) result_.taken.push_back(usable[i]);
    }
  }

  static bool covers(const Choice& choice, const FoundNic& nic) {
    return choice.provider == nic.provider && contains(choice.ways, nic.way);
  }

  std::string why_not(const FoundNic& nic) const {
    if (!nic.problem.empty()) return nic.problem;
    if (nic.chosen_by_ip && nic.ip != wanted_.rail_address)
      return fmt::format("its address is {}, and rails were asked for on {}{}", nic.ip,
                         wanted_.rail_address,
                         has_rail_address() ? ""
                                            : ", which no NIC here has: set rail_address to an "
                                              "address of this machine");
    if (!nic.is_nic) return {};
    if (first_fit(without_nics_, nic.domain) != none) return "this NIC is forbidden";
    if (!nics_.empty() && first_fit(nics_, nic.domain) == none)
      return "not among the NICs asked for";
    return {};
  }

  bool has_rail_address() const {
    return std::any_of(seen_.begin(), seen_.end(),
                       [&](const FoundNic& nic) { return nic.ip == wanted_.rail_address; });
  }

  /// Whether both are the same NIC: libfabric lists it once for each address, way and name.
  static bool same_nic(const FoundNic& one, const FoundNic& other) {
    return one.domain == other.domain || (!one.ip.empty() && one.ip == other.ip);
  }

  /// Whether `one` is the better way to a NIC: as itself, then by the address that was asked for.
  bool better(const FoundNic& one, const FoundNic& other, const Choice& choice) const {
    if (one.way == other.way)
      return one.ip == wanted_.rail_address && other.ip != wanted_.rail_address;
    const auto first = std::find_if(choice.ways.begin(), choice.ways.end(), [&](unsigned way) {
      return way == one.way || way == other.way;
    });
    return *first == one.way;
  }

  /// Of several ways to one NIC the best.
  std::vector<std::size_t> one_way_each(const std::vector<std::size_t>& usable,
                                        const Choice& choice) {
    std::vector<std::size_t> best;
    for (const std::size_t i : usable) {
      const auto same = std::find_if(best.begin(), best.end(), [&](std::size_t other) {
        return same_nic(seen_[i], seen_[other]);
      });
      if (same == best.end())
        best.push_back(i);
      else if (better(seen_[i], seen_[*same], choice))
        result_.reasons[std::exchange(*same, i)] = why_not_this_way(i);
      else
        result_.reasons[i] = why_not_this_way(*same);
    }
    return best;
  }

  std::string why_not_this_way(std::size_t taken) const {
    const FoundNic& way = seen_[taken];
    return fmt::format("the same NIC is better reached as {} {} {}", way.title, way.domain,
                       way.ip.empty() ? way.fabric : way.ip);
  }

  /// By the order in which NICs were named, else near ones first.
  std::size_t distance(std::size_t index) const {
    const FoundNic& nic = seen_[index];
    if (!nics_.empty()) return first_fit(nics_, nic.domain);
    const auto& nics = wanted_.near_nics;
    const auto listed = std::find_if(nics.begin(), nics.end(), [&](const std::string& each) {
      return each == nic.pci || each == nic.domain;
    });
    if (listed != nics.end()) return static_cast<std::size_t>(listed - nics.begin());
    const auto& near = wanted_.near_nodes;
    const bool far = nic.numa_node >= 0 && !near.empty() && !contains(near, nic.numa_node);
    return wanted_.near_nics.size() + (far ? 1 : 0);
  }

  bool has_rail_of(std::string_view provider) const {
    return std::any_of(result_.taken.begin(), result_.taken.end(),
                       [&](std::size_t i) { return seen_[i].provider == provider; });
  }

  std::string why_none_of(std::string_view provider) const {
    std::vector<std::string> reasons;
    for (std::size_t i = 0; i < seen_.size(); ++i)
      if (seen_[i].provider == provider && !result_.reasons[i].empty())
        reasons.push_back(fmt::format("{}{}{}: {}", seen_[i].title,
                                      seen_[i].domain.empty() ? "" : " ", seen_[i].domain,
                                      result_.reasons[i]));
    if (reasons.empty()) reasons.emplace_back("nothing of it was found");
    return fmt::format("provider '{}' can't be used; {}", provider, fmt::join(reasons, "; "));
  }

  std::string why_never_chosen(const FoundNic& nic) const {
    const bool forbidden = std::any_of(without_.begin(), without_.end(), [&](const auto& name) {
      return covers(*meaning_of(known_, name), nic);
    });
    const auto& allowed = wanted_.allowed;
    if (!allowed.empty() && !contains(allowed, nic.provider))
      return "the policy does not allow this provider";
    if (forbidden) return "this provider is forbidden";
    return providers_.empty() ? "taken only when it is asked for by name"
                              : "not among the providers asked for";
  }

  const std::span<const FoundNic> seen_;
  const std::span<const ProviderName> known_;
  const Wanted& wanted_;
  const std::vector<std::string> providers_, without_, nics_, without_nics_;
  Selection result_;
};

}  // namespace

std::vector<Choice> choices_of(std::span<const ProviderName> known,
                               std::span<const std::string> terms) {
  std::vector<Choice> choices;
  const auto named = named_in(terms);
  for (const std::string& name : named)
    if (const auto meaning = meaning_of(known, name)) add(choices, *meaning);
  if (named.empty())
    for (const ProviderName& each : known)
      if (each.by_itself) add(choices, all_of(each));
  for (const std::string& name : forbidden_in(terms))
    if (const auto meaning = meaning_of(known, name)) remove(choices, *meaning);
  return choices;
}

Result<Selection> select(std::span<const FoundNic> seen, std::span<const ProviderName> known,
                         const Wanted& wanted) {
  return Chooser(seen, known, wanted).choose();
}

std::string reject_reason(const Capability& record, const Wanted& wanted) {
  if (wanted.allow_emulation) return {};
  const bool write = record.write == Origin::emulated, read = record.read == Origin::emulated;
  if (!write && !read) return {};
  return fmt::format(
      "{} of {} would be emulated by messages, which allow_emulation = false rules "
      "out",
      write && read ? "writes and reads" : (write ? "writes" : "reads"), record.domain);
}

}  // namespace weft::providers
