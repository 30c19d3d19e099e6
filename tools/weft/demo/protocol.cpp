#include "demo/protocol.hpp"

#include <fmt/format.h>

#include <limits>
#include <stdexcept>

#include "common/names.hpp"

namespace weft::tool {
namespace {

constexpr std::uint32_t max_block_number = std::numeric_limits<std::uint32_t>::max();

/// Caught where a document's reading ends.
class Malformed : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

const Json& member(const Json& json, const char* name) {
  if (!json.is_object() || !json.contains(name))
    throw Malformed(fmt::format("\"{}\" is missing", name));
  return json[name];
}

std::uint64_t as_number(const Json& value, const char* name, std::uint64_t least,
                        std::uint64_t most) {
  if (!value.is_number_unsigned()) throw Malformed(fmt::format("\"{}\" is no number", name));
  const auto number = value.get<std::uint64_t>();
  if (number < least || number > most)
    throw Malformed(
        fmt::format("\"{}\" is {} and must be from {} to {}", name, number, least, most));
  return number;
}

std::uint64_t number(const Json& json, const char* name, std::uint64_t least, std::uint64_t most) {
  return as_number(member(json, name), name, least, most);
}

std::uint32_t small_number(const Json& json, const char* name, std::uint32_t least,
                           std::uint32_t most) {
  return static_cast<std::uint32_t>(number(json, name, least, most));
}

std::uint64_t any_number(const Json& json, const char* name) {
  return number(json, name, 0, std::numeric_limits<std::uint64_t>::max());
}

std::string text(const Json& json, const char* name) {
  const Json& value = member(json, name);
  if (!value.is_string()) throw Malformed(fmt::format("\"{}\" is no text", name));
  return value.get<std::string>();
}

template <typename Enum>
Enum choice(const Json& json, const char* name, const Names<Enum>& names) {
  const auto found = names.find(text(json, name));
  if (found == names.end())
    throw Malformed(fmt::format("\"{}\" is \"{}\", which is unknown", name, text(json, name)));
  return found->second;
}

const Json& list(const Json& json, const char* name) {
  const Json& value = member(json, name);
  if (!value.is_array()) throw Malformed(fmt::format("\"{}\" is no list", name));
  return value;
}

Json share_to_json(kv::Share share) {
  return {{"size", share.size}, {"rank", share.rank}};
}

kv::Share share_from_json(const Json& json, const char* name) {
  const Json& share = member(json, name);
  const std::uint32_t size = small_number(share, "size", 1, max_ranks);
  return {size, small_number(share, "rank", 0, size - 1)};
}

Json shape_to_json(const CacheShape& shape) {
  const kv::LayoutOptions& options = shape.options;
  return {{"model", shape.model.name},
          {"dtype", name_of(dtype_names, options.dtype)},
          {"tokens_per_block", options.tokens_per_block},
          {"blocks", options.blocks},
          {"state_blocks", options.state_blocks},
          {"tp", share_to_json(options.parallel.tp)},
          {"pp", share_to_json(shape.pp)},
          {"dp", share_to_json(options.parallel.dp)},
          {"placement", name_of(placement_names, options.placement)},
          {"order", name_of(order_names, options.order)},
          {"head_order", name_of(head_order_names, options.head_order)}};
}

CacheShape shape_from_json(const Json& json) {
  auto model = kv::find_model(text(json, "model"));
  if (!model) throw Malformed(model.error().message());
  CacheShape shape{*model, {}};
  shape.options.dtype = choice(json, "dtype", dtype_names);
  shape.options.tokens_per_block = small_number(json, "tokens_per_block", 1, max_tokens_per_block);
  shape.options.blocks = small_number(json, "blocks", 1, max_block_number);
  shape.options.state_blocks = small_number(json, "state_blocks", 0, max_block_number);
  shape.options.parallel.tp = share_from_json(json, "tp");
  shape.options.parallel.dp = share_from_json(json, "dp");
  shape.pp = share_from_json(json, "pp");
  shape.options.placement = choice(json, "placement", placement_names);
  shape.options.order = choice(json, "order", order_names);
  shape.options.head_order = choice(json, "head_order", head_order_names);
  return shape;
}

Hello read_hello(const Json& json) {
  const std::uint64_t version = any_number(json, "version");
  if (version != protocol_version)
    throw Malformed(
        fmt::format("its version is {} and this program's {}: use one version of weft "
                    "on both sides",
                    version, protocol_version));
  return {shape_from_json(member(json, "cache")),
          number(json, "tokens", 1, max_tokens),
          number(json, "requests", 1, max_requests),
          small_number(json, "concurrency", 1, max_concurrency),
          small_number(json, "layer_groups", 1, max_block_number),
          any_number(json, "seed")};
}

Welcome read_welcome(const Json& json) {
  Welcome welcome;
  welcome.refusal = json.is_object() && json.contains("refusal") ? text(json, "refusal") : "";
  if (welcome.refusal.empty()) welcome.cache = shape_from_json(member(json, "cache"));
  return welcome;
}

Request read_request(const Json& json) {
  return {number(json, "request", 0, max_requests - 1)};
}

Granted read_granted(const Json& json) {
  Granted granted;
  if (json.is_object() && json.contains("refusal")) {
    granted.refusal = text(json, "refusal");
    return granted;
  }
  for (const Json& group : list(json, "blocks")) {
    if (!group.is_array()) throw Malformed("\"blocks\" is no list of lists");
    auto& blocks = granted.blocks.emplace_back();
    for (const Json& block : group)
      blocks.push_back(static_cast<std::uint32_t>(as_number(block, "blocks", 0, max_block_number)));
  }
  for (const Json& name : list(json, "grants")) {
    if (!name.is_string()) throw Malformed("\"grants\" is no list of names");
    granted.grants.push_back(name.get<std::string>());
  }
  for (const Json& id : list(json, "signals"))
    granted.signals.push_back(
        as_number(id, "signals", 0, std::numeric_limits<std::uint64_t>::max()));
  return granted;
}

Acknowledgement read_acknowledgement(const Json& json) {
  return {number(json, "request", 0, max_requests - 1), any_number(json, "blocks"),
          text(json, "problem")};
}

template <typename Document>
Result<Document> checked(const char* what, const Json& json, Document (*read)(const Json&)) {
  try {
    return read(json);
  } catch (const Malformed& malformed) {
    return fail(Code::protocol_mismatch,
                fmt::format("the other side's {} can't be understood: {}", what, malformed.what()));
  }
}

}  // namespace

Json to_json(const Hello& hello) {
  return {{"version", protocol_version},
          {"cache", shape_to_json(hello.cache)},
          {"tokens", hello.tokens},
          {"requests", hello.requests},
          {"concurrency", hello.concurrency},
          {"layer_groups", hello.layer_groups},
          {"seed", hello.seed}};
}

Json to_json(const Welcome& welcome) {
  if (!welcome.refusal.empty()) return {{"refusal", welcome.refusal}};
  return {{"cache", shape_to_json(welcome.cache)}};
}

Json to_json(const Request& request) {
  return {{"request", request.number}};
}

Json to_json(const Granted& granted) {
  if (!granted.refusal.empty()) return {{"refusal", granted.refusal}};
  return {{"blocks", granted.blocks}, {"grants", granted.grants}, {"signals", granted.signals}};
}

Json to_json(const Acknowledgement& acknowledgement) {
  return {{"request", acknowledgement.request},
          {"blocks", acknowledgement.blocks},
          {"problem", acknowledgement.problem}};
}

template <>
Result<Hello> from_json(const Json& json) {
  return checked("greeting", json, read_hello);
}
template <>
Result<Welcome> from_json(const Json& json) {
  return checked("welcome", json, read_welcome);
}
template <>
Result<Request> from_json(const Json& json) {
  return checked("request", json, read_request);
}
template <>
Result<Granted> from_json(const Json& json) {
  return checked("list of granted blocks", json, read_granted);
}
template <>
Result<Acknowledgement> from_json(const Json& json) {
  return checked("acknowledgement", json, read_acknowledgement);
}

}  // namespace weft::tool
