#include "nixl/opening.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "nixl/python.hpp"
#include "nixl/scripts.hpp"

namespace weft::tool {
namespace {

using OrderedJson = nlohmann::ordered_json;

bool has_loaded_weft(const NixlOpening& opening) {
  return std::any_of(opening.loaded.begin(), opening.loaded.end(),
                     [](const std::string& file) { return file.ends_with("/libplugin_WEFT.so"); });
}

/// The last step of a process that has not told why it ended.
std::string while_doing(const OrderedJson& told) {
  const std::string doing = told.value("doing", "");
  return doing.empty() ? "" : fmt::format(" while {}", doing);
}

/// Empty where all is well.
std::string problem_of(const NixlOpening& opening, const PythonAnswer& answer) {
  const std::string problem = answer.told.value("problem", "");
  if (!problem.empty()) return fmt::format("{}{}", problem, while_doing(answer.told));
  if (!answer.problem.empty())
    return fmt::format("the process {}{}", answer.problem, while_doing(answer.told));
  if (opening.bytes == 0) return "the process has told nothing";
  if (!has_loaded_weft(opening)) return "NIXL has loaded another file than Weft's";
  if (opening.wrong == 0) return "";
  return fmt::format("{} of {} bytes are wrong after a write", opening.wrong, opening.bytes);
}

}  // namespace

Result<NixlOpening> open_backend(const NixlPython& python, const NixlWheel& wheel,
                                 const std::string& name, Nanoseconds patience) {
  auto answer = ask_python(python.program, nixl_opening_script,
                           {wheel.module, name, alarm_after(patience)}, patience);
  if (!answer) return fail(std::move(answer.error()));
  if (answer->told.is_null()) answer->told = OrderedJson::object();
  const auto list = [&](const char* key) {
    return answer->told.value(key, std::vector<std::string>());
  };
  NixlOpening opening{name, list("plugins"), list("memory"), list("loaded"), 0, 0, "", {}};
  opening.bytes = answer->told.value("bytes", std::uint64_t{0});
  opening.wrong = answer->told.value("wrong", std::uint64_t{0});
  opening.problem = problem_of(opening, *answer);
  opening.log = std::move(answer->log);
  return opening;
}

}  // namespace weft::tool
