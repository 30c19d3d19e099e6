#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>
#include <weft/kv.hpp>

/// A second opinion on layouts that shares no arithmetic with the library: it walks each region in
/// the order that kv.hpp documents, counts bytes, and notes which vector lies where.
namespace weft::kv::oracle {

/// One head's vector in one row: what it means and where it lies.
struct Slot {
  std::size_t group;
  std::uint32_t layer;  ///< Of the model.
  std::size_t field;    ///< Within the group.
  std::uint32_t block;
  std::uint32_t row;   ///< Within the block.
  std::uint32_t head;  ///< Of the model.
  std::uint32_t bytes;
  std::uint32_t region;
  std::uint64_t offset;
};

/// The request's blocks in one group, on one side, as kv::Blocks.
struct List {
  std::vector<std::uint32_t> ids;
  std::uint64_t first_token = 0;
  std::optional<TokenRange> tokens = {};
};

/// A place for the layout: each base in a region of its own at an odd offset, or all together.
Cache scattered(const Layout& layout);
Cache together(const Layout& layout);

/// A field of a layer.
using Part = std::pair<std::uint32_t, std::string>;

/// A request: its blocks by group, its tokens and the layers to copy.
struct Request {
  std::vector<List> lists;
  TokenRange tokens;
  std::optional<LayerRange> layers = {};
  std::set<Part> unknown = {};  ///< What no rank of the other side holds.
};

using Memory = std::vector<std::vector<std::uint8_t>>;  ///< By region.

/// One rank of one side with what its memory holds or ought to hold.
struct Rank {
  Rank(Cache cache, const Request& request);

  Cache cache;
  Request request;
  Memory filled;    ///< The request's bytes, which depend on what and where they are; else noise.
  Memory blank;     ///< The same byte everywhere.
  Memory expected;  ///< blank, with the request's bytes in what is to be copied.
  Memory writes;    ///< How often each byte must be written to get from blank to expected.
};

/// All ranks of one side, of one pipeline stage.
std::vector<Rank> ranks(const std::vector<Group>& groups, std::uint32_t tp_size,
                        const Request& request, bool scatter = false, ContextParallel dcp = {});

/// The lists of a rank, for plan().
std::vector<Blocks> blocks_of(const Rank& rank);

/// plan() from one rank to the other.
Result<Plan> plan_of(const Rank& src, const Rank& dst);

/// Plans from every source rank to every destination rank, carries the plans out and compares the
/// memory and the number of writes of each byte. Empty if all is well, else what went wrong first.
std::string check(const std::vector<Rank>& src, const std::vector<Rank>& dst);

}  // namespace weft::kv::oracle
