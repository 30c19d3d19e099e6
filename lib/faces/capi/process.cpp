// The C API: what concerns the whole process. Version, names of numbers, log.
#include <new>
#include <weft/log.hpp>
#include <weft/process.hpp>
#include <weft/version.hpp>

#include "capi/boundary.hpp"

using namespace weft;
using namespace weft::capi;

const char* weft_version(void) {
  return WEFT_VERSION;
}

// Both to_string() return literals, which end with a zero byte.
const char* weft_code_name(weft_code code) {
  if (code == WEFT_OK) return "ok";
  if (code < WEFT_OK || code > static_cast<weft_code>(last_code)) return "unknown";
  return to_string(static_cast<Code>(code)).data();
}

const char* weft_state_name(int32_t state) {
  if (state < WEFT_STATE_ACTIVE || state > WEFT_STATE_TIMED_OUT) return "unknown";
  return to_string(static_cast<State>(state)).data();
}

weft_code weft_set_log_sink(weft_log_sink sink, void* context, weft_error** error) {
  return call(error, {}, [&]() -> Result<void> {
    if (sink == nullptr) {
      set_log_sink({});
      return {};
    }
    set_log_sink([sink, context](LogLevel level, std::string_view line) {
      std::string ended;
      try {
        ended = line;
      } catch (const std::bad_alloc&) {
        ended = "no memory";  // Fits into the string itself.
      }
      sink(context, static_cast<std::int32_t>(level), ended.c_str());
    });
    return {};
  });
}

weft_code weft_set_log_level(int32_t level, weft_error** error) {
  return call(error, {}, [&] {
    return enumerator("level", level, LogLevel::debug, LogLevel::off).map(set_log_level);
  });
}

void weft_prepare_process(void) {
  prepare_process();
}
