#include "nixl/named_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <limits>
#include <string_view>

#include "base/system_error.hpp"

namespace weft::nixl {
namespace {

/// "MODES:PATH", read.
struct PathForm {
  std::string path;
  bool write = false, create = false, direct = false, sync = false;
};

constexpr const char* forms =
    "a file is registered by the text 'MODES:PATH', where MODES are ro or rw and then any of "
    "create, direct, sync, with commas; or by a descriptor in the place of the device's number and "
    "an empty text";

Error refused(std::string_view why) {
  return Error(Code::invalid_argument, fmt::format("{}: {}", why, forms));
}

bool set_mode(PathForm& form, std::string_view mode) {
  if (mode == "create")
    form.create = true;
  else if (mode == "direct")
    form.direct = true;
  else if (mode == "sync")
    form.sync = true;
  else
    return false;
  return true;
}

/// nullopt: the text does not begin as one of this form does.
Result<std::optional<PathForm>> read_path_form(std::string_view text) {
  const auto colon = text.find(':');
  std::string_view modes = text.substr(0, colon);
  const std::string_view access = modes.substr(0, modes.find(','));
  if (colon == text.npos || (access != "ro" && access != "rw")) return std::nullopt;
  PathForm form;
  form.path = text.substr(colon + 1);
  form.write = access == "rw";
  if (form.path.empty() || form.path.find('\0') != std::string::npos)
    return fail(refused(fmt::format("'{}' has no path", text)));
  while (modes.find(',') != modes.npos) {
    modes.remove_prefix(modes.find(',') + 1);
    const std::string_view mode = modes.substr(0, modes.find(','));
    if (!set_mode(form, mode))
      return fail(refused(fmt::format("'{}' has the mode '{}', which is not known", text, mode)));
  }
  if (form.create && !form.write)
    return fail(refused(fmt::format("'{}' makes a file that may only be read", text)));
  return form;
}

/// Of the file at a path, with links followed.
std::optional<struct stat> status_of(const std::string& path) {
  struct stat status {};
  if (path.find('\0') != path.npos || stat(path.c_str(), &status) != 0) return std::nullopt;
  return status;
}

bool may_be_memory(const struct stat& status) {
  return S_ISREG(status.st_mode) || S_ISBLK(status.st_mode);
}

FileId id_of(const struct stat& status) {
  return {status.st_dev, status.st_ino};
}

/// Neither a pipe nor a device that something happens to by being opened.
Result<core::Descriptor> open_path(const PathForm& form) {
  const auto before = status_of(form.path);
  if (before && !may_be_memory(*before))
    return fail(Code::invalid_argument,
                fmt::format("'{}' is neither a file nor a block device", form.path));
  constexpr mode_t readable_by_all = 0644;  // as NIXL's own backends make files
  const int flags = (form.write ? O_RDWR : O_RDONLY) | (form.create ? O_CREAT : 0);
  const int opened =
      open(form.path.c_str(), flags | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, readable_by_all);
  if (opened < 0)
    return fail(core::code_of_path_error(errno),
                fmt::format("'{}' can't be opened: {} (errno {})", form.path,
                            core::error_text(errno), errno));
  fcntl(opened, F_SETFL, fcntl(opened, F_GETFL) & ~O_NONBLOCK);
  return core::Descriptor(opened);
}

/// Why the number is no descriptor to use as memory; empty: it may be one.
std::string_view why_not(std::uint64_t number, int flags) {
  if (number <= STDERR_FILENO) return "is standard input, output or error";
  if (flags < 0) return "is no open descriptor";
  if ((flags & O_PATH) != 0) return "was opened by O_PATH, neither to read nor to write";
  if ((flags & O_ACCMODE) == O_WRONLY) return "was opened for writing only, not with O_RDWR";
  if ((flags & O_APPEND) != 0) return "was opened to append (O_APPEND), not to write at offsets";
  return {};
}

int flags_of(std::uint64_t number) {
  if (number > static_cast<std::uint64_t>(std::numeric_limits<int>::max())) return -1;
  return fcntl(static_cast<int>(number), F_GETFL);
}

Result<core::Descriptor> copy_of(std::uint64_t number) {
  const std::string_view why = why_not(number, flags_of(number));
  if (!why.empty()) return fail(refused(fmt::format("{} {}", number, why)));
  core::Descriptor copy(fcntl(static_cast<int>(number), F_DUPFD_CLOEXEC, 0));
  if (copy.get() >= 0) return copy;
  return fail(Code::unavailable,
              fmt::format("descriptor {} can't be copied: {}", number, core::error_text(errno)));
}

/// With an open file. `name`: for people.
Result<NamedFile> checked(core::Descriptor descriptor, const FileOptions& options,
                          abi::MemoryType type, std::string_view name) {
  struct stat status {};
  if (fstat(descriptor.get(), &status) != 0 || !may_be_memory(status))
    return fail(Code::invalid_argument,
                fmt::format("{} is neither a file nor a block device", name));
  if (type == abi::MemoryType::block && !S_ISBLK(status.st_mode))
    return fail(Code::invalid_argument,
                fmt::format("{} is a file, and is registered as a block device", name));
  return NamedFile{std::move(descriptor), options, id_of(status)};
}

Result<NamedFile> open_by_path(const PathForm& form, abi::MemoryType type) {
  if (form.create && type == abi::MemoryType::block)
    return fail(refused(fmt::format("the block device '{}' can't be made", form.path)));
  FileOptions options;
  options.create = true;  // it grows as it is written
  options.direct = form.direct;
  options.durable = form.sync;
  return open_path(form).and_then([&](core::Descriptor&& descriptor) {
    return checked(std::move(descriptor), options, type, fmt::format("'{}'", form.path));
  });
}

Result<NamedFile> open_by_number(std::uint64_t number, abi::MemoryType type) {
  FileOptions options;
  options.create = true;  // it grows as it is written
  options.durable = (flags_of(number) & O_DSYNC) != 0;
  return copy_of(number).and_then([&](core::Descriptor&& copy) {
    return checked(std::move(copy), options, type, fmt::format("descriptor {}", number));
  });
}

}  // namespace

bool is_file(abi::MemoryType type) noexcept {
  return type == abi::MemoryType::file || type == abi::MemoryType::block;
}

Result<NamedFile> open_file(const abi::BlobDescriptor& memory, abi::MemoryType type) {
  const std::string& text = memory.blob;
  const auto form = read_path_form(text);
  if (!form) return fail(form.error());
  if (*form) return open_by_path(**form, type);
  auto file = open_by_number(memory.device, type);
  if (!file || text.empty()) return file;
  const auto named = status_of(text);
  if (named && id_of(*named) == file->id) return file;
  return fail(
      refused(fmt::format("'{}' is no path of the file of descriptor {}", text, memory.device)));
}

std::optional<abi::Parameters> look_up_file(const std::string& text) {
  const auto form = read_path_form(text);
  const auto status = status_of(form && *form ? (*form)->path : text);
  if (!status || !may_be_memory(*status)) return std::nullopt;
  return abi::Parameters{{"size", std::to_string(status->st_size)},
                         {"mode", std::to_string(status->st_mode)},
                         {"mtime", std::to_string(status->st_mtime)}};
}

Result<FileNumbers::Claim> FileNumbers::claim(abi::MemoryType type, std::uint64_t number,
                                              const FileId& file) {
  const Key key{type, number};
  const core::Lock lock(mutex_);
  Use& use = uses_.try_emplace(key, Use{file}).first->second;
  if (use.file != file)
    return fail(Code::invalid_argument,
                fmt::format("the device number {} stands for another file that is registered: "
                            "NIXL tells files apart by it",
                            number));
  ++use.claims;
  return Claim(this, Drop{key});
}

void FileNumbers::drop(const Key& key) {
  const core::Lock lock(mutex_);
  const auto use = uses_.find(key);
  if (--use->second.claims == 0) uses_.erase(use);
}

}  // namespace weft::nixl
