#include "nixl/python.hpp"

#include <fmt/format.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <sstream>

#include "common/outside_program.hpp"

namespace weft::tool {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t largest_answer = std::size_t{1} << 20;
constexpr std::size_t most_lines = 40;

Result<std::string> interpreter_in(const std::string& folder) {
  const fs::path python = fs::path(folder) / "bin" / "python";
  std::error_code error;
  if (fs::exists(python, error)) return python.string();
  return fail(Code::not_found,
              fmt::format("'{}' is no virtual environment: it has no bin/python", folder));
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);)
    if (!line.empty()) lines.push_back(line);
  return lines;
}

std::vector<std::string> last_lines(const std::string& text) {
  std::vector<std::string> lines = lines_of(text);
  if (lines.size() > most_lines) lines.erase(lines.begin(), lines.end() - most_lines);
  return lines;
}

/// Something that Python runs at its start may have printed as well, and an end may cut a line.
nlohmann::ordered_json last_document(const std::string& output) {
  nlohmann::ordered_json last;
  for (const std::string& line : lines_of(output)) {
    auto document = nlohmann::ordered_json::parse(line, nullptr, false);
    if (document.is_object()) last = std::move(document);
  }
  return last;
}

}  // namespace

Result<std::string> find_python(const std::string& given) {
  std::error_code error;
  if (fs::is_directory(given, error)) return interpreter_in(given);
  if (!given.empty()) return given;
  const char* const environment = std::getenv("VIRTUAL_ENV");
  if (environment != nullptr && *environment != '\0') return interpreter_in(environment);
  return "python3";
}

Result<PythonAnswer> ask_python(const std::string& python, std::string_view script,
                                const std::vector<std::string>& arguments, Nanoseconds patience) {
  std::vector<std::string> words = {python, "-c", std::string(script)};
  words.insert(words.end(), arguments.begin(), arguments.end());
  auto ending = run({std::move(words), "", largest_answer, patience});
  if (!ending) return fail(std::move(ending.error()));
  return PythonAnswer{last_document(ending->output), std::move(ending->problem), ending->in_time,
                      last_lines(ending->complaints)};
}

std::string alarm_after(Nanoseconds patience) {
  constexpr auto grace = std::chrono::seconds(10);
  return std::to_string(std::chrono::ceil<std::chrono::seconds>(patience + grace).count());
}

}  // namespace weft::tool
