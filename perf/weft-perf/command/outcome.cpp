#include "command/outcome.hpp"

#include <fmt/format.h>

#include "common/console.hpp"
#include "common/interrupt.hpp"
#include "common/printable.hpp"
#include "protocol/control.hpp"

namespace weft::perf {

void say(const std::string& sentence) {
  tool::complain(fmt::format("weft-perf: {}\n", tool::printable(sentence)));
}

int end_with(const std::string& sentence, int code) {
  say(sentence);
  return code;
}

int end_with(const Error& error) {
  return end_with(sentence(error), exit_failure);
}

int end_with_signal(int signal) {
  return end_with(tool::signal_sentence(signal), tool::signal_exit_code(signal));
}

}  // namespace weft::perf
