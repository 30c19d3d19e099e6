#pragma once

#include <filesystem>
#include <string>

#include "facts.hpp"

namespace weft::facts {

/// The machine as hwloc 2 would have written it. No comments: hwloc's own parser, which it uses
/// where it was built without libxml2, does not read files that begin with one.
std::string hwloc_xml(const Machine& machine);

/// A file with this text in a folder of its own, both removed in the end.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& text);
  ~TemporaryFile();
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  std::string path() const { return file_.string(); }

 private:
  std::filesystem::path file_;
};

}  // namespace weft::facts
