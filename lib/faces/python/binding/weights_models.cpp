#include <fmt/format.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

#include <utility>
#include <vector>
#include <weft/weights_models.hpp>

#include "python/binding/errors.hpp"
#include "python/binding/text.hpp"
#include "python/binding/weights.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace weft::python {
namespace {

void bind_parallelism(nb::module_& module) {
  using weights::Parallelism;
  nb::class_<Parallelism>(module, "Parallelism",
                          "How the ranks of one side share a model. There are "
                          "replicas * pp * fsdp * dp * tp ranks, tp innermost.")
      .def(
          "__init__",
          [](Parallelism* self, std::uint32_t tp, std::uint32_t pp, std::uint32_t ep,
             std::uint32_t fsdp, std::uint32_t dp,
             std::uint32_t replicas) { new (self) Parallelism{tp, pp, ep, fsdp, dp, replicas}; },
          nb::kw_only(), "tp"_a = 1, "pp"_a = 1, "ep"_a = 1, "fsdp"_a = 1, "dp"_a = 1,
          "replicas"_a = 1,
          "tp: heads, and rows or columns. pp: stages of layers. ep: each expert whole on one of "
          "so many ranks; divides fsdp * dp * tp. fsdp: rows of what tp leaves, as torch.chunk "
          "deals them out. dp: replicas of all but the experts. replicas: of the whole.")
      .def_static(
          "parse", [](std::string_view text) { return must(weights::parse_parallelism(text)); },
          "text"_a, "\"tp=8,ep=16,dp=2\", each at most once.")
      .def_ro("tp", &Parallelism::tp)
      .def_ro("pp", &Parallelism::pp)
      .def_ro("ep", &Parallelism::ep)
      .def_ro("fsdp", &Parallelism::fsdp)
      .def_ro("dp", &Parallelism::dp)
      .def_ro("replicas", &Parallelism::replicas)
      .def("__repr__", [](const Parallelism& self) {
        return fmt::format(
            "<weft.weights.Parallelism: tp={},pp={},ep={},fsdp={},dp={},replicas={}>", self.tp,
            self.pp, self.ep, self.fsdp, self.dp, self.replicas);
      });
}

std::vector<weights::Rank> ranks_of(const weights::Model& self, weights::Parallelism parallel,
                                    std::string name, std::string host,
                                    std::uint32_t ranks_per_host, std::uint32_t nics, double gbps) {
  return must(self.ranks({parallel, std::move(name), std::move(host), ranks_per_host, nics, gbps}));
}

void bind_model(nb::module_& module) {
  using weights::Model, weights::ModelTensor;
  nb::class_<ModelTensor>(module, "ModelTensor",
                          "A tensor of a model, under its name in the checkpoint.")
      .def_ro("name", &ModelTensor::name)
      .def_ro("dtype", &ModelTensor::dtype)
      .def_prop_ro("shape", [](const ModelTensor& self) { return numbers_of(self.shape); })
      .def_ro("layer", &ModelTensor::layer, "Of a pipeline stage.")
      .def_ro("cut", &ModelTensor::cut,
              "The dimension that tensor parallelism cuts; None: every rank has all of it.")
      .def_ro("units", &ModelTensor::units,
              "What stays whole in that dimension, such as heads: their number. 0: rows are dealt "
              "out as they come.")
      .def_ro("expert", &ModelTensor::expert, "Its number, of those that tokens are routed to.")
      .def("__repr__", [](const ModelTensor& self) {
        return fmt::format("<weft.weights.ModelTensor: {}>", self.name);
      });
  nb::class_<Model>(module, "WeightsModel", "The weights of a model.")
      .def_ro("name", &Model::name)
      .def_ro("layers", &Model::layers, "num_hidden_layers; draft layers apart.")
      .def_ro("experts", &Model::experts, "In each layer that has some.")
      .def_ro("tensors", &Model::tensors)
      .def_prop_ro("parameters", &Model::parameters,
                   "Elements, without the scales of quantized tensors.")
      .def_prop_ro("bytes", &Model::bytes, "Of all tensors.")
      .def("ranks", &ranks_of, nb::kw_only(), "parallel"_a = weights::Parallelism{},
           "name"_a = "rank", "host"_a = "host", "ranks_per_host"_a = 8, "nics"_a = 4,
           "gbps"_a = 100.0,
           nb::sig("def ranks(self, *, parallel: Parallelism = ..., name: str = 'rank', "
                   "host: str = 'host', ranks_per_host: int = 8, nics: int = 4, "
                   "gbps: float = 100.0) -> list[WeightsRank]"),
           "The ranks of one side, for plan(): their slices lie in segment 0, one behind another; "
           "ranks that run have their own places.\n\n"
           "name, host: the first is \"rank0\" on \"host0\". nics, gbps: of each rank. Raises "
           "InvalidArgument, naming the tensor, if it can't be dealt out so.")
      .def("__repr__",
           [](const Model& self) { return fmt::format("<weft.weights.Model: {}>", self.name); });
  module.def(
      "weights_from_config",
      [](std::string_view json, std::string name) {
        return must(weights::from_config(json, std::move(name)));
      },
      "json"_a, "name"_a = "",
      "The weights that the text of a config.json of the Hugging Face hub describes, in the type "
      "that it says: Llama, Qwen2, Qwen3, Qwen3-MoE, DeepSeek V3 and Kimi K2, in bf16 or in fp8 "
      "with blocks of scales.\n\n"
      "Nothing is guessed: raises Unsupported for other models, and for keys that change weights "
      "in a way that is not known; InvalidArgument if a number is missing or wrong.");
}

}  // namespace

void bind_weights_models(nb::module_& module) {
  bind_parallelism(module);
  bind_model(module);
}

}  // namespace weft::python
