// The C API: engines, what they are made of, and their peers.
#include "capi/boundary.hpp"

using namespace weft;
using namespace weft::capi;

namespace {

const Config& config_of(const weft_config* given) {
  static const Config defaults;
  return given != nullptr ? given->value : defaults;
}

weft_rail_info to_c(const RailInfo& rail) {
  weft_rail_info c{};
  c.name = rail.name.c_str();
  c.provider = rail.capability.provider.c_str();
  c.libfabric_version = rail.capability.libfabric_version.c_str();
  c.domain = rail.capability.domain.c_str();
  c.thread = rail.thread;
  c.same_host_only = rail.capability.same_host_only;
  c.operations = rail.operations;
  c.bytes = rail.bytes;
  c.in_flight = rail.in_flight;
  c.lost = rail.lost;
  c.max_message = rail.capability.max_message;
  c.window = rail.capability.window;
  c.gbps = rail.capability.gbps;
  c.emulated_write = rail.capability.write == Origin::emulated;
  c.emulated_read = rail.capability.read == Origin::emulated;
  c.copies = rail.capability.write_carriage.copies();
  c.pci = rail.capability.pci.c_str();
  c.numa_node = rail.numa_node;
  c.message_buffer_bytes = rail.message_buffer_bytes;
  c.bounce_buffer_bytes = rail.bounce_buffer_bytes;
  c.receives_promised = rail.receives_promised;
  c.receives_posted = rail.receives_posted;
  c.receive_queue = rail.capability.receive_queue;
  c.pins_buffers = rail.capability.local_registration;
  return c;
}

weft_setting to_c(const Setting& setting) {
  weft_setting c{};
  c.name = setting.name.c_str();
  c.value = setting.value.c_str();
  c.source = static_cast<std::int32_t>(setting.source);
  c.place = setting.place.c_str();
  return c;
}

weft_libfabric to_c(const LibfabricInfo& libfabric) {
  weft_libfabric c{};
  c.version = libfabric.version.c_str();
  c.file = libfabric.file.c_str();
  c.found = libfabric.found.c_str();
  c.warning = libfabric.warning.c_str();
  c.problem = libfabric.problem.c_str();
  return c;
}

weft_candidate to_c(const Candidate& candidate) {
  weft_candidate c{};
  c.provider = candidate.provider.c_str();
  c.domain = candidate.domain.c_str();
  c.fabric = candidate.fabric.c_str();
  c.reason = candidate.reason.c_str();
  c.taken = candidate.taken;
  return c;
}

}  // namespace

weft_code weft_engine_open(const weft_config* config, weft_engine** engine, weft_error** error) {
  return call(error, {{"engine", engine}},
              [&] { return give(engine, Engine::open(config_of(config))); });
}

weft_code weft_engine_close(weft_engine* engine, int64_t timeout_ns, weft_error** error) {
  return call(error, {{"engine", engine}}, [&] { return engine->value.close(in(timeout_ns)); });
}

void weft_engine_free(weft_engine* engine) {
  delete engine;
}

const char* weft_engine_name(const weft_engine* engine) {
  return engine != nullptr ? engine->value.name().c_str() : nullptr;
}

const char* weft_engine_address(const weft_engine* engine) {
  return engine != nullptr ? engine->value.address().c_str() : nullptr;
}

weft_code weft_engine_info(const weft_engine* engine, weft_info** info, weft_error** error) {
  return call(error, {{"engine", engine}, {"info", info}},
              [&] { return give(info, Result<Info>(engine->value.info())); });
}

weft_code weft_discover(const weft_config* config, weft_info** info, weft_error** error) {
  return call(error, {{"info", info}}, [&] {
    return give(info, discover(config_of(config)).map([](auto&& candidates) {
      Info found;
      found.candidates = std::move(candidates);
      found.libfabric = process_info().libfabric;
      return found;
    }));
  });
}

void weft_info_free(weft_info* info) {
  delete info;
}

uint64_t weft_info_incarnation(const weft_info* info) {
  return info != nullptr ? info->value.incarnation : 0;
}
uint64_t weft_info_transfers_active(const weft_info* info) {
  return info != nullptr ? info->value.transfers_active : 0;
}
uint64_t weft_info_segments(const weft_info* info) {
  return info != nullptr ? info->value.segments : 0;
}
size_t weft_info_rail_count(const weft_info* info) {
  return info != nullptr ? info->value.rails.size() : 0;
}
size_t weft_info_candidate_count(const weft_info* info) {
  return info != nullptr ? info->value.candidates.size() : 0;
}

size_t weft_info_setting_count(const weft_info* info) {
  return info != nullptr ? info->value.settings.size() : 0;
}
const char* weft_info_fallback(const weft_info* info) {
  return info != nullptr ? info->value.fallback.c_str() : nullptr;
}

weft_code weft_info_setting(const weft_info* info, size_t index, weft_setting* setting,
                            weft_error** error) {
  return call(error, {{"info", info}, {"setting", setting}}, [&] {
    return at("setting", info->value.settings, index).and_then([&](const Setting* found) {
      return fill("setting", setting, to_c(*found));
    });
  });
}

weft_code weft_info_rail(const weft_info* info, size_t index, weft_rail_info* rail,
                         weft_error** error) {
  return call(error, {{"info", info}, {"rail", rail}}, [&] {
    return at("rail", info->value.rails, index).and_then([&](const RailInfo* found) {
      return fill("rail", rail, to_c(*found));
    });
  });
}

weft_code weft_info_candidate(const weft_info* info, size_t index, weft_candidate* candidate,
                              weft_error** error) {
  return call(error, {{"info", info}, {"candidate", candidate}}, [&] {
    return at("candidate", info->value.candidates, index).and_then([&](const Candidate* found) {
      return fill("candidate", candidate, to_c(*found));
    });
  });
}

weft_code weft_info_libfabric(const weft_info* info, weft_libfabric* libfabric,
                              weft_error** error) {
  return call(error, {{"info", info}, {"libfabric", libfabric}},
              [&] { return fill("libfabric", libfabric, to_c(info->value.libfabric)); });
}

weft_code weft_engine_connect(weft_engine* engine, const char* address, int64_t timeout_ns,
                              weft_peer** peer, weft_error** error) {
  return call(error, {{"engine", engine}, {"address", address}, {"peer", peer}},
              [&] { return give(peer, engine->value.connect(address, in(timeout_ns))); });
}

weft_code weft_engine_keep_connected(weft_engine* engine, const char* address, int64_t timeout_ns,
                                     weft_peer** peer, weft_error** error) {
  return call(error, {{"engine", engine}, {"address", address}, {"peer", peer}},
              [&] { return give(peer, engine->value.keep_connected(address, in(timeout_ns))); });
}

weft_code weft_engine_peer(weft_engine* engine, const char* name, int64_t timeout_ns,
                           weft_peer** peer, weft_error** error) {
  return call(error, {{"engine", engine}, {"name", name}, {"peer", peer}},
              [&] { return give(peer, engine->value.peer(name, in(timeout_ns))); });
}

weft_code weft_engine_accept(weft_engine* engine, int64_t timeout_ns, weft_peer** peer,
                             weft_error** error) {
  return call(error, {{"engine", engine}, {"peer", peer}},
              [&] { return give(peer, engine->value.accept(in(timeout_ns))); });
}
int weft_engine_accept_fd(const weft_engine* engine) {
  return engine != nullptr ? engine->value.accept_fd() : -1;
}

weft_code weft_engine_peers(const weft_engine* engine, weft_peer** peers, size_t capacity,
                            size_t* count, weft_error** error) {
  return call(error, {{"engine", engine}, list("peers", peers, capacity), {"count", count}},
              [&]() -> Result<void> {
                std::vector<std::unique_ptr<weft_peer>> made;
                const std::vector<Peer> up = engine->value.peers();
                for (std::size_t i = 0; i < std::min(capacity, up.size()); ++i)
                  made.push_back(std::unique_ptr<weft_peer>(new weft_peer{up[i]}));
                for (std::size_t i = 0; i < made.size(); ++i) peers[i] = made[i].release();
                *count = capacity > 0 ? made.size() : up.size();
                return {};
              });
}

weft_code weft_peer_disconnect(const weft_peer* peer, weft_error** error) {
  return call(error, {{"peer", peer}}, [&] { return peer->value.disconnect(); });
}

weft_code weft_engine_reopen(weft_engine* engine, const char* rail, int64_t timeout_ns,
                             weft_error** error) {
  return call(error, {{"engine", engine}, {"rail", rail}},
              [&] { return engine->value.reopen(rail, in(timeout_ns)); });
}

void weft_peer_free(weft_peer* peer) {
  delete peer;
}

const char* weft_peer_name(const weft_peer* peer) {
  return peer != nullptr ? peer->value.name().c_str() : nullptr;
}
uint64_t weft_peer_incarnation(const weft_peer* peer) {
  return peer != nullptr ? peer->value.incarnation() : 0;
}
bool weft_peer_up(const weft_peer* peer) {
  return peer != nullptr && peer->value.up();
}
const char* weft_peer_health(const weft_peer* peer) {
  return peer != nullptr ? weft::to_string(peer->value.health()).data() : nullptr;
}
bool weft_peer_same_host(const weft_peer* peer) {
  return peer != nullptr && peer->value.same_host();
}
const char* weft_peer_address(const weft_peer* peer) {
  return peer != nullptr ? peer->value.address().c_str() : nullptr;
}
const char* weft_peer_route_reason(const weft_peer* peer) {
  return peer != nullptr ? peer->value.route_reason().c_str() : nullptr;
}

const char* weft_peer_fallback(const weft_peer* peer) {
  return peer != nullptr ? peer->value.fallback().c_str() : nullptr;
}
size_t weft_peer_rail_count(const weft_peer* peer) {
  return peer != nullptr ? peer->rails.size() : 0;
}
const char* weft_peer_rail(const weft_peer* peer, size_t index) {
  return index < weft_peer_rail_count(peer) ? peer->rails[index].c_str() : nullptr;
}

weft_code weft_peer_check(const weft_peer* peer, weft_error** error) {
  return call(error, {{"peer", peer}}, [&]() -> Result<void> {
    if (peer->value.up()) return {};
    return fail(
        peer->value.why_down().value_or(Error(Code::peer_down, "the peer has not come up yet")));
  });
}
