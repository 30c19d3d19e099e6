// Files as NIXL names them.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <weft/error.hpp>
#include <weft/file_options.hpp>
#include <weft/place.hpp>

#include "base/descriptor.hpp"
#include "base/sync.hpp"
#include "nixl/abi.hpp"

namespace weft::nixl {

bool is_file(abi::MemoryType type) noexcept;

/// Which file it is, whatever its name.
struct FileId {
  dev_t device;
  ino_t inode;
  bool operator==(const FileId&) const = default;
};

/// Open, by a descriptor of the backend's own: what the program does with its own does not matter.
struct NamedFile {
  core::Descriptor descriptor;
  FileOptions options;
  FileId id;

  bool read_only() const noexcept { return core::is_open_for_reading_only(descriptor.get()); }
};

/// The file of a registration. Its text is one of
/// - "MODES:PATH": the file at the path, whatever the device's number is. The modes are `ro` or
///   `rw`, then any of `create`, `direct` and `sync`, with commas between them;
/// - empty, or a path of that same file: the device's number is a descriptor of this process.
/// All else is refused: the number beside it would be taken for a descriptor that is another's.
Result<NamedFile> open_file(const abi::BlobDescriptor& memory, abi::MemoryType type);

/// Size in bytes, mode and mtime (s since 1970), as decimal numbers, of the file that a text names:
/// "MODES:PATH" or the path alone. nullopt: none that can be registered is there.
std::optional<abi::Parameters> look_up_file(const std::string& text);

/// Of registrations. libnixl finds one by its number, offset and length, and compares no path:
/// where a number stood for two files it would take either. From any thread.
class FileNumbers {
  using Key = std::pair<abi::MemoryType, std::uint64_t>;
  struct Drop {
    Key key;
    void operator()(FileNumbers* numbers) const { numbers->drop(key); }
  };

 public:
  /// The number stands for the file while there are claims of it.
  using Claim = std::unique_ptr<FileNumbers, Drop>;
  /// Fails with `invalid_argument` while the number stands for another file.
  Result<Claim> claim(abi::MemoryType type, std::uint64_t number, const FileId& file);

 private:
  void drop(const Key& key);
  struct Use {
    FileId file;
    std::size_t claims = 0;
  };
  core::Mutex mutex_;
  std::map<Key, Use> uses_ WEFT_GUARDED_BY(mutex_);
};

}  // namespace weft::nixl
