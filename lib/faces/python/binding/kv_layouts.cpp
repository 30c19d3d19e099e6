#include <fmt/format.h>
#include <nanobind/operators.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include <utility>
#include <vector>
#include <weft/kv.hpp>

#include "python/binding/errors.hpp"
#include "python/binding/kv.hpp"
#include "python/binding/text.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace weft::python {
namespace {

void bind_enums(nb::module_& module) {
  nb::enum_<kv::DType>(module, "DType", "Type of an element.")
      .value("bf16", kv::DType::bf16)
      .value("fp8", kv::DType::fp8, "e4m3.")
      .value("fp16", kv::DType::fp16)
      .value("fp32", kv::DType::fp32)
      .value("fp8_e5m2", kv::DType::fp8_e5m2)
      .value("fp4", kv::DType::fp4, "e2m1, two in a byte.")
      .value("e8m0", kv::DType::e8m0, "The scales of mxfp8 and mxfp4.")
      .value("int8", kv::DType::int8);
  nb::enum_<kv::Placement>(module, "Placement", "Where the fields of a block lie.")
      .value("split", kv::Placement::split,
             "Each in a pool of its own: all blocks' keys, then all blocks' values.")
      .value("fused", kv::Placement::fused, "Those of a block behind one another.");
  nb::enum_<kv::Order>(module, "Order",
                       "The outer dimension. A page is one field of one block in one layer.")
      .value("layer_major", kv::Order::layer_major,
             "split: [layers][fields][blocks][page]; fused: [layers][blocks][fields][page].")
      .value("block_major", kv::Order::block_major,
             "split: [fields][blocks][layers][page]; fused: [blocks][layers][fields][page].");
  nb::enum_<kv::HeadOrder>(module, "HeadOrder", "The order inside a page.")
      .value("nhd", kv::HeadOrder::nhd, "[rows][heads][vector].")
      .value("hnd", kv::HeadOrder::hnd, "[heads][rows][vector].");
  nb::enum_<kv::Regions>(module, "Regions",
                         "The regions (tensors) that a group is allocated in. Fields beside one "
                         "another share theirs.")
      .value("one", kv::Regions::one)
      .value("per_layer", kv::Regions::per_layer, "As vLLM does. Needs layer_major.")
      .value("per_field", kv::Regions::per_field, "One for keys, one for values. Needs split.")
      .value("per_layer_and_field", kv::Regions::per_layer_and_field,
             "As SGLang does. Needs both.");
  nb::enum_<kv::ConvOrder>(module, "ConvOrder",
                           "The dimension of a convolution's state that is the inner one.")
      .value("channels", kv::ConvOrder::channels,
             "[kernel - 1][channels], vLLM's \"SD\": x, B and C beside one another in each row.")
      .value("time", kv::ConvOrder::time,
             "[channels][kernel - 1], vLLM's \"DS\": x, B and C behind one another.");
}

void bind_field(nb::module_& module) {
  nb::class_<kv::Piece>(module, "Piece", "Neighbouring elements of one type.")
      .def(
          "__init__",
          [](kv::Piece* self, kv::DType type, std::uint32_t elements) {
            new (self) kv::Piece{type, elements};
          },
          "type"_a, "elements"_a)
      .def_ro("type", &kv::Piece::type)
      .def_ro("elements", &kv::Piece::elements)
      .def(nb::self == nb::self, nb::sig("def __eq__(self, other: object, /) -> bool"))
      .def("__repr__", [](const kv::Piece& self) {
        return fmt::format("<weft.kv.Piece: {} of {}>", self.elements, kv::name_of(self.type));
      });
  nb::class_<kv::Field>(
      module, "Field",
      "What a layer keeps under one name: keys, values, a latent, scales, an index, a state. In "
      "each block it is a matrix of rows and heads whose elements are vectors. Tensor parallelism "
      "deals the heads out; what every rank holds whole has one head.")
      .def(
          "__init__",
          [](kv::Field* self, std::string name, std::vector<kv::Piece> vector, std::uint32_t heads,
             std::uint32_t tokens_per_row, std::uint32_t rows, bool beside) {
            new (self)
                kv::Field{std::move(name), heads, std::move(vector), tokens_per_row, rows, beside};
          },
          "name"_a, "vector"_a, nb::kw_only(), "heads"_a = 1, "tokens_per_row"_a = 1, "rows"_a = 1,
          "beside"_a = false,
          "name: the same on both sides; once in a layer. vector: one head's, in one row; pieces "
          "of different types follow one another, whole bytes in all. heads: of the model, before "
          "tensor parallelism. tokens_per_row: 4 for one row for each four tokens, as of a "
          "compressed cache; 1 in groups of states. rows: in a group of states, of the request; "
          "else 1. beside: lies beside the field before it, row by row, and not behind its page.")
      .def_ro("name", &kv::Field::name)
      .def_ro("heads", &kv::Field::heads)
      .def_ro("vector", &kv::Field::vector)
      .def_ro("tokens_per_row", &kv::Field::tokens_per_row)
      .def_ro("rows", &kv::Field::rows)
      .def_ro("beside", &kv::Field::beside)
      .def("__repr__", [](const kv::Field& self) {
        std::string pieces;
        for (const kv::Piece& piece : self.vector)
          pieces += fmt::format("{}{} {}", pieces.empty() ? "" : " + ", piece.elements,
                                kv::name_of(piece.type));
        return fmt::format("<weft.kv.Field: {}, {} heads of {}>", self.name, self.heads, pieces);
      });
}

void bind_makers(nb::module_& module) {
  module.def("keys_values", &kv::keys_values, "heads"_a, "head_size"_a, "type"_a = kv::DType::bf16,
             "value_size"_a = 0,
             "Two fields. heads: of the model. value_size: elements; 0: as many as keys have.");
  module.def("latent", &kv::latent, "elements"_a, "type"_a = kv::DType::bf16,
             "The latent of MLA: one vector on every rank.");
  module.def("latent_fp8", &kv::latent_fp8, "nope"_a = 512, "rope"_a = 64,
             "vLLM's fp8_ds_mla: `nope` elements in fp8, an fp32 scale for each 128 of them, "
             "`rope` in bf16. 512 and 64 make 656 bytes.");
  module.def("index_keys", &kv::index_keys, "elements"_a = 128,
             "The keys of a sparse-attention indexer: in each page fp8 values of all tokens, then "
             "an fp32 scale for each 128 values.");
  module.def("scales_of", &kv::scales_of, "of"_a, "elements_per_scale"_a, "type"_a,
             "Scales of a field, behind each of its pages. 16 with DType.fp8 for nvfp4, 32 with "
             "DType.e8m0 for mxfp8.");
  nb::class_<kv::ConvRow>(
      module, "ConvRow",
      "One row of a convolution, such as x of Mamba 2, or the queries of a gated delta net.")
      .def(
          "__init__",
          [](kv::ConvRow* self, std::string name, std::uint32_t heads, std::uint32_t head_size) {
            new (self) kv::ConvRow{std::move(name), heads, head_size};
          },
          "name"_a, "heads"_a, "head_size"_a, "heads: dealt out by tensor parallelism.")
      .def_ro("name", &kv::ConvRow::name)
      .def_ro("heads", &kv::ConvRow::heads)
      .def_ro("head_size", &kv::ConvRow::head_size)
      .def("__repr__", [](const kv::ConvRow& self) {
        return fmt::format("<weft.kv.ConvRow: {}, {} heads of {}>", self.name, self.heads,
                           self.head_size);
      });
  module.def(
      "recurrent_state",
      [](const std::vector<kv::ConvRow>& rows, std::uint32_t kernel, kv::ConvOrder order,
         kv::DType conv_type, std::uint32_t heads, std::uint32_t state_elements,
         kv::DType state_type) {
        return kv::recurrent_state(rows, kernel, order, conv_type, heads, state_elements,
                                   state_type);
      },
      "rows"_a, nb::kw_only(), "kernel"_a, "order"_a, "conv_type"_a, "heads"_a, "state_elements"_a,
      "state_type"_a,
      "The state of a convolution over `kernel` tokens, and behind it a recurrent state of `heads` "
      "matrices of `state_elements` elements each.");
  module.def("bits_of", &kv::bits_of, "type"_a, "Bits of one element.");
}

void bind_parallel(nb::module_& module) {
  nb::class_<kv::Parallel>(
      module, "Parallel",
      "One rank among those that serve a model. Pipeline parallelism is in the layers of the "
      "groups; expert parallelism leaves caches as they are.")
      .def(
          "__init__",
          [](kv::Parallel* self, std::uint32_t tp_size, std::uint32_t tp_rank,
             std::uint32_t dcp_size, std::uint32_t dcp_interleave, std::uint32_t dp_size,
             std::uint32_t dp_rank) {
            new (self)
                kv::Parallel{{tp_size, tp_rank}, {dcp_size, dcp_interleave}, {dp_size, dp_rank}};
          },
          nb::kw_only(), "tp_size"_a = 1, "tp_rank"_a = 0, "dcp_size"_a = 1, "dcp_interleave"_a = 1,
          "dp_size"_a = 1, "dp_rank"_a = 0,
          "tp: tensor parallelism; each field's heads are a multiple or a divisor of its size. "
          "dcp: decode context parallelism among the ranks of tp that would hold the same heads; "
          "dcp_interleave tokens stay together. dp: the replica of attention, which source_ranks "
          "repeats. A Layout checks the numbers.")
      .def_prop_ro("tp_size", [](const kv::Parallel& self) { return self.tp.size; })
      .def_prop_ro("tp_rank", [](const kv::Parallel& self) { return self.tp.rank; })
      .def_prop_ro("dcp_size", [](const kv::Parallel& self) { return self.dcp.size; })
      .def_prop_ro("dcp_interleave", [](const kv::Parallel& self) { return self.dcp.interleave; })
      .def_prop_ro("dp_size", [](const kv::Parallel& self) { return self.dp.size; })
      .def_prop_ro("dp_rank", [](const kv::Parallel& self) { return self.dp.rank; })
      .def("__repr__", [](const kv::Parallel& self) {
        return fmt::format("<weft.kv.Parallel: tp rank {} of {}, dcp {}, dp rank {} of {}>",
                           self.tp.rank, self.tp.size, self.dcp.size, self.dp.rank, self.dp.size);
      });
}

void bind_group(nb::module_& module) {
  nb::class_<kv::Group>(module, "Group",
                        "Layers that share one block table and keep the same fields. Most models "
                        "have one group; hybrid ones have several.")
      .def(
          "__init__",
          [](kv::Group* self, std::vector<std::uint32_t> layers, std::uint32_t blocks,
             std::uint32_t tokens_per_block, std::vector<kv::Field> fields, kv::Placement placement,
             kv::Order order, kv::HeadOrder head_order, kv::Regions regions,
             std::uint64_t block_padding, std::uint64_t block_alignment, std::uint32_t window) {
            new (self) kv::Group{
                std::move(layers), blocks,  tokens_per_block, std::move(fields), placement, order,
                head_order,        regions, block_padding,    block_alignment,   window};
          },
          nb::kw_only(), "layers"_a, "blocks"_a, "tokens_per_block"_a, "fields"_a,
          "placement"_a = kv::Placement::split, "order"_a = kv::Order::layer_major,
          "head_order"_a = kv::HeadOrder::nhd, "regions"_a = kv::Regions::one,
          "block_padding"_a = 0, "block_alignment"_a = 1, "window"_a = 0,
          "layers: numbers of the model's layers, ascending. blocks: in the cache. "
          "tokens_per_block: vLLM's block_size, SGLang's page_size; 0: the group holds states, one "
          "block for each request. block_padding, block_alignment: bytes. window: tokens that the "
          "layers look back on; 0: all.")
      .def_ro("layers", &kv::Group::layers)
      .def_ro("blocks", &kv::Group::blocks)
      .def_ro("tokens_per_block", &kv::Group::tokens_per_block)
      .def_ro("fields", &kv::Group::fields)
      .def_ro("placement", &kv::Group::placement)
      .def_ro("order", &kv::Group::order)
      .def_ro("head_order", &kv::Group::head_order)
      .def_ro("regions", &kv::Group::regions)
      .def_ro("block_padding", &kv::Group::block_padding)
      .def_ro("block_alignment", &kv::Group::block_alignment)
      .def_ro("window", &kv::Group::window)
      .def("__repr__", [](const kv::Group& self) {
        const std::string of =
            self.tokens_per_block == 0 ? "states" : fmt::format("{} tokens", self.tokens_per_block);
        return fmt::format("<weft.kv.Group: {} layers, {} blocks of {}>", self.layers.size(),
                           self.blocks, of);
      });
}

std::pair<std::uint32_t, std::uint32_t> heads_of(const kv::Layout& self, std::size_t group,
                                                 std::size_t field) {
  if (group >= self.groups().size()) throw nb::index_error("no such group");
  if (field >= self.groups()[group].fields.size()) throw nb::index_error("no such field");
  const kv::HeadRange heads = self.heads(group, field);
  return {heads.first, heads.count};
}

void bind_layout(nb::module_& module) {
  nb::class_<kv::Layout>(module, "Layout",
                         "The shape of one process's cache, checked and immutable.")
      .def(
          "__init__",
          [](kv::Layout* self, std::vector<kv::Group> groups,
             const std::optional<kv::Parallel>& parallel) {
            new (self) kv::Layout(
                must(kv::Layout::create(std::move(groups), parallel.value_or(kv::Parallel{}))));
          },
          "groups"_a, nb::kw_only(), "parallel"_a = nb::none(),
          "parallel: None: one rank. Raises InvalidArgument, with the group and the numbers, if "
          "the description contradicts itself. A layer may be in several groups, with other fields "
          "in each.")
      .def_prop_ro("groups",
                   [](const kv::Layout& self) {
                     return std::vector<kv::Group>(self.groups().begin(), self.groups().end());
                   })
      .def_prop_ro("parallel", [](const kv::Layout& self) { return self.parallel(); })
      .def("heads", &heads_of, "group"_a = 0, "field"_a = 0,
           "The first head of a field of a group that this rank holds, and how many.")
      .def_prop_ro(
          "region_bytes",
          [](const kv::Layout& self) {
            return std::vector<std::uint64_t>(self.region_bytes().begin(),
                                              self.region_bytes().end());
          },
          "Sizes of the regions to allocate: by group, then layer, then field. They must equal the "
          "sizes of your tensors.")
      .def_prop_ro("bytes", &kv::Layout::bytes, "All regions together.")
      .def_prop_ro("bytes_per_token", &kv::Layout::bytes_per_token,
                   "On this rank in all layers, without padding and states.")
      .def_prop_ro("state_bytes", &kv::Layout::state_bytes,
                   "Of one request's states on this rank in all layers, without padding.")
      .def("__repr__", [](const kv::Layout& self) {
        return fmt::format("<weft.kv.Layout: {} groups, {} regions, {} bytes, rank {} of {}>",
                           self.groups().size(), self.region_bytes().size(), self.bytes(),
                           self.parallel().tp.rank, self.parallel().tp.size);
      });
}

}  // namespace

void bind_kv_layouts(nb::module_& module) {
  bind_enums(module);
  bind_field(module);
  bind_makers(module);
  bind_parallel(module);
  bind_group(module);
  bind_layout(module);
}

}  // namespace weft::python
