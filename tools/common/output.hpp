// Where a command writes what it was told to write to a file: one way for all options.
#pragma once

#include <sys/stat.h>

#include <optional>
#include <string>
#include <string_view>
#include <weft/error.hpp>

#include "common/child.hpp"

namespace weft::tool {

constexpr std::string_view standard_output = "-";

/// A file is written beside its place, and put there complete by finish(); without that nothing
/// is left, and what was there stays. A link stays, and so do mode and owner of a file that is
/// replaced, as far as this process may give files away. What is no regular file is written to in
/// place: devices, pipes, this process's own descriptors (/dev/stdout), and "-", standard output.
class Output {
 public:
  /// Waits for the reader of a named pipe, for 10 s at most.
  static Result<Output> open(const std::string& path);
  Output(Output&& other) noexcept;
  Output& operator=(Output&&) = delete;
  ~Output();

  /// The file that finish() puts in its place; empty: it is written to in place.
  const std::string& beside() const noexcept { return beside_; }
  Result<void> write(std::string_view bytes);
  Result<void> finish();
  /// Whether it takes anything at all, as far as that can be told without writing.
  Result<void> probe();

 private:
  explicit Output(std::string path) : path_(std::move(path)) {}
  int begin();
  int begin_beside(const std::string& target);
  int dress() const;
  Result<void> result_of(int error) const;

  std::string path_;  // as it was given
  std::string target_, beside_;
  std::optional<struct stat> replaced_;
  Descriptor file_;
};

/// All of it at once.
Result<void> write_output(const std::string& path, std::string_view bytes);

/// Whether write_output() could do it now, without a trace.
Result<void> check_output(const std::string& path);

}  // namespace weft::tool
