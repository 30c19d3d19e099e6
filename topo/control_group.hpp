// What the control groups of this process let it have, whatever their version. A group has no more
// than those above it: the tightest one counts. Those above the root of a control group namespace
// can't be seen. `root` is where all files of the kernel are: tests make up a tree of their own.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

namespace weft::topo {

/// Cores' worth of time, such as 1.5; nothing if there is no quota, or it can't be told.
std::optional<double> cpu_quota(const std::filesystem::path& root = "/");

/// What a group has left of what it is limited to.
struct GroupRoom {
  std::uint64_t left = 0, limit = 0;  // bytes
  std::filesystem::path group;        // its folder
};

/// Of memory. Cached files count as left: they make room when they must. Nothing if there is no
/// limit, or it can't be told.
std::optional<GroupRoom> memory_room(const std::filesystem::path& root = "/");

/// Likewise of huge pages of so many bytes.
std::optional<GroupRoom> huge_page_room(std::uint64_t page,
                                        const std::filesystem::path& root = "/");

/// The kernel's folder of huge pages of so many bytes; there is none if it has none of that size.
std::filesystem::path huge_page_pool(std::uint64_t page, const std::filesystem::path& root = "/");
/// Bytes of these that the machine can still give; nothing if it can't be told.
std::optional<std::uint64_t> free_huge_pages(std::uint64_t page,
                                             const std::filesystem::path& root = "/");

/// Bytes of memory that the machine can still give; nothing if it can't be told.
std::optional<std::uint64_t> available_memory(const std::filesystem::path& root = "/");

}  // namespace weft::topo
