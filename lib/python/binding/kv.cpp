#include "python/binding/kv.hpp"

#include <fmt/format.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <tuple>
#include <utility>
#include <vector>
#include <weft/kv.hpp>
#include <weft/kv_models.hpp>

#include "python/binding/errors.hpp"
#include "python/binding/gil.hpp"
#include "python/binding/pieces.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace weft::python {
namespace {

using Numbers = std::vector<std::uint64_t>;
using Pairs = std::vector<std::pair<std::uint32_t, std::uint64_t>>;

/// weft.kv.Blocks: the lists belong to Python objects, which it keeps.
struct PyBlocks {
  PageNumbers src, dst;
  std::optional<std::uint64_t> tokens;
  std::uint32_t src_skip, dst_skip;
  kv::Blocks get() const { return {src.get(), dst.get(), tokens, src_skip, dst_skip}; }
};

/// weft.kv.Plan.
struct PyPlan {
  std::shared_ptr<const kv::Plan> plan;
};

void bind_enums(nb::module_& module) {
  nb::enum_<kv::Parts>(module, "Parts", "What a layer keeps for each token.")
      .value("split", kv::Parts::split, "All blocks' keys, then their values: [2][blocks][page].")
      .value("fused", kv::Parts::fused, "Keys and values side by side: [blocks][2][page].")
      .value("latent", kv::Parts::latent, "One vector for both (MLA): [blocks][page].");
  nb::enum_<kv::Order>(module, "Order",
                       "The outer dimension. A page is one part of one block in one "
                       "layer.")
      .value("layer_major", kv::Order::layer_major)
      .value("block_major", kv::Order::block_major);
  nb::enum_<kv::HeadOrder>(module, "HeadOrder", "The order inside a page.")
      .value("nhd", kv::HeadOrder::nhd, "[tokens][heads][head size].")
      .value("hnd", kv::HeadOrder::hnd, "[heads][tokens][head size].");
  nb::enum_<kv::Regions>(module, "Regions", "The regions (tensors) that a group is allocated in.")
      .value("one", kv::Regions::one)
      .value("per_layer", kv::Regions::per_layer, "As vLLM does. Needs layer_major.")
      .value("per_part", kv::Regions::per_part, "One for keys, one for values. Needs split.")
      .value("per_layer_and_part", kv::Regions::per_layer_and_part, "As SGLang does. Needs both.");
  nb::enum_<kv::DType>(module, "DType", "Element type of a cache.")
      .value("bf16", kv::DType::bf16)
      .value("fp8", kv::DType::fp8);
  nb::enum_<kv::Attention>(module, "Attention", "The KV data of a model's layers.")
      .value("full", kv::Attention::full)
      .value("latent", kv::Attention::latent)
      .value("alternating", kv::Attention::alternating);
}

void bind_layout(nb::module_& module) {
  nb::class_<kv::Group>(module, "Group",
                        "Layers that share one block table. Most models have one group.")
      .def(
          "__init__",
          [](kv::Group* self, std::vector<std::uint32_t> layers, std::uint32_t blocks,
             std::uint32_t tokens_per_block, std::uint32_t kv_heads, std::uint32_t head_size,
             std::uint32_t element_size, kv::Parts parts, kv::Order order, kv::HeadOrder head_order,
             kv::Regions regions, std::uint64_t block_padding, std::uint64_t block_alignment,
             std::uint32_t window) {
            new (self) kv::Group{std::move(layers),
                                 blocks,
                                 tokens_per_block,
                                 kv_heads,
                                 head_size,
                                 element_size,
                                 parts,
                                 order,
                                 head_order,
                                 regions,
                                 block_padding,
                                 block_alignment,
                                 window};
          },
          nb::kw_only(), "layers"_a, "blocks"_a, "tokens_per_block"_a, "kv_heads"_a, "head_size"_a,
          "element_size"_a, "parts"_a = kv::Parts::split, "order"_a = kv::Order::layer_major,
          "head_order"_a = kv::HeadOrder::nhd, "regions"_a = kv::Regions::one,
          "block_padding"_a = 0, "block_alignment"_a = 1, "window"_a = 0,
          "layers: numbers of the model's layers, ascending. blocks: in the cache. "
          "tokens_per_block: vLLM's block_size, SGLang's page_size. kv_heads: of the model, before "
          "tensor parallelism; 1 for latents. head_size: elements. element_size: bytes. "
          "block_padding, block_alignment: bytes. window: tokens that the layers look back on; "
          "0: all.")
      .def_ro("layers", &kv::Group::layers)
      .def_ro("blocks", &kv::Group::blocks)
      .def_ro("tokens_per_block", &kv::Group::tokens_per_block)
      .def_ro("kv_heads", &kv::Group::kv_heads)
      .def_ro("head_size", &kv::Group::head_size)
      .def_ro("element_size", &kv::Group::element_size)
      .def_ro("parts", &kv::Group::parts)
      .def_ro("order", &kv::Group::order)
      .def_ro("head_order", &kv::Group::head_order)
      .def_ro("regions", &kv::Group::regions)
      .def_ro("block_padding", &kv::Group::block_padding)
      .def_ro("block_alignment", &kv::Group::block_alignment)
      .def_ro("window", &kv::Group::window)
      .def("__repr__", [](const kv::Group& self) {
        return fmt::format("<weft.kv.Group: {} layers, {} blocks of {} tokens>", self.layers.size(),
                           self.blocks, self.tokens_per_block);
      });

  nb::class_<kv::Layout>(module, "Layout",
                         "The shape of one process's cache, checked and immutable.")
      .def(
          "__init__",
          [](kv::Layout* self, std::vector<kv::Group> groups, std::uint32_t tp_size,
             std::uint32_t tp_rank) {
            new (self) kv::Layout(must(kv::Layout::create(std::move(groups), {tp_size, tp_rank})));
          },
          "groups"_a, nb::kw_only(), "tp_size"_a = 1, "tp_rank"_a = 0,
          "tp_size, tp_rank: of tensor parallelism; sizes from 1 to 8. Raises InvalidArgument, "
          "with "
          "the group and the numbers, if the description contradicts itself.")
      .def_prop_ro("groups",
                   [](const kv::Layout& self) {
                     return std::vector<kv::Group>(self.groups().begin(), self.groups().end());
                   })
      .def_prop_ro("tp_size", [](const kv::Layout& self) { return self.tensor_parallel().size; })
      .def_prop_ro("tp_rank", [](const kv::Layout& self) { return self.tensor_parallel().rank; })
      .def(
          "heads",
          [](const kv::Layout& self, std::size_t group) {
            if (group >= self.groups().size()) throw nb::index_error("no such group");
            const kv::HeadRange heads = self.heads(group);
            return std::pair(heads.first, heads.count);
          },
          "group"_a = 0, "The first head of a group that this rank holds, and how many.")
      .def_prop_ro(
          "region_bytes",
          [](const kv::Layout& self) {
            return Numbers(self.region_bytes().begin(), self.region_bytes().end());
          },
          "Sizes of the regions to allocate: by group, then layer, then K before V. They "
          "must equal the sizes of your tensors.")
      .def_prop_ro("bytes", &kv::Layout::bytes, "All regions together.")
      .def_prop_ro("bytes_per_token", &kv::Layout::bytes_per_token,
                   "On this rank in all layers, without padding.")
      .def("__repr__", [](const kv::Layout& self) {
        return fmt::format("<weft.kv.Layout: {} groups, {} regions, {} bytes, rank {} of {}>",
                           self.groups().size(), self.region_bytes().size(), self.bytes(),
                           self.tensor_parallel().rank, self.tensor_parallel().size);
      });
}

void bind_cache(nb::module_& module) {
  nb::class_<kv::Cache>(module, "Cache", "A layout that has a place in memory.")
      .def(
          "__init__",
          [](kv::Cache* self, const kv::Layout& layout, const std::optional<Pairs>& bases) {
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
          "of "
          "the segment that holds it and its offset there in bytes. None: all regions one after "
          "another in segment 0.")
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
        Pairs list;
        for (const kv::Base& base : self.bases()) list.emplace_back(base.region, base.offset);
        return list;
      });
  nb::class_<PyBlocks>(module, "Blocks",
                       "What to copy in one group: tokens of one request, by its blocks.")
      .def(
          "__init__",
          [](PyBlocks* self, nb::handle src, nb::handle dst, std::optional<std::uint64_t> tokens,
             std::uint32_t src_skip, std::uint32_t dst_skip) {
            new (self) PyBlocks{PageNumbers(src, "src"), PageNumbers(dst, "dst"), tokens, src_skip,
                                dst_skip};
          },
          "src"_a, "dst"_a, "tokens"_a = nb::none(), "src_skip"_a = 0, "dst_skip"_a = 0,
          nb::sig("def __init__(self, src: typing.Any, dst: typing.Any, tokens: int | None = None, "
                  "src_skip: int = 0, dst_skip: int = 0) -> None"),
          "src, dst: arrays of block numbers in token order (uint32 is used as it lies). tokens: "
          "how many to copy; None: all of both lists. Skips: tokens to skip in the first block.");
}

nb::object copies_of(const PyPlan& self) {
  const std::size_t count = self.plan->copies.size();
  std::vector<std::uint64_t> rows;
  rows.reserve(5 * count);
  for (const kv::Copy& copy : self.plan->copies)
    rows.insert(rows.end(),
                {copy.src_region, copy.dst_region, copy.src_offset, copy.dst_offset, copy.length});
  auto* const held = new std::vector<std::uint64_t>(std::move(rows));
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

PyPlan make_plan(const kv::Cache& src, const kv::Cache& dst, nb::handle blocks,
                 std::optional<std::pair<std::uint32_t, std::uint32_t>> layers) {
  std::vector<kv::Blocks> list;
  if (nb::isinstance<PyBlocks>(blocks)) {
    list.push_back(nb::cast<const PyBlocks&>(blocks).get());
  } else {
    for (const nb::handle each : nb::borrow<nb::sequence>(blocks))
      list.push_back(nb::cast<const PyBlocks&>(each).get());
  }
  std::optional<kv::LayerRange> range;
  if (layers) range = kv::LayerRange{layers->first, layers->second};
  auto plan = [&] {
    const Unlocked others_run;
    return kv::plan(src, dst, list, range);
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
      "plan", &make_plan, "src"_a, "dst"_a, "blocks"_a, "layers"_a = nb::none(),
      nb::sig("def plan(src: Cache, dst: Cache, blocks: Blocks | typing.Sequence[Blocks], "
              "layers: tuple[int, int] | None = None) -> Plan"),
      "The copies that bring blocks (one Blocks for each group) from one source rank to one "
      "destination rank.\n\n"
      "layers: (first, count); None: all. The two sides must describe the same model and may "
      "differ in block size, order, head order, regions, padding and tensor-parallel size.");
  module.def(
      "source_ranks",
      [](const kv::Layout& src, const kv::Layout& dst) { return must(kv::source_ranks(src, dst)); },
      "src"_a, "dst"_a,
      "The source ranks whose plans for the rank of `dst` are not empty: the writers that a "
      "destination waits for.");
}

void bind_models(nb::module_& module) {
  nb::class_<kv::Model>(module, "Model", "A model's KV shape, from its published configuration.")
      .def_ro("name", &kv::Model::name)
      .def_ro("id", &kv::Model::id, "On the Hugging Face hub.")
      .def_ro("layers", &kv::Model::layers)
      .def_ro("kv_heads", &kv::Model::kv_heads)
      .def_ro("head_size", &kv::Model::head_size)
      .def_ro("attention", &kv::Model::attention)
      .def_ro("window", &kv::Model::window)
      .def(
          "layout",
          [](const kv::Model& self, std::uint32_t blocks, std::uint32_t tokens_per_block,
             kv::DType dtype, std::uint32_t tp_size, std::uint32_t tp_rank, kv::Parts parts,
             kv::Order order, kv::HeadOrder head_order, kv::Regions regions,
             std::uint64_t block_padding, std::uint64_t block_alignment) {
            return must(self.layout({dtype,
                                     tokens_per_block,
                                     blocks,
                                     {tp_size, tp_rank},
                                     parts,
                                     order,
                                     head_order,
                                     regions,
                                     block_padding,
                                     block_alignment}));
          },
          nb::kw_only(), "blocks"_a, "tokens_per_block"_a = 16, "dtype"_a = kv::DType::bf16,
          "tp_size"_a = 1, "tp_rank"_a = 0, "parts"_a = kv::Parts::split,
          "order"_a = kv::Order::layer_major, "head_order"_a = kv::HeadOrder::nhd,
          "regions"_a = kv::Regions::one, "block_padding"_a = 0, "block_alignment"_a = 1,
          "The layout of one rank; arguments as for Group and Layout.")
      .def("bytes_per_token", &kv::Model::bytes_per_token, "dtype"_a = kv::DType::bf16,
           "In all layers of the whole model.")
      .def("__repr__",
           [](const kv::Model& self) { return fmt::format("<weft.kv.Model: {}>", self.name); });
  module.def(
      "models", [] { return std::vector<kv::Model>(kv::models().begin(), kv::models().end()); },
      "All known models.");
  module.def(
      "find_model", [](std::string_view name) { return must(kv::find_model(name)); }, "name"_a,
      "The model of that name or id, in any case of letters. Raises NotFound, with the names.");
}

}  // namespace

void bind_kv(nb::module_& module) {
  bind_enums(module);
  bind_layout(module);
  bind_cache(module);
  bind_plan(module);
  bind_models(module);
}

}  // namespace weft::python
