// Locks between all who open a file, of this process or others. They are gone with the descriptor.
#pragma once

#include <string>
#include <weft/error.hpp>
#include <weft/place.hpp>

namespace weft::core {

/// `kind`: F_RDLCK, F_WRLCK or F_UNLCK. Returns 0, or errno.
int try_file_lock(int fd, short kind, const Range& bytes) noexcept;
/// Others have it.
bool is_file_locked(int failed) noexcept;
/// Whether another opening of the file, at that path, meets the lock that this one has. Some
/// network file systems give a lock to everybody. True where it can't be told.
bool is_file_lock_met(const std::string& path, const Range& bytes) noexcept;

/// While a file is opened that may have to be made longer: nobody else does so at the same time,
/// and makes it shorter by that.
class OpeningLock {
 public:
  /// `write`: whether the descriptor was opened for it. May block, for a while. Where the file
  /// system has no locks there is none: the log says so, if `write`.
  static Result<OpeningLock> take(int fd, bool write, const std::string& path);
  OpeningLock(OpeningLock&& other) noexcept;
  OpeningLock& operator=(OpeningLock&&) = delete;
  ~OpeningLock();

 private:
  explicit OpeningLock(int fd) noexcept : fd_(fd) {}
  int fd_;
};

}  // namespace weft::core
