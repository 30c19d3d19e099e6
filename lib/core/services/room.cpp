#include "services/room.hpp"

#include <fmt/format.h>

#include <optional>
#include <string_view>

#include "topo/control_group.hpp"

namespace weft::core {
namespace {

Result<void> within(const std::optional<topo::GroupRoom>& room, std::size_t bytes,
                    std::string_view what) {
  if (!room || bytes <= room->left) return {};
  return fail(Code::out_of_memory,
              fmt::format("{} bytes of {} were asked for, and the control group {} has {} left of "
                          "its limit of {}",
                          bytes, what, room->group.string(), room->left, room->limit));
}

Result<void> within_huge_pages(const Memory& memory, const std::filesystem::path& root) {
  const std::size_t bytes = memory.bytes(), page = memory.page_bytes();
  if (auto had = within(topo::huge_page_room(page, root), bytes, "huge pages"); !had) return had;
  const auto free = topo::free_huge_pages(page, root);
  if (!free || bytes <= *free) return {};
  return fail(
      Code::out_of_memory,
      fmt::format("{} bytes of huge pages of {} were asked for, and the machine has {} free "
                  "(reserve some: {}/nr_hugepages)",
                  bytes, page, *free, topo::huge_page_pool(page).string()));
}

}  // namespace

Result<void> check_room(const Memory& memory, const std::filesystem::path& root) {
  switch (memory.source()) {
    case Memory::Source::own:
    case Memory::Source::shared:
      return within(topo::memory_room(root), memory.bytes(), "memory");
    case Memory::Source::huge:
      return within_huge_pages(memory, root);
    case Memory::Source::map:
    case Memory::Source::adopt:
    case Memory::Source::file:
      break;
  }
  return {};
}

}  // namespace weft::core
