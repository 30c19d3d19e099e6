// The C API: options, by name and text.
#include <weft/config.hpp>

#include "capi/boundary.hpp"

using namespace weft;
using namespace weft::capi;

namespace {

/// The table's texts are literals, so each ends with a zero byte.
weft_option to_c(const OptionInfo& info) {
  weft_option c{};
  c.name = info.name.data();
  c.variable = info.variable.data();
  c.group = info.group.data();
  c.type = info.type.data();
  c.standard = info.standard.data();
  c.least = info.least.data();
  c.most = info.most.data();
  c.unit = info.unit.data();
  c.doc = info.doc.data();
  return c;
}

}  // namespace

weft_code weft_config_create(weft_config** config, weft_error** error) {
  return call(error, {{"config", config}}, [&] { return give(config, Result<Config>(Config{})); });
}

weft_code weft_config_set(weft_config* config, const char* option, const char* text,
                          weft_error** error) {
  return call(error, {{"config", config}, {"option", option}, {"text", text}},
              [&] { return set_option(config->value, option, text); });
}

void weft_config_free(weft_config* config) {
  delete config;
}

size_t weft_option_count(void) {
  return options().size();
}

weft_code weft_option_info(size_t index, weft_option* option, weft_error** error) {
  return call(error, {{"option", option}}, [&] {
    return at("option", options(), index).and_then([&](const OptionInfo* found) {
      return fill("option", option, to_c(*found));
    });
  });
}
