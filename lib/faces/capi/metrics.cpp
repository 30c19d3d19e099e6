// The C API: what an engine has done in all, and what its NICs have counted.
#include "capi/boundary.hpp"

using namespace weft;
using namespace weft::capi;

namespace {

std::uint64_t to_c(NicCounters::Count count) {
  return count.value_or(WEFT_NOT_COUNTED);
}

weft_nic_counters to_c(const NicCounters& counters) {
  weft_nic_counters c{};
  c.nic = counters.nic.c_str();
  c.rail_count = counters.rails.size();
  c.sent = to_c(counters.sent);
  c.received = to_c(counters.received);
  c.written = to_c(counters.written);
  c.written_by_peers = to_c(counters.written_by_peers);
  c.read = to_c(counters.read);
  c.read_by_peers = to_c(counters.read_by_peers);
  c.messages_sent = to_c(counters.messages_sent);
  c.messages_received = to_c(counters.messages_received);
  return c;
}

}  // namespace

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

weft_code weft_engine_nic_counters(const weft_engine* engine, weft_nics** nics,
                                   weft_error** error) {
  return call(error, {{"engine", engine}, {"nics", nics}}, [&] {
    return give(nics, Result<std::vector<NicCounters>>(engine->value.nic_counters()));
  });
}

void weft_nics_free(weft_nics* nics) {
  delete nics;
}

size_t weft_nics_count(const weft_nics* nics) {
  return nics != nullptr ? nics->value.size() : 0;
}

weft_code weft_nics_counters(const weft_nics* nics, size_t index, weft_nic_counters* counters,
                             weft_error** error) {
  return call(error, {{"nics", nics}, {"counters", counters}}, [&] {
    return at("NIC", nics->value, index).and_then([&](const NicCounters* found) {
      return fill("counters", counters, to_c(*found));
    });
  });
}

const char* weft_nics_rail(const weft_nics* nics, size_t index, size_t rail) {
  if (nics == nullptr || index >= nics->value.size()) return nullptr;
  const auto& rails = nics->value[index].rails;
  return rail < rails.size() ? rails[rail].c_str() : nullptr;
}
