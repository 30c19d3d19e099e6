#include "config/environment.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>

#include "config/option.hpp"

namespace weft::core {
namespace {

constexpr std::string_view prefix = "WEFT_";

// Variables that are no options: the library, its commands and its tests read them.
constexpr std::array<std::string_view, 7> others = {
    "WEFT_LOG",             // base/log.cpp
    "WEFT_LIBFABRIC",       // providers/libfabric/libfabric.cpp
    "WEFT_NIXL_UNCHECKED",  // lib/faces/nixl
    "WEFT_LONG",            // tests: the long forms
    "WEFT_FABTESTS",        // tests/efa_sim
    "WEFT_GPU_KERNELS",     // tests/gpu
    "WEFT_VM_CACHE",        // tests/vm
};
constexpr std::array<std::string_view, 3> prefixes_of_others = {
    "WEFT_TEST_",      // tests/support
    "WEFT_EFA_",       // tests/efa_sim
    "WEFT_CUDA_SIM_",  // tests/cuda_sim
};

bool known(std::string_view variable) {
  const auto is_it = [&](const OptionInfo& option) { return option.variable == variable; };
  const auto begins_it = [&](std::string_view begin) { return variable.starts_with(begin); };
  return std::any_of(options().begin(), options().end(), is_it) ||
         std::find(others.begin(), others.end(), variable) != others.end() ||
         std::any_of(prefixes_of_others.begin(), prefixes_of_others.end(), begins_it);
}

/// The option's name that a variable would stand for: "WEFT_RAILS" -> "rails".
std::string name_in(std::string_view variable) {
  std::string name(variable.substr(prefix.size()));
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
  return name;
}

std::string warning_of(std::string_view variable) {
  const OptionInfo* meant = nearest_option(name_in(variable));
  return fmt::format("the environment sets {}, which is no option of Weft's{}", variable,
                     meant != nullptr ? fmt::format("; did you mean {}?", meant->variable) : "");
}

}  // namespace

Environment environment_for(const Config& call) {
  Environment environment;
  if (!call.use_environment) return environment;
  for (char** each = environ; each != nullptr && *each != nullptr; ++each) {
    const std::string_view entry = *each;
    const std::size_t equals = entry.find('=');
    if (entry.starts_with(prefix) && equals != entry.npos)
      environment.emplace(entry.substr(0, equals), entry.substr(equals + 1));
  }
  return environment;
}

std::vector<std::string> unknown_variables(const Environment& environment) {
  std::vector<std::string> sentences;
  for (const auto& [variable, text] : environment)
    if (variable.starts_with(prefix) && !known(variable)) sentences.push_back(warning_of(variable));
  return sentences;
}

}  // namespace weft::core
