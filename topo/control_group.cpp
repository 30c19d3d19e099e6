// Formats: cgroup_namespaces(7), proc_pid_cgroup(5), proc_pid_mountinfo(5), and Linux,
// Documentation/admin-guide: cgroup-v2.rst, cgroup-v1/{memory,hugetlb}.rst.
#include "topo/control_group.hpp"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace weft::topo {
namespace {

namespace fs = std::filesystem;

using Number = std::optional<std::uint64_t>;

Number to_number(std::string_view word) {
  std::uint64_t value = 0;
  const char* const end = word.data() + word.size();
  const auto [rest, error] = std::from_chars(word.data(), end, value);
  return error == std::errc{} && rest == end ? Number(value) : std::nullopt;
}

/// Nothing where there is no such file, or no number in it: "max", or "-1".
Number number_in(const fs::path& path) {
  std::ifstream file(path);
  std::string word;
  file >> word;
  return to_number(word);
}

bool lists(const std::string& names, std::string_view name) {
  std::istringstream in(names);
  std::string each;
  while (std::getline(in, each, ','))
    if (each == name) return true;
  return false;
}

/// A tree of groups, where it is mounted.
struct Mount {
  std::string type;     // "cgroup": version 1, "cgroup2"
  std::string options;  // of version 1: its controllers too
  fs::path point;
  fs::path group;  // that is mounted there, as this process's namespace names it
};

/// As mountinfo writes them: blanks in octal numbers.
std::string unescaped(const std::string& word) {
  std::string text;
  for (std::size_t at = 0; at < word.size(); ++at) {
    unsigned code = 0;
    constexpr std::size_t digits = 3;
    const char* const number = word.data() + at + 1;
    if (word[at] == '\\' && at + digits < word.size() &&
        std::from_chars(number, number + digits, code, 8).ptr == number + digits) {
      text += static_cast<char>(code);
      at += digits;
    } else {
      text += word[at];
    }
  }
  return text;
}

/// "33 31 0:30 / /sys/fs/cgroup/cpu rw,relatime shared:9 - cgroup cgroup rw,cpu"
std::vector<Mount> mounts(const fs::path& root) {
  std::vector<Mount> found;
  std::ifstream file(root / "proc/self/mountinfo");
  std::string line, skipped;
  while (std::getline(file, line)) {
    const std::size_t optional_fields = line.find(" - ");
    if (optional_fields == line.npos) continue;
    std::istringstream where(line.substr(0, optional_fields)),
        what(line.substr(optional_fields + 3));
    std::string group, point;
    Mount mount;
    where >> skipped >> skipped >> skipped >> group >> point;
    what >> mount.type >> skipped >> mount.options;
    mount.group = unescaped(group);
    mount.point = unescaped(point);
    if (mount.type == "cgroup" || mount.type == "cgroup2") found.push_back(std::move(mount));
  }
  return found;
}

/// A group of this process's, by version 1 or 2.
struct Membership {
  std::string controllers;  // "cpu,cpuacct"; empty for version 2
  fs::path group;
};

/// "4:memory:/pods/one", "0::/pods/one"
std::vector<Membership> memberships(const fs::path& root) {
  std::vector<Membership> found;
  std::ifstream file(root / "proc/self/cgroup");
  std::string id, controllers, group;
  while (std::getline(file, id, ':') && std::getline(file, controllers, ':') &&
         std::getline(file, group))
    found.push_back({controllers, group});
  return found;
}

/// Where a group is below another, "a/b"; nothing if it is not below it.
std::optional<fs::path> below(const fs::path& top, const fs::path& group) {
  if (!top.is_absolute() || !group.is_absolute()) return std::nullopt;  // of a damaged file
  auto at = group.begin();
  for (const fs::path& each : top)
    if (at == group.end() || *at++ != each) return std::nullopt;
  fs::path rest;
  for (; at != group.end(); ++at) {
    if (*at == "..") return std::nullopt;
    rest /= *at;
  }
  return rest;
}

/// The folders of a group and of all above it that are mounted.
void add_folders(const fs::path& mounted, const fs::path& rest, std::vector<fs::path>& folders) {
  for (fs::path at = rest; !at.empty(); at = at.parent_path()) folders.push_back(mounted / at);
  folders.push_back(mounted);
}

/// Those of all groups of this process that may limit what a controller of version 1 does. Of a
/// group that lies outside of all that is mounted, the top is the nearest that can be seen.
std::vector<fs::path> folders_of(std::string_view controller, const fs::path& root) {
  std::vector<fs::path> folders;
  const auto all = mounts(root);
  for (const Membership& mine : memberships(root)) {
    const bool second = mine.controllers.empty();
    if (!second && !lists(mine.controllers, controller)) continue;
    std::vector<fs::path> own, tops;
    for (const Mount& mount : all) {
      if (!(second ? mount.type == "cgroup2"
                   : mount.type == "cgroup" && lists(mount.options, controller)))
        continue;
      const fs::path top = root / mount.point.relative_path();
      tops.push_back(top);
      if (const auto rest = below(mount.group, mine.group)) add_folders(top, *rest, own);
    }
    const auto& seen = own.empty() ? tops : own;
    folders.insert(folders.end(), seen.begin(), seen.end());
  }
  return folders;
}

/// Names of files, of one version.
struct Limited {
  std::string limit, used;
  std::string inactive, active;  // of cached files, in memory.stat; empty: of something else
};

std::uint64_t cached_in(const fs::path& group, const Limited& files) {
  std::ifstream file(group / "memory.stat");
  std::string name;
  std::uint64_t value = 0, sum = 0;
  while (file >> name >> value)
    if (name == files.inactive || name == files.active) sum += value;
  return sum;
}

std::optional<GroupRoom> room_in(const fs::path& group, const Limited& files) {
  const Number limit = number_in(group / files.limit), used = number_in(group / files.used);
  if (!limit || !used) return std::nullopt;
  const std::uint64_t cached = files.inactive.empty() ? 0 : cached_in(group, files);
  const std::uint64_t held = *used - std::min(*used, cached);
  return GroupRoom{*limit - std::min(*limit, held), *limit, group};
}

std::optional<GroupRoom> tightest(const std::vector<fs::path>& groups,
                                  const std::vector<Limited>& all_files) {
  std::optional<GroupRoom> found;
  for (const fs::path& group : groups)
    for (const Limited& files : all_files)
      if (auto room = room_in(group, files); room && (!found || room->left < found->left))
        found = std::move(room);
  return found;
}

std::optional<double> quota_of(const fs::path& group) {
  std::string quota, period;
  std::ifstream(group / "cpu.max") >> quota >> period;
  Number time = to_number(quota), every = to_number(period);
  if (quota.empty()) {
    time = number_in(group / "cpu.cfs_quota_us");
    every = number_in(group / "cpu.cfs_period_us");
  }
  if (!time || !every || *every == 0) return std::nullopt;
  return static_cast<double>(*time) / static_cast<double>(*every);
}

/// A line of /proc/meminfo, "MemAvailable:   24114680 kB", in kilobytes.
Number kilobytes_of(std::string_view name, const fs::path& root) {
  std::ifstream file(root / "proc/meminfo");
  std::string line, first, value;
  while (std::getline(file, line)) {
    std::istringstream words(line);
    words >> first >> value;
    if (first == name) return to_number(value);
  }
  return std::nullopt;
}

/// "2MB", as the kernel's mem_fmt() writes it.
std::string size_name(std::uint64_t kilobytes) {
  constexpr std::uint64_t kilo = 1024;
  if (kilobytes >= kilo * kilo) return std::to_string(kilobytes / kilo / kilo) + "GB";
  return kilobytes >= kilo ? std::to_string(kilobytes / kilo) + "MB"
                           : std::to_string(kilobytes) + "KB";
}

}  // namespace

std::optional<double> cpu_quota(const fs::path& root) {
  std::optional<double> least;
  for (const fs::path& group : folders_of("cpu", root))
    if (const auto quota = quota_of(group); quota && (!least || *quota < *least)) least = quota;
  return least;
}

std::optional<GroupRoom> memory_room(const fs::path& root) {
  return tightest(folders_of("memory", root),
                  {{"memory.max", "memory.current", "inactive_file", "active_file"},
                   {"memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file",
                    "total_active_file"}});
}

std::optional<GroupRoom> huge_page_room(std::uint64_t page, const fs::path& root) {
  const std::string name = "hugetlb." + size_name(page / 1024);
  return tightest(folders_of("hugetlb", root),
                  {{name + ".max", name + ".current", {}, {}},
                   {name + ".rsvd.max", name + ".rsvd.current", {}, {}},
                   {name + ".limit_in_bytes", name + ".usage_in_bytes", {}, {}},
                   {name + ".rsvd.limit_in_bytes", name + ".rsvd.usage_in_bytes", {}, {}}});
}

fs::path huge_page_pool(std::uint64_t page, const fs::path& root) {
  return root / "sys/kernel/mm/hugepages" / ("hugepages-" + std::to_string(page / 1024) + "kB");
}

std::optional<std::uint64_t> free_huge_pages(std::uint64_t page, const fs::path& root) {
  const fs::path pool = huge_page_pool(page, root);
  const Number free = number_in(pool / "free_hugepages");
  if (!free) return std::nullopt;
  const auto number = [&](const char* file) { return number_in(pool / file).value_or(0); };
  // Some are promised already; more than the pool has are made as long as there is memory for them.
  const std::uint64_t had = *free + number("nr_overcommit_hugepages");
  const std::uint64_t promised = number("resv_hugepages") + number("surplus_hugepages");
  return (had - std::min(had, promised)) * page;
}

std::optional<std::uint64_t> available_memory(const fs::path& root) {
  const Number available = kilobytes_of("MemAvailable:", root);
  return available ? Number(*available * 1024) : std::nullopt;
}

}  // namespace weft::topo
