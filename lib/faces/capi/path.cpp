// The C API: the paths of transfers.
#include <weft/path.hpp>

#include "capi/boundary.hpp"

using namespace weft;
using namespace weft::capi;

namespace {

weft_path_summary summary_of(const Path& path) {
  weft_path_summary c{};
  c.transport = static_cast<std::int32_t>(path.transport);
  c.provider = path.provider.c_str();
  c.same_host = path.same_host;
  c.gpudirect_local = path.gpudirect_local;
  c.gpudirect_remote = path.gpudirect_remote;
  c.copies = path.copies;
  c.copies_local = path.copies_local;
  c.copies_remote = path.copies_remote;
  c.cpu_copies = path.cpu_copies;
  c.bounced_below = path.bounced_below;
  c.bounces_local = path.bounces_local;
  c.bounces_remote = path.bounces_remote;
  c.gbps = path.gbps;
  c.limit = path.limit.c_str();
  c.refused = path.refused.c_str();
  c.hop_count = path.hops.size();
  c.not_used_count = path.not_used.size();
  return c;
}

weft_hop to_c(const Hop& hop, const std::string& from, const std::string& to) {
  weft_hop c{};
  c.from = static_cast<std::int32_t>(hop.from.kind);
  c.from_side = static_cast<std::int32_t>(hop.from.side);
  c.from_text = from.c_str();
  c.to = static_cast<std::int32_t>(hop.to.kind);
  c.to_side = static_cast<std::int32_t>(hop.to.side);
  c.to_text = to.c_str();
  c.by = static_cast<std::int32_t>(hop.by);
  c.side = static_cast<std::int32_t>(hop.side);
  c.copies = hop.copies();
  return c;
}

}  // namespace

weft_code weft_engine_explain(const weft_engine* engine, const weft_segment* local,
                              const weft_remote* remote, int32_t direction,
                              const weft_transfer_options* options, weft_path** path,
                              weft_error** error) {
  return call(
      error, {{"engine", engine}, {"local", local}, {"remote", remote}, {"path", path}}, [&] {
        return enumerator("direction", direction, Direction::write, Direction::read)
            .and_then([&](Direction known) {
              return read_optional("options", options)
                  .and_then([](const weft_transfer_options& given) { return from_c(given); })
                  .and_then([&](const TransferOptions& given) {
                    return give(path,
                                engine->value.explain(local->value, remote->value, known, given));
                  });
            });
      });
}

void weft_path_free(weft_path* path) {
  delete path;
}

weft_code weft_path_get(const weft_path* path, weft_path_summary* summary, weft_error** error) {
  return call(error, {{"path", path}, {"summary", summary}},
              [&] { return fill("summary", summary, summary_of(path->value)); });
}

weft_code weft_path_hop(const weft_path* path, size_t index, weft_hop* hop, weft_error** error) {
  return call(error, {{"path", path}, {"hop", hop}}, [&] {
    return at("hop", path->value.hops, index).and_then([&](const Hop* found) {
      return fill("hop", hop, to_c(*found, path->stops[index], path->stops[index + 1]));
    });
  });
}

const char* weft_path_not_used(const weft_path* path, size_t index) {
  return path != nullptr && index < path->value.not_used.size()
             ? path->value.not_used[index].c_str()
             : nullptr;
}
