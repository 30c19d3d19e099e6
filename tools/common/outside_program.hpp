// Programs of others, run to their end.
#pragma once

#include <string>
#include <vector>
#include <weft/deadline.hpp>
#include <weft/error.hpp>

namespace weft::tool {

struct OutsideProgram {
  std::vector<std::string> words;  ///< Its name, looked for in PATH, and its arguments.
  std::string input;               ///< What it can read from its standard input.
  std::size_t largest_output;
  Nanoseconds patience;
};

struct Ending {
  std::string output;      ///< What it has written to its standard output
  std::string complaints;  ///< and to standard error, of which only the last part is kept.
  std::string problem;  ///< "was killed by signal 11 (Segmentation fault)"; empty: it ended well.
  bool in_time = true;  ///< Else it was killed, with the processes that it had started.
};

/// `not_found` if it is not installed, `unavailable` if it can't be run, `unsupported` if it writes
/// more than `largest_output`, `cancelled` by a signal that can then still be read (take_signals
/// must have been called).
Result<Ending> run(const OutsideProgram& program);

}  // namespace weft::tool
