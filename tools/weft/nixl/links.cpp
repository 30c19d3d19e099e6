#include "nixl/links.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <set>
#include <string_view>

#include "common/child.hpp"

namespace weft::tool {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view prefix = "libplugin_";
// NIXL takes what ends in .so, and so none of these.
constexpr std::string_view suffix = ".so", kept_suffix = ".so.weft-kept",
                           new_suffix = ".so.weft-new";

Error not_changed(const std::string& path, int error) {
  const bool forbidden = error == EACCES || error == EPERM || error == EROFS;
  return Error(forbidden ? Code::permission_denied : Code::unavailable,
               fmt::format("could not change '{}': {}", path, std::strerror(error)));
}

/// Where the link at `path` to Weft's plug-in leads; empty: there is no such link.
std::string target_of(const fs::path& path) {
  std::error_code error;
  const fs::path target = fs::read_symlink(path, error);
  const bool ours = target.is_absolute() && target.filename() == "libplugin_WEFT.so";
  return ours ? target.string() : "";
}

/// Whether there is anything, be it a link that leads nowhere.
bool is_there(const fs::path& path) {
  std::error_code error;
  return fs::symlink_status(path, error).type() != fs::file_type::not_found;
}

bool is_file_or_link(const fs::path& path) {
  std::error_code error;
  const fs::file_type type = fs::symlink_status(path, error).type();
  return type == fs::file_type::regular || type == fs::file_type::symlink;
}

/// The files that one backend has in a folder.
struct PluginPlace {
  PluginPlace(const std::string& folder, const std::string& backend)
      : name(backend),
        path(fmt::format("{}/{}{}{}", folder, prefix, backend, suffix)),
        kept(fmt::format("{}/{}{}{}", folder, prefix, backend, kept_suffix)),
        fresh(fmt::format("{}/{}{}{}", folder, prefix, backend, new_suffix)),
        target(target_of(path)),
        has_kept(name != nixl_own_name && is_there(kept)) {}

  bool ours() const { return !target.empty(); }
  bool others() const { return !ours() && is_there(path); }
  bool has_fresh() const { return !target_of(fresh).empty(); }

  NixlLinkState state() const {
    std::error_code error;
    if (ours()) return fs::exists(path, error) ? NixlLinkState::linked : NixlLinkState::dangling;
    return others() && has_kept ? NixlLinkState::renewed : NixlLinkState::interrupted;
  }
  NixlLink link() const { return {name, path, target, has_kept ? kept : "", state()}; }

  const std::string name, path, kept, fresh, target;
  const bool has_kept;
};

/// Keeps other processes of this command away from a folder.
Result<Descriptor> lock(const std::string& folder) {
  Descriptor descriptor(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!descriptor.open()) return fail(not_changed(folder, errno));
  if (flock(descriptor.get(), LOCK_EX | LOCK_NB) == 0) return descriptor;
  if (errno != EWOULDBLOCK) return fail(not_changed(folder, errno));
  return fail(Code::unavailable, fmt::format("another weft nixl is at work in '{}'", folder));
}

/// The backend whose file of this kind `file` is; empty: none.
std::string backend_of(std::string_view file, std::string_view kind) {
  if (!file.starts_with(prefix) || !file.ends_with(kind)) return "";
  file.remove_prefix(prefix.size());
  if (file.size() <= kind.size()) return "";
  return std::string(file.substr(0, file.size() - kind.size()));
}

/// The backends that have files of one of these kinds.
Result<std::set<std::string>> backends_in(const std::string& folder,
                                          std::initializer_list<std::string_view> kinds) {
  std::set<std::string> names;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error))
    for (const std::string_view kind : kinds)
      names.insert(backend_of(at->path().filename().string(), kind));
  names.erase("");
  if (error)
    return fail(Code::unavailable, fmt::format("could not read '{}': {}", folder, error.message()));
  return names;
}

Error stays(const PluginPlace& place) {
  return Error(Code::unavailable,
               fmt::format("'{}' is there and not Weft's: it stays as it is", place.path));
}

/// A wheel that was installed after Weft had taken the name.
Error two_own_files(const PluginPlace& place) {
  return Error(Code::unavailable,
               fmt::format("'{}' is there, and '{}' too, which is of an earlier installation of "
                           "the wheel: remove the latter",
                           place.path, place.kept));
}

Error no_such_plugin(const std::string& folder, const PluginPlace& place) {
  auto known = backends_in(folder, {suffix});
  if (known) known->erase(nixl_own_name);
  return Error(
      Code::not_found,
      fmt::format("the wheel has no plug-in {} whose name could be taken, but {}", place.name,
                  known ? fmt::format("{}", fmt::join(*known, ", ")) : "none"));
}

/// Why Weft can't have this place.
Result<void> check(const std::string& folder, const PluginPlace& place) {
  if (place.ours()) return {};
  const bool own = place.name == nixl_own_name;
  if (place.others() && (own || !is_file_or_link(place.path))) return fail(stays(place));
  if (place.others() && place.has_kept) return fail(two_own_files(place));
  if (!place.others() && !own && !place.has_kept) return fail(no_such_plugin(folder, place));
  return {};
}

NixlChange change_of(const PluginPlace& before) {
  if (before.ours()) return NixlChange::led_elsewhere;
  if (before.others()) return NixlChange::took_name;
  return before.has_kept ? NixlChange::completed : NixlChange::linked;
}

/// 0, or an error number.
int rename_file(const std::string& from, const std::string& to) {
  return std::rename(from.c_str(), to.c_str()) == 0 ? 0 : errno;
}

/// With the new link at hand it puts the wheel's own file aside, if there is one. 0, or an error
/// number, and then all is as before.
int exchange(const PluginPlace& place) {
  const bool aside = place.others();
  if (aside)
    if (const int error = rename_file(place.path, place.kept); error != 0) return error;
  const int error = rename_file(place.fresh, place.path);
  if (error != 0 && aside) (void)rename_file(place.kept, place.path);
  return error;
}

/// Removes the rest of an interrupted installation. 0, or an error number.
int remove_fresh(const PluginPlace& place) {
  return !place.has_fresh() || unlink(place.fresh.c_str()) == 0 ? 0 : errno;
}

/// 0, or an error number.
int put_link(const PluginPlace& place, const std::string& plugin) {
  if (const int error = remove_fresh(place); error != 0) return error;
  if (symlink(plugin.c_str(), place.fresh.c_str()) != 0) return errno;
  const int error = exchange(place);
  if (error != 0) unlink(place.fresh.c_str());
  return error;
}

/// 0, or an error number.
int take_link(const PluginPlace& place) {
  if (const int error = remove_fresh(place); error != 0) return error;
  if (place.has_kept) return rename_file(place.kept, place.path);
  return !place.ours() || unlink(place.path.c_str()) == 0 ? 0 : errno;
}

NixlChange change_of_removal(const PluginPlace& before) {
  if (before.has_kept) return NixlChange::given_back;
  return before.ours() || before.has_fresh() ? NixlChange::removed : NixlChange::nothing;
}

}  // namespace

Result<std::vector<NixlLink>> find_links(const std::string& folder) {
  const auto names = backends_in(folder, {suffix, kept_suffix, new_suffix});
  if (!names) return fail(names.error());
  std::vector<NixlLink> links;
  for (const std::string& name : *names) {
    const PluginPlace place(folder, name);
    if (place.ours() || place.has_kept || place.has_fresh()) links.push_back(place.link());
  }
  return links;
}

Result<NixlChanged> link_plugin(const std::string& folder, const std::string& name,
                                const std::string& plugin) {
  const auto locked = lock(folder);
  if (!locked) return fail(locked.error());
  const PluginPlace before(folder, name);
  if (before.target == plugin) return NixlChanged{before.link(), NixlChange::linked_already, ""};
  if (auto free = check(folder, before); !free) return fail(std::move(free.error()));
  const NixlChange change = change_of(before);
  if (const int error = put_link(before, plugin); error != 0)
    return fail(not_changed(before.path, error));
  return NixlChanged{PluginPlace(folder, name).link(), change, before.target};
}

Result<NixlChanged> unlink_plugin(const std::string& folder, const std::string& name) {
  const auto locked = lock(folder);
  if (!locked) return fail(locked.error());
  const PluginPlace before(folder, name);
  if (before.others() && before.has_kept) return fail(two_own_files(before));
  const NixlChange change = change_of_removal(before);
  if (const int error = take_link(before); error != 0) return fail(not_changed(before.path, error));
  return NixlChanged{before.link(), change, ""};
}

}  // namespace weft::tool
