#include <fmt/format.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include <utility>
#include <vector>
#include <weft/kv_models.hpp>

#include "python/binding/errors.hpp"
#include "python/binding/kv.hpp"
#include "python/binding/text.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace weft::python {
namespace {

kv::Layout layout_of(const kv::Model& self, std::uint32_t blocks, std::uint32_t tokens_per_block,
                     std::uint32_t state_blocks, kv::DType dtype,
                     const std::optional<kv::Parallel>& parallel,
                     const std::optional<LayerTuple>& layers, kv::Placement placement,
                     kv::Order order, kv::HeadOrder head_order, kv::Regions regions,
                     std::uint64_t block_padding, std::uint64_t block_alignment) {
  kv::LayoutOptions options;
  options.dtype = dtype;
  options.tokens_per_block = tokens_per_block;
  options.blocks = blocks;
  options.state_blocks = state_blocks;
  options.parallel = parallel.value_or(kv::Parallel{});
  if (layers) options.layers = kv::LayerRange{layers->first, layers->second};
  options.placement = placement;
  options.order = order;
  options.head_order = head_order;
  options.regions = regions;
  options.block_padding = block_padding;
  options.block_alignment = block_alignment;
  return must(self.layout(options));
}

void bind_model(nb::module_& module) {
  nb::class_<kv::Kind>(module, "Kind",
                       "Layers of a model that keep the same, and share a block table.")
      .def_ro("name", &kv::Kind::name, "attention, window, latent, index or state.")
      .def_ro("layers", &kv::Kind::layers)
      .def_ro("fields", &kv::Kind::fields, "Attention and latents in bf16.")
      .def_ro("window", &kv::Kind::window)
      .def_ro("state", &kv::Kind::state, "One for each request.")
      .def("__repr__", [](const kv::Kind& self) {
        return fmt::format("<weft.kv.Kind: {}, {} layers>", self.name, self.layers.size());
      });
  nb::class_<kv::Model>(module, "Model", "A model's KV shape, from its published configuration.")
      .def_ro("name", &kv::Model::name)
      .def_ro("id", &kv::Model::id, "On the Hugging Face hub.")
      .def_ro("layers", &kv::Model::layers, "num_hidden_layers; draft layers apart.")
      .def_ro("kinds", &kv::Model::kinds)
      .def("layout", &layout_of, nb::kw_only(), "blocks"_a, "tokens_per_block"_a = 16,
           "state_blocks"_a = 0, "dtype"_a = kv::DType::bf16, "parallel"_a = nb::none(),
           "layers"_a = nb::none(), "placement"_a = kv::Placement::split,
           "order"_a = kv::Order::layer_major, "head_order"_a = kv::HeadOrder::nhd,
           "regions"_a = kv::Regions::one, "block_padding"_a = 0, "block_alignment"_a = 1,
           "The layout of one rank: a group for each kind, in the order of kinds.\n\n"
           "blocks: in each group. state_blocks: in each group of states; 0: as many as blocks. "
           "dtype: of attention and latents; indices and states have their own. layers: (first, "
           "count) of this pipeline stage, as stage_layers() has them; None: all. The rest is as "
           "for Group and Layout; with_server() has four of them.")
      .def("bytes_per_token", &kv::Model::bytes_per_token, "dtype"_a = kv::DType::bf16,
           "In all layers of the whole model, without regard to windows.")
      .def("state_bytes", &kv::Model::state_bytes,
           "Of one request's states in all layers of the whole model.")
      .def("request_bytes", &kv::Model::request_bytes, "tokens"_a, "dtype"_a = kv::DType::bf16,
           "Of a request of so many tokens in the whole model: windows cut, states included.")
      .def("__repr__",
           [](const kv::Model& self) { return fmt::format("<weft.kv.Model: {}>", self.name); });
  module.def(
      "models", [] { return std::vector<kv::Model>(kv::models().begin(), kv::models().end()); },
      "All known models.");
  module.def(
      "find_model", [](std::string_view name) { return must(kv::find_model(name)); }, "name"_a,
      "The model of that name or id, in any case of letters. Raises NotFound, with the names.");
  module.def(
      "from_config",
      [](std::string_view json, std::string name) {
        return must(kv::from_config(json, std::move(name)));
      },
      "json"_a, "name"_a = "",
      "The shape that the text of a config.json of the Hugging Face hub describes.\n\n"
      "Nothing is guessed: raises Unsupported, naming the key, if the file has a model_type that "
      "is unknown, or a key that changes a cache in a way that is not known of such models; "
      "InvalidArgument if a number is missing or wrong.");
}

LayerTuple stage_layers(std::uint32_t layers, std::uint32_t pp_size, std::uint32_t pp_rank) {
  if (pp_rank >= pp_size)
    raise(Error(Code::invalid_argument,
                fmt::format("no stage {} of {} pipeline stages", pp_rank, pp_size)));
  const kv::LayerRange range = kv::stage_layers(layers, {pp_size, pp_rank});
  return {range.first, range.count};
}

void bind_servers(nb::module_& module) {
  nb::class_<kv::ServerLayout>(
      module, "ServerLayout",
      "How a serving engine lays attention out, as read in the version that read_in names. A newer "
      "one may do otherwise: compare the strides of a tensor.")
      .def_prop_ro("name", [](const kv::ServerLayout& self) { return std::string(self.name); })
      .def_prop_ro("read_in",
                   [](const kv::ServerLayout& self) { return std::string(self.read_in); })
      .def_ro("placement", &kv::ServerLayout::placement)
      .def_ro("order", &kv::ServerLayout::order)
      .def_ro("head_order", &kv::ServerLayout::head_order)
      .def_ro("regions", &kv::ServerLayout::regions)
      .def("__repr__", [](const kv::ServerLayout& self) {
        return fmt::format("<weft.kv.ServerLayout: {}>", self.name);
      });
  module.def(
      "server_layouts",
      [] {
        const auto all = kv::server_layouts();
        return std::vector<kv::ServerLayout>(all.begin(), all.end());
      },
      "All known ones.");
  module.def(
      "with_server",
      [](std::string_view name) {
        const kv::LayoutOptions options = must(kv::with_server(name));
        nb::dict keywords;
        keywords["placement"] = options.placement;
        keywords["order"] = options.order;
        keywords["head_order"] = options.head_order;
        keywords["regions"] = options.regions;
        return keywords;
      },
      "name"_a, nb::sig("def with_server(name: str) -> ServerKeywords"),
      "The keywords of Model.layout() and Group that the server of that name decides: "
      "model.layout(blocks=4096, **with_server(\"sglang\")). Raises NotFound, with the names.");
  module.def("stage_layers", &stage_layers, "layers"_a, "pp_size"_a, "pp_rank"_a,
             "The (first, count) of a pipeline stage's layers, as vLLM deals them out.");
}

}  // namespace

void bind_kv_models(nb::module_& module) {
  bind_model(module);
  bind_servers(module);
}

}  // namespace weft::python
