#include "streams.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "layout.hpp"
#include "pattern.hpp"

namespace weft::chaos {

std::uint64_t Streams::fresh(std::string what) {
  const std::uint64_t id = ++count_ * 0x9e3779b97f4a7c15 + seed_;
  latest_.push_back({id, std::move(what)});
  if (latest_.size() > remembered) latest_.pop_front();
  return id;
}

std::string Streams::origin(const std::byte* arena, std::uint64_t at) const {
  // So many bytes are in one place of one stream only.
  const std::size_t length = std::min<std::uint64_t>(12, layout().bytes - at);
  const Blob sought(arena + at, arena + at + length);
  for (auto stream = latest_.rbegin(); stream != latest_.rend(); ++stream) {
    const Blob all = test::pattern(layout().bytes, stream->id);
    const auto found = std::search(all.begin(), all.end(), sought.begin(), sought.end());
    if (found != all.end())
      return fmt::format("it is the byte {} of {:#x}, {}", found - all.begin(), stream->id,
                         stream->what);
  }
  return "where it comes from is not known";
}

}  // namespace weft::chaos
