#include "report/title.hpp"

#include <fmt/format.h>

#include "common/units.hpp"

namespace weft::perf {
namespace {

/// "write", or also the model and the tokens of its cache.
std::string what(const Work& work) {
  const std::string operation = name_of(work.operation);
  if (work.kv.model.empty()) return operation;
  return fmt::format("{} {} {} tokens", operation, work.kv.model, work.kv.tokens);
}

/// How it is moved, as far as that differs from what is usual.
std::string manner(const Point& point) {
  const Work& work = point.work;
  std::string text;
  if (work.pieces > 1) text += fmt::format(" x{} {}", work.pieces, name_of(work.pattern));
  text += fmt::format(", window {}", work.window);
  if (point.initiators > 1) text += fmt::format(", {} initiators", point.initiators);
  if (point.peers > 1) text += fmt::format(", {} peers", point.peers);
  if (work.rate > 0) text += fmt::format(", {:.0f}/s", work.rate);
  const auto add = [&](const char* name, std::uint64_t value, std::uint64_t standard) {
    if (value != standard) text += fmt::format(" {} {}", name, value);
  };
  if (const KvShape& kv = work.kv, usual; !kv.model.empty()) {
    if (kv.dtype != usual.dtype) text += " " + kv.dtype;
    add("block-tokens", kv.block_tokens, usual.block_tokens);
    add("layer-groups", kv.layer_groups, usual_layer_groups);
    add("tp", kv.tp, usual.tp);
    add("peer-tp", kv.peer_tp, usual.peer_tp);
    add("pp", kv.pp, usual.pp);
    add("peer-pp", kv.peer_pp, usual.peer_pp);
  }
  const Fabric& fabric = point.fabric;
  add("batch", work.batch, 1);
  add("rails", fabric.rails, 0);
  add("nics", fabric.nics, Fabric().nics);
  add("threads", fabric.threads, 0);
  add("chunk", fabric.chunk, 0);
  add("rail-window", fabric.rail_window, 0);
  add("bounce-bytes", fabric.bounce_bytes, 0);
  add("bounce-buffers", fabric.bounce_buffers, 0);
  if (fabric.gpu_path != Fabric().gpu_path) text += ", " + name_of(fabric.gpu_path);
  if (fabric.progress != Fabric().progress) text += ", " + name_of(fabric.progress) + " progress";
  if (work.memory != work.peer_memory)
    text += fmt::format(", {} and {} memory", work.memory, work.peer_memory);
  else if (work.memory != Work().memory)
    text += fmt::format(", {} memory", work.memory);
  if (work.priority != Work().priority) text += ", " + name_of(work.priority) + " priority";
  if (work.one_buffer) text += ", one buffer";
  return text;
}

}  // namespace

std::string title(const Point& point) {
  return fmt::format("{} {}{}", what(point.work), tool::binary_bytes(point.work.size),
                     manner(point));
}

std::string series_title(const Point& point) {
  const std::string& model = point.work.kv.model;
  return fmt::format("{}{}{}", name_of(point.work.operation), model.empty() ? "" : " " + model,
                     manner(point));
}

}  // namespace weft::perf
