// The messages between prefill and decode, as JSON documents. They come from outside: reading
// checks everything and fails with `protocol_mismatch`.
//
//   prefill                            decode
//     Hello (model, layout, numbers) ->
//                                   <- Welcome (layout), or a refusal
//     for each request, several at a time:
//       Request                      ->
//                                   <- Granted (blocks, names of the grants, signals)
//       writes, a signal per layer group
//                                   <- signal: Acknowledgement (blocks read, free them)
//     Report                         ->
//                                   <- Report (with what it found)
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/exchange.hpp"
#include "demo/cache.hpp"

namespace weft::tool {

/// Of these documents, told in Hello.
constexpr std::uint32_t protocol_version = 4;

/// Bounds against made-up numbers; far above any real run.
constexpr std::uint64_t max_tokens = std::uint64_t{1} << 24;
constexpr std::uint64_t max_requests = std::uint64_t{1} << 20;
constexpr std::uint32_t max_concurrency = 64;
constexpr std::uint32_t max_tokens_per_block = 1 << 16;
constexpr std::uint32_t max_ranks = 1 << 12;

/// The subject of a message: the upper byte of its tag. The rest is the request's number.
enum class Topic : std::uint8_t {
  hello = 1,
  welcome,
  request,
  granted,
  prefill_report,
  decode_report
};

constexpr std::uint64_t tag_of(Topic topic, std::uint64_t request = 0) {
  return std::uint64_t{static_cast<std::uint8_t>(topic)} << 56 | request;
}

/// Signals are numbered by request; the upper bit tells acknowledgements from layer groups.
constexpr std::uint64_t acknowledgement_signal(std::uint64_t request) {
  return std::uint64_t{1} << 63 | request;
}
constexpr std::uint64_t layer_group_signal(std::uint64_t request, std::uint64_t group) {
  return request << 32 | group;
}

struct Hello {
  CacheShape cache;
  std::uint64_t tokens = 0;  ///< Of each request.
  std::uint64_t requests = 0;
  std::uint32_t concurrency = 0;
  std::uint32_t layer_groups = 0;
  std::uint64_t seed = 0;  ///< Of the pattern.
};

struct Welcome {
  std::string refusal;  ///< Why not; then the rest is void.
  CacheShape cache;
};

struct Request {
  std::uint64_t number = 0;
};

struct Granted {
  std::string refusal;
  BlockTable blocks;
  std::vector<std::string> grants;     ///< Published names, one for each layer group.
  std::vector<std::uint64_t> signals;  ///< Ids, one for each layer group.
};

struct Acknowledgement {
  std::uint64_t request = 0;
  std::uint64_t blocks = 0;  ///< Read, to be freed.
  std::string problem;       ///< What was wrong with them; empty if nothing.
};

Json to_json(const Hello& hello);
Json to_json(const Welcome& welcome);
Json to_json(const Request& request);
Json to_json(const Granted& granted);
Json to_json(const Acknowledgement& acknowledgement);

template <>
Result<Hello> from_json(const Json& json);
template <>
Result<Welcome> from_json(const Json& json);
template <>
Result<Request> from_json(const Json& json);
template <>
Result<Granted> from_json(const Json& json);
template <>
Result<Acknowledgement> from_json(const Json& json);

}  // namespace weft::tool
