// Pythons of this machine, which run scripts of ours and answer in JSON.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>
#include <weft/deadline.hpp>
#include <weft/error.hpp>

namespace weft::tool {

/// The interpreter that `given` means: a program, or the folder of a virtual environment. Empty:
/// that of $VIRTUAL_ENV, else python3.
Result<std::string> find_python(const std::string& given);

struct PythonAnswer {
  nlohmann::ordered_json told;   ///< The last document that the script printed; null: none.
  std::string problem;           ///< How the process ended, if it did not end well.
  bool in_time;                  ///< Else it was killed.
  std::vector<std::string> log;  ///< The last lines of what it wrote to standard error.
};

/// Runs a script in a process of its own, which is killed where it takes longer than `patience`.
Result<PythonAnswer> ask_python(const std::string& python, std::string_view script,
                                const std::vector<std::string>& arguments, Nanoseconds patience);

/// A script's argument: the seconds after which it ends itself, should nobody be there to kill it.
std::string alarm_after(Nanoseconds patience);

}  // namespace weft::tool
