#include <fmt/format.h>
#include <nanobind/ndarray.h>
#include <nanobind/operators.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>
#include <weft/weights_plan.hpp>

#include "python/binding/errors.hpp"
#include "python/binding/gil.hpp"
#include "python/binding/text.hpp"
#include "python/binding/weights.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace weft::python {

Numbers numbers_of(const weights::Dims& dims) {
  nb::list numbers;
  for (const std::uint64_t each : dims) numbers.append(each);
  return Numbers(nb::tuple(numbers));
}

weights::Dims dims_of(const std::vector<std::uint64_t>& numbers) {
  return weights::Dims(std::span(numbers));
}

namespace {

using List = std::vector<std::uint64_t>;

void bind_types(nb::module_& module) {
  using weights::DType;
  nb::enum_<DType>(module, "WeightsDType",
                   "Type of an element. Types of less than a byte are described as they are "
                   "stored: as uint8.")
      .value("bf16", DType::bf16)
      .value("fp16", DType::fp16)
      .value("fp32", DType::fp32)
      .value("fp64", DType::fp64)
      .value("fp8_e4m3", DType::fp8_e4m3)
      .value("fp8_e5m2", DType::fp8_e5m2)
      .value("e8m0", DType::e8m0, "The scales of mxfp8 and mxfp4.")
      .value("int8", DType::int8)
      .value("int16", DType::int16)
      .value("int32", DType::int32)
      .value("int64", DType::int64)
      .value("uint8", DType::uint8)
      .value("boolean", DType::boolean);
  module.def("bytes_of", &weights::bytes_of, "type"_a, "Bytes of one element.");
  module.def(
      "name_of", [](DType type) { return std::string(weights::name_of(type)); }, "type"_a,
      "As PyTorch and numpy name it: \"bfloat16\", \"float8_e4m3fn\".");
  module.def(
      "dtype_named", [](std::string_view name) { return must(weights::dtype_named(name)); },
      "name"_a,
      "The type of that name: dtype_named(\"bfloat16\"). Raises NotFound, with the names.");
}

void make_shard(weights::Shard* self, std::string name, const List& shape, weights::DType dtype,
                const std::optional<List>& begin, const std::optional<List>& extent,
                std::uint32_t segment, std::uint64_t offset, const List& strides) {
  if (begin.has_value() != extent.has_value())
    raise(Error(Code::invalid_argument, fmt::format("{}: `begin` and `extent` go together", name)));
  new (self) weights::Shard{.name = std::move(name),
                            .dtype = dtype,
                            .shape = dims_of(shape),
                            .begin = dims_of(begin.value_or(List(shape.size(), 0))),
                            .extent = dims_of(extent.value_or(shape)),
                            .segment = segment,
                            .offset = offset,
                            .strides = dims_of(strides)};
}

std::string text_of(const weights::Dims& dims) {
  std::string text;
  for (const std::uint64_t each : dims) text += fmt::format("{}{}", text.empty() ? "" : ", ", each);
  return text;
}

void bind_ranks(nb::module_& module) {
  using weights::Rank, weights::Shard;
  nb::class_<Shard>(
      module, "Shard",
      "The slice of one tensor that a rank holds, and where. Names are those that both sides use, "
      "such as the checkpoint's. A parameter that fuses several tensors is a shard for each.")
      .def("__init__", &make_shard, "name"_a, "shape"_a, "dtype"_a, nb::kw_only(),
           "begin"_a = nb::none(), "extent"_a = nb::none(), "segment"_a = 0, "offset"_a = 0,
           "strides"_a = nb::make_tuple(),
           nb::sig("def __init__(self, name: str, shape: collections.abc.Sequence[int], "
                   "dtype: WeightsDType, *, begin: collections.abc.Sequence[int] | None = None, "
                   "extent: collections.abc.Sequence[int] | None = None, segment: int = 0, "
                   "offset: int = 0, strides: collections.abc.Sequence[int] = ()) -> None"),
           "shape: of the whole tensor, in elements, the outermost dimension first; at most 6. "
           "begin, extent: the first element of the slice and how many, in each dimension; None: "
           "the whole tensor. segment: the rank's number for the memory. offset: of the slice's "
           "first element in the segment, in bytes. strides: bytes from one index to the next, in "
           "each dimension; empty: dense.")
      .def_ro("name", &Shard::name)
      .def_ro("dtype", &Shard::dtype)
      .def_prop_ro("shape", [](const Shard& self) { return numbers_of(self.shape); })
      .def_prop_ro("begin", [](const Shard& self) { return numbers_of(self.begin); })
      .def_prop_ro("extent", [](const Shard& self) { return numbers_of(self.extent); })
      .def_ro("segment", &Shard::segment)
      .def_ro("offset", &Shard::offset)
      .def_prop_ro("strides", [](const Shard& self) { return numbers_of(self.strides); })
      .def("__repr__", [](const Shard& self) {
        return fmt::format("<weft.weights.Shard: {}, ({}) from ({}) of ({}) {}>", self.name,
                           text_of(self.extent), text_of(self.begin), text_of(self.shape),
                           weights::name_of(self.dtype));
      });
  nb::class_<Rank>(module, "WeightsRank", "One process, its NICs and what it holds.")
      .def(
          "__init__",
          [](Rank* self, std::string name, std::vector<Shard> shards, std::string host,
             std::uint32_t nics, double gbps) {
            new (self) Rank{std::move(name), std::move(host), nics, gbps, std::move(shards)};
          },
          "name"_a, "shards"_a, nb::kw_only(), "host"_a = "", "nics"_a = 1, "gbps"_a = 100.0,
          "name: unlike all others of its side. host: ranks of one host reach each other without "
          "a NIC; empty: alone. gbps: of one NIC, in each direction, in 10^9 bits per second.")
      .def_ro("name", &Rank::name)
      .def_ro("host", &Rank::host)
      .def_ro("nics", &Rank::nics)
      .def_ro("gbps", &Rank::gbps)
      .def_ro("shards", &Rank::shards)
      .def("__repr__", [](const Rank& self) {
        return fmt::format("<weft.weights.Rank: {}, {} shards>", self.name, self.shards.size());
      });
  nb::class_<weights::World>(
      module, "World",
      "All ranks. Publishers send; the bytes of every subscriber's shards are overwritten.")
      .def(
          "__init__",
          [](weights::World* self, std::vector<Rank> publishers, std::vector<Rank> subscribers) {
            new (self) weights::World{std::move(publishers), std::move(subscribers)};
          },
          "publishers"_a, "subscribers"_a)
      .def_ro("publishers", &weights::World::publishers)
      .def_ro("subscribers", &weights::World::subscribers)
      .def("to_json", &weights::to_json, "What `weft weights plan` reads.")
      .def_static(
          "from_json", [](std::string_view text) { return must(weights::world_from_json(text)); },
          "text"_a, "Reads what to_json() writes. Raises InvalidArgument, and says where.")
      .def("__repr__", [](const weights::World& self) {
        return fmt::format("<weft.weights.World: {} publishers, {} subscribers>",
                           self.publishers.size(), self.subscribers.size());
      });
}

nb::object pieces_of(const weights::Transfer& self) {
  constexpr std::size_t columns = 8;
  auto rows = std::make_unique<List>();
  rows->reserve(columns * self.pieces.size());
  for (const weights::Piece& each : self.pieces)
    rows->insert(rows->end(), {each.src_segment, each.dst_segment, each.src_offset, each.dst_offset,
                               each.length, each.count, each.src_stride, each.dst_stride});
  auto* const held = rows.release();
  const nb::capsule holder(held, [](void* p) noexcept { delete static_cast<List*>(p); });
  return nb::ndarray<nb::numpy, std::uint64_t, nb::ndim<2>>(held->data(),
                                                            {self.pieces.size(), columns}, holder)
      .cast();
}

void bind_transfers_of_plans(nb::module_& module) {
  using weights::Load, weights::PairTotal, weights::Party, weights::Side, weights::Transfer;
  nb::enum_<Side>(module, "Side", "Of a rank.")
      .value("publisher", Side::publisher)
      .value("subscriber", Side::subscriber);
  nb::class_<Party>(module, "Party", "A rank, by its index in its list of the World.")
      .def_ro("side", &Party::side)
      .def_ro("rank", &Party::rank)
      .def("__repr__", [](const Party& self) {
        return fmt::format("<weft.weights.Party: {} {}>",
                           self.side == Side::publisher ? "publisher" : "subscriber", self.rank);
      });
  nb::class_<Transfer>(
      module, "WeightsTransfer",
      "The pieces that one rank writes to another at once. Hop 0 comes from a publisher and may be "
      "written immediately. Hop h comes from a subscriber, and may be written when all transfers "
      "to it with the same chunk and hop h - 1 have arrived.")
      .def_ro("source", &Transfer::from)
      .def_ro("to", &Transfer::to, "A subscriber.")
      .def_ro("chunk", &Transfer::chunk)
      .def_ro("hop", &Transfer::hop)
      .def_ro("bytes", &Transfer::bytes)
      .def("__len__", [](const Transfer& self) { return self.pieces.size(); })
      .def("pieces", &pieces_of, nb::sig("def pieces(self) -> typing.Any"),
           "A numpy array (n, 8) of uint64: source segment, destination segment, source offset, "
           "destination offset, bytes of a run, runs, source stride, destination stride.")
      .def("__repr__", [](const Transfer& self) {
        return fmt::format("<weft.weights.Transfer: {} bytes in {} pieces to {}>", self.bytes,
                           self.pieces.size(), self.to);
      });
  nb::class_<Load>(module, "Load",
                   "Bytes that one rank sends and receives. No NIC carries what passes between "
                   "ranks of one host.")
      .def_ro("sent", &Load::sent, "Over NICs.")
      .def_ro("received", &Load::received, "Over NICs.")
      .def_ro("sent_on_host", &Load::sent_on_host)
      .def_ro("received_on_host", &Load::received_on_host)
      .def_ro("sent_by_nic", &Load::sent_by_nic, "Over each NIC, spread evenly, rounded up.")
      .def_ro("received_by_nic", &Load::received_by_nic)
      .def_ro("transfers_sent", &Load::transfers_sent)
      .def_ro("transfers_received", &Load::transfers_received);
  nb::class_<PairTotal>(module, "PairTotal", "All transfers between two ranks.")
      .def_ro("source", &PairTotal::from)
      .def_ro("to", &PairTotal::to, "A subscriber.")
      .def_ro("on_host", &PairTotal::on_host)
      .def_ro("transfers", &PairTotal::transfers)
      .def_ro("pieces", &PairTotal::pieces)
      .def_ro("bytes", &PairTotal::bytes);
}

weights::Plan make_plan(const weights::World& world, weights::FanOut fan_out,
                        std::uint64_t chunk_bytes, double seconds_per_transfer, double host_gbps) {
  const weights::PlanOptions options{fan_out, chunk_bytes, seconds_per_transfer, host_gbps};
  auto made = [&] {
    const Unlocked others_run;
    return weights::plan(world, options);
  }();
  return must(std::move(made));
}

void bind_plan(nb::module_& module) {
  using weights::FanOut, weights::Plan;
  constexpr weights::PlanOptions usual;
  nb::enum_<FanOut>(module, "FanOut", "How bytes reach subscribers that hold the same slices.")
      .value("automatic", FanOut::automatic,
             "The one that is predicted to be the faster; a chain if direct has far more pieces.")
      .value("direct", FanOut::direct, "Publishers send to each of them.")
      .value("chain", FanOut::chain,
             "Publishers send each byte once; the replicas pass it on along a ring.");
  nb::class_<Plan>(module, "WeightsPlan",
                   "Who writes what to whom. Each byte of each subscriber's shards is written "
                   "once.")
      .def_ro("fan_out", &Plan::fan_out, "Never automatic.")
      .def_ro("chunks", &Plan::chunks)
      .def_ro("hops", &Plan::hops, "Transfers that the longest way of a byte has.")
      .def_ro("transfers", &Plan::transfers, "Ordered by chunk, hop, source, to. None is empty.")
      .def_ro("pairs", &Plan::pairs, "Ordered by source, to.")
      .def_ro("publishers", &Plan::publishers, "A Load for each, in the order of the World.")
      .def_ro("subscribers", &Plan::subscribers, "A Load for each, in the order of the World.")
      .def_ro("bytes", &Plan::bytes, "That arrive at subscribers.")
      .def_ro("published", &Plan::published, "Bytes that publishers send.")
      .def_ro("predicted_seconds", &Plan::predicted_seconds)
      .def("__repr__", [](const Plan& self) {
        return fmt::format("<weft.weights.Plan: {} transfers, {} bytes>", self.transfers.size(),
                           self.bytes);
      });
  module.def(
      "plan_weights", &make_plan, "world"_a, nb::kw_only(), "fan_out"_a = usual.fan_out,
      "chunk_bytes"_a = usual.chunk_bytes, "seconds_per_transfer"_a = usual.seconds_per_transfer,
      "host_gbps"_a = usual.host_gbps,
      "Plans for `world`; arithmetic only. The leader of publishers does it by itself: this is to "
      "look at a plan beforehand.\n\n"
      "chunk_bytes: in a chain, a rank receives about so many before it passes them on. "
      "seconds_per_transfer, host_gbps: for the prediction, of each transfer and between ranks of "
      "one host. The prediction is a lower bound. Raises InvalidArgument, naming tensor and rank, "
      "if a byte that a subscriber wants comes from nowhere or from several, if ranks disagree "
      "about a shape or type, or if shards of a subscriber overlap in memory.");
}

}  // namespace

void bind_weights_plan(nb::module_& module) {
  bind_types(module);
  bind_ranks(module);
  bind_transfers_of_plans(module);
  bind_plan(module);
}

}  // namespace weft::python
