// The C API: what an engine has done in all.
#include "capi/boundary.hpp"

using namespace weft;
using namespace weft::capi;

weft_code weft_engine_metrics_text(const weft_engine* engine, weft_text** text,
                                   weft_error** error) {
  return call(error, {{"engine", engine}, {"text", text}},
              [&] { return give(text, engine->value.metrics_text()); });
}

weft_code weft_engine_snapshot(const weft_engine* engine, weft_text** text, weft_error** error) {
  return call(error, {{"engine", engine}, {"text", text}},
              [&] { return give(text, engine->value.snapshot()); });
}

const char* weft_engine_metrics_address(const weft_engine* engine) {
  return engine != nullptr ? engine->value.metrics_address().c_str() : nullptr;
}

const char* weft_text_get(const weft_text* text) {
  return text != nullptr ? text->value.c_str() : nullptr;
}

void weft_text_free(weft_text* text) {
  delete text;
}
