// Programs that read a description and write a picture.
#pragma once

#include <string>
#include <weft/error.hpp>

namespace weft::tool {

struct DrawingProgram {
  std::string name;     ///< Looked for in PATH.
  std::string option;   ///< Its only one; empty: none.
  std::string absence;  ///< What to say where it is not installed.
};

/// `not_found` if it is not installed.
Result<void> check_installed(const DrawingProgram& program);

/// The output of the program for `text` on its standard input. `not_found` if it is not
/// installed, `unavailable` if it fails, `timed_out` after a minute, `cancelled` by a signal that
/// can then still be read (take_signals must have been called).
Result<std::string> draw(const DrawingProgram& program, const std::string& text);

}  // namespace weft::tool
