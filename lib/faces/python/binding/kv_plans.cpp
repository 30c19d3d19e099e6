#include <fmt/format.h>
#include <nanobind/ndarray.h>
#include <nanobind/operators.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <cstring>
#include <memory>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>
#include <weft/kv.hpp>

#include "python/binding/errors.hpp"
#include "python/binding/gil.hpp"
#include "python/binding/kv.hpp"
#include "python/binding/pieces.hpp"
#include "python/binding/text.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace weft::python {
namespace {

/// A number of tokens from the first on, or (first, count).
using Tokens = std::variant<std::uint64_t, TokenTuple>;

kv::TokenRange range_of(const TokenTuple& tokens) {
  return {tokens.first, tokens.second};
}

kv::TokenRange range_of(const Tokens& tokens) {
  if (const auto* count = std::get_if<std::uint64_t>(&tokens)) return {0, *count};
  return range_of(std::get<TokenTuple>(tokens));
}

std::optional<kv::LayerRange> range_of(const std::optional<LayerTuple>& layers) {
  if (!layers) return {};
  return kv::LayerRange{layers->first, layers->second};
}

/// weft.kv.Blocks.
struct PyBlocks {
  PageNumbers ids;
  std::uint64_t first_token;
  std::optional<TokenTuple> tokens;
  kv::Blocks get() const {
    return {ids.get(), first_token,
            tokens ? std::optional(range_of(*tokens)) : std::optional<kv::TokenRange>()};
  }
};

/// The blocks of one side, and the objects that they belong to.
class BlockLists {
 public:
  explicit BlockLists(nb::handle argument) {
    if (nb::isinstance<PyBlocks>(argument)) {
      add(argument);
    } else {
      for (const nb::handle each : argument) add(each);
    }
  }
  std::span<const kv::Blocks> get() const noexcept { return blocks_; }

 private:
  void add(nb::handle blocks) {
    if (!nb::isinstance<PyBlocks>(blocks)) throw nb::type_error("blocks: a Blocks for each group");
    blocks_.push_back(nb::cast<const PyBlocks&>(blocks).get());
    owners_.push_back(nb::borrow(blocks));
  }
  std::vector<kv::Blocks> blocks_;
  std::vector<nb::object> owners_;
};

/// weft.kv.Plan.
struct PyPlan {
  std::shared_ptr<const kv::Plan> plan;
};

void bind_cache(nb::module_& module) {
  using Bases = std::vector<std::pair<std::uint32_t, std::uint64_t>>;
  nb::class_<kv::Cache>(module, "Cache", "A layout that has a place in memory.")
      .def(
          "__init__",
          [](kv::Cache* self, const kv::Layout& layout, const std::optional<Bases>& bases) {
            if (!bases) {
              new (self) kv::Cache(must(kv::Cache::contiguous(layout)));
              return;
            }
            std::vector<kv::Base> list;
            for (const auto& [region, offset] : *bases) list.push_back({region, offset});
            new (self) kv::Cache(must(kv::Cache::create(layout, std::move(list))));
          },
          "layout"_a, "bases"_a = nb::none(),
          "bases: for each region of the layout, in the order of Layout.region_bytes, the number "
          "of the segment that holds it and its offset there in bytes. Regions of different groups "
          "may be the same bytes. None: all regions one after another in segment 0.")
      .def_static(
          "of_segments",
          [](const kv::Layout& layout) {
            std::vector<kv::Base> list;
            for (std::uint32_t i = 0; i < layout.region_bytes().size(); ++i) list.push_back({i, 0});
            return must(kv::Cache::create(layout, std::move(list)));
          },
          "layout"_a, "Region i is all of segment i.")
      .def_prop_ro("layout", &kv::Cache::layout)
      .def_prop_ro("bases", [](const kv::Cache& self) {
        Bases list;
        for (const kv::Base& base : self.bases()) list.emplace_back(base.region, base.offset);
        return list;
      });
}

void bind_blocks(nb::module_& module) {
  nb::class_<PyBlocks>(module, "Blocks", "The blocks of one request in one group, on one side.")
      .def(
          "__init__",
          [](PyBlocks* self, nb::handle ids, std::uint64_t first_token,
             std::optional<TokenTuple> tokens) {
            new (self) PyBlocks{PageNumbers(ids, "ids", true), first_token, tokens};
          },
          "ids"_a = nb::make_tuple(), "first_token"_a = 0, "tokens"_a = nb::none(),
          nb::sig("def __init__(self, ids: typing.Any = (), first_token: int = 0, "
                  "tokens: tuple[int, int] | None = None) -> None"),
          "ids: an array of block numbers in token order, which is copied; of states "
          "one, or none at the destination if that has the state. first_token: the request's token "
          "with which the first of them begins; not 0 where older blocks were freed, as with "
          "windows. tokens: at the destination, the (first, count) to copy in this group, where "
          "they differ from the request's, as missing() gives them.");
}

nb::object copies_of(const PyPlan& self) {
  const std::size_t count = self.plan->copies.size();
  auto rows = std::make_unique<std::vector<std::uint64_t>>();
  rows->reserve(5 * count);
  for (const kv::Copy& copy : self.plan->copies)
    rows->insert(rows->end(),
                 {copy.src_region, copy.dst_region, copy.src_offset, copy.dst_offset, copy.length});
  auto* const held = rows.release();
  const nb::capsule holder(
      held, [](void* p) noexcept { delete static_cast<std::vector<std::uint64_t>*>(p); });
  return nb::ndarray<nb::numpy, std::uint64_t, nb::ndim<2>>(held->data(), {count, 5}, holder)
      .cast();
}

using Transfers = std::vector<std::tuple<std::uint32_t, std::uint32_t, Pieces>>;

/// The copies are sorted by their regions.
Transfers transfers_of(const PyPlan& self) {
  Transfers lists;
  for (const kv::Copy& copy : self.plan->copies) {
    const bool same = !lists.empty() && std::get<0>(lists.back()) == copy.src_region &&
                      std::get<1>(lists.back()) == copy.dst_region;
    if (!same) lists.emplace_back(copy.src_region, copy.dst_region, Pieces{});
    std::get<2>(lists.back()).pairs.push_back({copy.src_offset, copy.dst_offset, copy.length});
  }
  return lists;
}

PyPlan make_plan(const kv::Cache& src, nb::handle src_blocks, const kv::Cache& dst,
                 nb::handle dst_blocks, const Tokens& tokens,
                 const std::optional<LayerTuple>& layers) {
  const BlockLists from(src_blocks), to(dst_blocks);
  auto plan = [&] {
    const Unlocked others_run;
    return kv::plan(src, from.get(), dst, to.get(), range_of(tokens), range_of(layers));
  }();
  return {std::make_shared<const kv::Plan>(must(std::move(plan)))};
}

void bind_plan(nb::module_& module) {
  nb::class_<PyPlan>(module, "Plan", "Copies that write each destination byte once.")
      .def_prop_ro("bytes", [](const PyPlan& self) { return self.plan->bytes; })
      .def_prop_ro(
          "pieces", [](const PyPlan& self) { return self.plan->pieces; },
          "Copies before neighbours were joined.")
      .def("__len__", [](const PyPlan& self) { return self.plan->copies.size(); })
      .def_prop_ro(
          "coalescing_ratio", [](const PyPlan& self) { return self.plan->coalescing_ratio(); },
          "Pieces per copy: 1 if nothing could be joined.")
      .def("copies", &copies_of, nb::sig("def copies(self) -> typing.Any"),
           "A numpy array (n, 5) of uint64: source segment, destination segment, source offset, "
           "destination offset, bytes.")
      .def("transfers", &transfers_of,
           "One entry for each pair of segments, as (source segment, destination segment, Pieces): "
           "each is a transfer of its own, with the same signal.")
      .def("__repr__", [](const PyPlan& self) {
        return fmt::format("<weft.kv.Plan: {} copies, {} bytes>", self.plan->copies.size(),
                           self.plan->bytes);
      });
  module.def(
      "plan", &make_plan, "src"_a, "src_blocks"_a, "dst"_a, "dst_blocks"_a, "tokens"_a,
      "layers"_a = nb::none(),
      nb::sig("def plan(src: Cache, src_blocks: Blocks | typing.Iterable[Blocks], dst: Cache, "
              "dst_blocks: Blocks | typing.Iterable[Blocks], tokens: int | tuple[int, int], "
              "layers: tuple[int, int] | None = None) -> Plan"),
      "The copies that bring tokens of a request, and its states, from one source rank to one "
      "destination rank.\n\n"
      "src_blocks, dst_blocks: one Blocks for each group of that side. tokens: how many, from the "
      "first on; or (first, count). layers: (first, count); None: all. The plan covers the layers, "
      "fields, heads and tokens that both ranks hold. Those fields must agree in heads, vectors, "
      "rows and window; the two sides may differ in all else. The plans of all source ranks "
      "together write each destination byte once.");
}

void bind_ranks(nb::module_& module) {
  nb::class_<kv::Rank>(module, "Rank", "A source rank: its pipeline stage, and its rank in that.")
      .def(
          "__init__",
          [](kv::Rank* self, std::uint32_t pp, std::uint32_t tp, std::uint32_t dp) {
            new (self) kv::Rank{pp, tp, dp};
          },
          "pp"_a = 0, "tp"_a = 0, "dp"_a = 0)
      .def_ro("pp", &kv::Rank::pp)
      .def_ro("tp", &kv::Rank::tp)
      .def_ro("dp", &kv::Rank::dp, "The replica of attention that the layouts name.")
      .def(nb::self == nb::self, nb::sig("def __eq__(self, other: object, /) -> bool"))
      .def("__hash__",
           [](const kv::Rank& self) { return nb::hash(nb::make_tuple(self.pp, self.tp, self.dp)); })
      .def("__repr__", [](const kv::Rank& self) {
        return fmt::format("<weft.kv.Rank: pp {}, tp {}, dp {}>", self.pp, self.tp, self.dp);
      });
  module.def(
      "source_ranks",
      [](const std::vector<kv::Layout>& stages, const kv::Layout& dst,
         const std::optional<Tokens>& tokens, const std::optional<LayerTuple>& layers) {
        std::optional<kv::TokenRange> range;
        if (tokens) range = range_of(*tokens);
        return must(kv::source_ranks(stages, dst, range, range_of(layers)));
      },
      "stages"_a, "dst"_a, "tokens"_a = nb::none(), "layers"_a = nb::none(),
      "The source ranks whose plans for the rank of `dst` are not empty, ascending: the writers "
      "that a destination waits for.\n\n"
      "stages: the layout of any rank of each pipeline stage. tokens, layers: as for plan(); "
      "without tokens, of a request of any length.");
  module.def(
      "layer_ranges",
      [](const kv::Layout& src, const kv::Layout& dst, std::uint32_t count) {
        std::vector<LayerTuple> ranges;
        for (const kv::LayerRange& range : must(kv::layer_ranges(src, dst, count)))
          ranges.emplace_back(range.first, range.count);
        return ranges;
      },
      "src"_a, "dst"_a, "count"_a,
      "The layers that both hold, cut into at most `count` ranges (first, count) for plan(), with "
      "nearly as many of these layers in each. Empty if they have none in common.");
}

std::vector<kv::BlockHash> hashes_of(nb::handle argument) {
  std::vector<kv::BlockHash> hashes;
  for (const nb::handle each : argument) {
    if (!nb::isinstance<nb::bytes>(each)) throw nb::type_error("hashes are bytes");
    const auto digest = nb::borrow<nb::bytes>(each);
    kv::BlockHash hash{};
    if (digest.size() > hash.size())
      raise(Error(Code::invalid_argument, fmt::format("a hash of {} bytes: they have at most {}",
                                                      digest.size(), hash.size())));
    std::memcpy(hash.data(), digest.c_str(), digest.size());
    hashes.push_back(hash);
  }
  return hashes;
}

void bind_missing(nb::module_& module) {
  module.def(
      "missing",
      [](const kv::Group& group, nb::handle offered, nb::handle held, std::uint32_t tokens_per_hash,
         std::uint64_t tokens) {
        const auto range =
            must(kv::missing(group, hashes_of(offered), hashes_of(held), tokens_per_hash, tokens));
        return TokenTuple(range.first, range.count);
      },
      "group"_a, "offered"_a, "held"_a, nb::kw_only(), "tokens_per_hash"_a, "tokens"_a,
      nb::sig("def missing(group: Group, offered: typing.Iterable[bytes], "
              "held: typing.Iterable[bytes], *, tokens_per_hash: int, tokens: int) -> "
              "tuple[int, int]"),
      "The (first, count) of the tokens that a destination lacks in one group: Blocks.tokens.\n\n"
      "offered: hashes of the request's full blocks of tokens_per_hash tokens, in token order, "
      "each a digest of all tokens up to the block's end, of at most 32 bytes. held: those that "
      "the destination has, in any order. tokens: of the whole request. The destination keeps "
      "the blocks that it holds from the group's first needed token on. In a group of states the "
      "hash of the last token's block decides: the range is empty or all of the request.");
}

}  // namespace

void bind_kv_plans(nb::module_& module) {
  bind_cache(module);
  bind_blocks(module);
  bind_plan(module);
  bind_ranks(module);
  bind_missing(module);
}

}  // namespace weft::python
