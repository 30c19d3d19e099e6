#include "workload/file_memory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "common/memory_place.hpp"

namespace weft::perf {
namespace {

constexpr std::string_view prefix = "file:";

bool is_way(std::string_view text) {
  return text == "direct" || text == "buffered";
}

}  // namespace

std::optional<FileMemory> file_of(const std::string& memory) {
  if (!memory.starts_with(prefix)) return std::nullopt;
  const std::size_t comma = memory.find(',');
  const std::string_view way =
      comma == memory.npos ? "direct" : std::string_view(memory).substr(comma + 1);
  FileMemory file{memory.substr(prefix.size(), comma - prefix.size()), way == "direct"};
  if (file.path.empty() || !is_way(way)) return std::nullopt;
  return file;
}

Result<void> check_memory(const std::string& memory) {
  if (file_of(memory) || tool::check_memory(memory)) return {};
  return fail(Code::invalid_argument,
              fmt::format("'{}' is no memory: it is host, shared, node:N, gpu:N or "
                          "file:PATH[,direct|,buffered]",
                          memory));
}

void join_files(std::vector<std::string>& memories) {
  std::vector<std::string> joined;
  for (std::string& each : memories)
    if (is_way(each) && !joined.empty() && joined.back().starts_with(prefix))
      joined.back() += "," + each;
    else
      joined.push_back(std::move(each));
  memories = std::move(joined);
}

std::vector<std::string> paths_of(const std::vector<std::string>& memories) {
  std::vector<std::string> paths;
  for (const std::string& each : memories)
    if (const auto file = file_of(each);
        file && std::find(paths.begin(), paths.end(), file->path) == paths.end())
      paths.push_back(file->path);
  return paths;
}

}  // namespace weft::perf
