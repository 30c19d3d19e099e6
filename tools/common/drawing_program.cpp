#include "common/drawing_program.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <sstream>

#include "common/outside_program.hpp"
#include "common/printable.hpp"

namespace weft::tool {
namespace {

constexpr auto patience = std::chrono::seconds(60);
constexpr std::size_t largest_picture = std::size_t{256} << 20;

std::vector<std::string> words_of(const DrawingProgram& program) {
  if (program.option.empty()) return {program.name};
  return {program.name, program.option};
}

std::string first_line(const std::string& text) {
  constexpr std::size_t longest = 200;
  return printable(text.substr(0, text.find('\n')).substr(0, longest));
}

}  // namespace

Result<void> check_installed(const DrawingProgram& program) {
  const char* const path = std::getenv("PATH");
  std::istringstream folders(path != nullptr ? path : "");
  for (std::string folder; std::getline(folders, folder, ':');)
    if (access((folder.empty() ? program.name : folder + "/" + program.name).c_str(), X_OK) == 0)
      return {};
  return fail(Code::not_found, program.absence);
}

Result<std::string> draw(const DrawingProgram& program, const std::string& text) {
  auto ending = run({words_of(program), text, largest_picture, patience});
  if (!ending && ending.error().code() == Code::not_found)
    return fail(Code::not_found, program.absence);
  if (!ending) return fail(std::move(ending.error()));
  if (!ending->in_time)
    return fail(Code::timed_out, fmt::format("{} {}", program.name, ending->problem));
  if (!ending->problem.empty() || ending->output.empty())
    return fail(Code::unavailable, fmt::format("{} could not draw it: {}", program.name,
                                               first_line(ending->complaints)));
  return std::move(ending->output);
}

}  // namespace weft::tool
