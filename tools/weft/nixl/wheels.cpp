#include "nixl/wheels.hpp"

#include <fmt/format.h>

#include "nixl/python.hpp"
#include "nixl/scripts.hpp"

namespace weft::tool {
namespace {

/// Why a Python gave no answer: its last words, as a rule, name an exception.
std::string why_silent(const PythonAnswer& answer) {
  if (!answer.log.empty()) return answer.log.back();
  return answer.problem.empty() ? "it printed no answer" : "it " + answer.problem;
}

NixlWheel wheel_of(const nlohmann::ordered_json& told) {
  return {told.at("package"), told.at("module"), told.at("version"), told.at("folder")};
}

NixlPython python_of(const std::string& program, const nlohmann::ordered_json& told) {
  NixlPython python{program, told.at("executable"), told.at("version"), "", {}};
  if (told.at("nixl").is_string()) python.nixl = told.at("nixl");
  for (const auto& each : told.at("wheels")) python.wheels.push_back(wheel_of(each));
  return python;
}

/// Complains about a Python without NIXL; empty: it has it.
std::string missing(const nlohmann::ordered_json& told) {
  if (told.at("wheels").empty())
    return fmt::format("{} has no wheel of NIXL: neither nixl-cu12 nor nixl-cu13 is installed",
                       told.at("executable").get<std::string>());
  for (const auto& each : told.at("wheels"))
    if (!each.at("has_folder").get<bool>())
      return fmt::format("{} {} has no folder of plug-ins: '{}' is not there",
                         each.at("package").get<std::string>(),
                         each.at("version").get<std::string>(),
                         each.at("folder").get<std::string>());
  return "";
}

}  // namespace

Result<NixlPython> find_wheels(const std::string& python, Nanoseconds patience) {
  auto answer = ask_python(python, nixl_wheels_script, {}, patience);
  if (!answer) return fail(std::move(answer.error()));
  if (!answer->in_time)
    return fail(Code::timed_out, fmt::format("'{}' {}", python, answer->problem));
  if (!answer->told.contains("wheels"))
    return fail(Code::unavailable, fmt::format("could not ask '{}' for its wheels of NIXL: {}",
                                               python, why_silent(*answer)));
  const std::string lacking = missing(answer->told);
  if (!lacking.empty()) return fail(Code::not_found, lacking);
  return python_of(python, answer->told);
}

Result<NixlChoice> find_choice(const NixlPython& python, Nanoseconds patience) {
  if (python.nixl.empty()) return NixlChoice{};
  auto answer = ask_python(python.program, nixl_choice_script, {alarm_after(patience)}, patience);
  if (!answer) return fail(std::move(answer.error()));
  if (answer->told.contains("module")) return NixlChoice{answer->told.at("module"), ""};
  if (answer->told.contains("problem")) return NixlChoice{"", answer->told.at("problem")};
  return NixlChoice{"", why_silent(*answer)};
}

}  // namespace weft::tool
