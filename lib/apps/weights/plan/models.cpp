// The tensors of a model, dealt out over ranks.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>
#include <weft/kv_models.hpp>
#include <weft/weights_models.hpp>

#include "weights/plan/box.hpp"

namespace weft::weights {

namespace {

constexpr std::string_view scale_suffix = "_scale_inv";
constexpr std::uint64_t most_ranks = 1 << 16;

/// One rank among those that share a model.
struct Seat {
  kv::LayerRange layers;
  std::uint32_t tp = 0;
  std::uint32_t fsdp = 0;
  std::uint32_t index = 0;  ///< Among the fsdp * dp * tp ranks of its stage.
};

/// What `count` things are for a rank: the first, and their number.
struct Run {
  std::uint64_t first = 0;
  std::uint64_t count = 0;
};

/// As torch.chunk: all but the last ones have as many.
Run chunk(std::uint64_t count, std::uint64_t ranks, std::uint64_t rank) noexcept {
  const std::uint64_t each = (count + ranks - 1) / ranks;
  const std::uint64_t first = std::min(rank * each, count);
  return {first, std::min(each, count - first)};
}

Seat seat_of(const Parallelism& parallel, std::uint32_t layers, std::uint32_t rank) noexcept {
  Seat seat;
  seat.tp = rank % parallel.tp;
  const std::uint32_t stage_ranks = parallel.tp * parallel.dp * parallel.fsdp;
  seat.index = rank % stage_ranks;
  seat.fsdp = seat.index / (parallel.tp * parallel.dp);
  const std::uint32_t stage = rank / stage_ranks % parallel.pp;
  seat.layers = kv::stage_layers(layers, {parallel.pp, stage});
  return seat;
}

bool narrow(Box& box, std::uint32_t dimension, Run run) noexcept {
  box.begin[dimension] += run.first;
  box.extent[dimension] = run.count;
  return run.count > 0;
}

/// The units, or else rows, of a tensor-parallel rank; nothing if units can't be dealt out so.
std::optional<Run> tp_run(const ModelTensor& tensor, std::uint32_t size, std::uint32_t rank) {
  const std::uint64_t rows = tensor.shape[*tensor.cut];
  if (tensor.units == 0) return chunk(rows, size, rank);
  const std::uint64_t unit = rows / tensor.units;
  if (tensor.units % size == 0)
    return Run{unit * (tensor.units / size) * rank, unit * (tensor.units / size)};
  if (size % tensor.units != 0) return std::nullopt;
  return Run{unit * (rank / (size / tensor.units)), unit};
}

class Dealer {
 public:
  Dealer(const Model& model, const Parallelism& parallel) : model_(model), parallel_(parallel) {}

  /// The slice of a rank; nothing if it has none. Fails if the tensor can't be dealt out.
  Result<std::optional<Box>> slice(const ModelTensor& tensor, const Seat& seat) const {
    const bool whole_experts = tensor.expert && parallel_.ep > 1;
    if (!here(tensor.layer, seat) || (whole_experts && !expert_here(*tensor.expert, seat)))
      return std::optional<Box>();
    std::optional<Box> box = Box{tensor.shape, tensor.shape};
    for (std::size_t d = 0; d < tensor.shape.size(); ++d) box->begin[d] = 0;
    if (whole_experts) {
      if (parallel_.fsdp > 1 &&
          !narrow_rows(*box, ranks() / parallel_.ep, seat.index / parallel_.ep))
        box.reset();
      return box;
    }
    if (tensor.cut) {
      const auto run = tp_run(tensor, parallel_.tp, seat.tp);
      if (!run)
        return fail(Code::invalid_argument,
                    fmt::format("tensor {}: its {} heads or rows can't be dealt out to tp={}",
                                tensor.name, tensor.units, parallel_.tp));
      if (!narrow(*box, *tensor.cut, *run)) return std::optional<Box>();
    }
    if (parallel_.fsdp > 1 && !narrow_rows(*box, parallel_.fsdp, seat.fsdp)) box.reset();
    return box;
  }

 private:
  std::uint32_t ranks() const noexcept { return parallel_.tp * parallel_.dp * parallel_.fsdp; }
  static bool here(std::uint32_t layer, const Seat& seat) noexcept {
    return layer >= seat.layers.first && layer - seat.layers.first < seat.layers.count;
  }
  bool expert_here(std::uint32_t expert, const Seat& seat) const noexcept {
    const Run run = chunk(model_.experts, parallel_.ep, seat.index % parallel_.ep);
    return expert >= run.first && expert - run.first < run.count;
  }
  static bool narrow_rows(Box& box, std::uint32_t ranks, std::uint32_t rank) noexcept {
    return box.extent.empty() ? rank == 0 : narrow(box, 0, chunk(box.extent[0], ranks, rank));
  }

  const Model& model_;
  const Parallelism& parallel_;
};

Result<std::uint32_t> count_ranks(const RankOptions& options) {
  const Parallelism& p = options.parallel;
  std::uint64_t ranks = 1;
  for (const std::uint32_t each : {p.tp, p.pp, p.fsdp, p.dp, p.replicas}) {
    if (each == 0 || each > most_ranks || (ranks *= each) > most_ranks)
      return fail(Code::invalid_argument,
                  fmt::format("tp={}, pp={}, fsdp={}, dp={} and replicas={} must be from 1 up, and "
                              "at most {} ranks together",
                              p.tp, p.pp, p.fsdp, p.dp, p.replicas, most_ranks));
  }
  if (p.ep == 0 || std::uint64_t{p.tp} * p.dp * p.fsdp % p.ep != 0)
    return fail(Code::invalid_argument, fmt::format("ep={} must divide fsdp * dp * tp, which is {}",
                                                    p.ep, p.tp * p.dp * p.fsdp));
  if (options.ranks_per_host == 0)
    return fail(Code::invalid_argument, "ranks_per_host must be above 0");
  return static_cast<std::uint32_t>(ranks);
}

bool is_scale(const ModelTensor& tensor) noexcept {
  return tensor.name.ends_with(scale_suffix);
}

}  // namespace

std::uint64_t Model::parameters() const noexcept {
  std::uint64_t elements = 0;
  for (const ModelTensor& tensor : tensors)
    if (!is_scale(tensor)) elements += volume(tensor.shape);
  return elements;
}

std::uint64_t Model::bytes() const noexcept {
  std::uint64_t bytes = 0;
  for (const ModelTensor& tensor : tensors) bytes += volume(tensor.shape) * bytes_of(tensor.dtype);
  return bytes;
}

Result<std::vector<Rank>> Model::ranks(const RankOptions& options) const {
  const auto count = count_ranks(options);
  if (!count) return fail(count.error());
  const Dealer dealer(*this, options.parallel);
  std::vector<Rank> ranks;
  for (std::uint32_t r = 0; r < *count; ++r) {
    const Seat seat = seat_of(options.parallel, layers, r);
    Rank rank;
    rank.name = fmt::format("{}{}", options.name, r);
    rank.host = fmt::format("{}{}", options.host, r / options.ranks_per_host);
    rank.nics = options.nics;
    rank.gbps = options.gbps;
    std::uint64_t offset = 0;
    for (const ModelTensor& tensor : tensors) {
      const auto box = dealer.slice(tensor, seat);
      if (!box) return fail(box.error());
      if (!*box) continue;
      rank.shards.push_back(
          {tensor.name, tensor.dtype, tensor.shape, (*box)->begin, (*box)->extent, 0, offset});
      offset += volume((*box)->extent) * bytes_of(tensor.dtype);
    }
    ranks.push_back(std::move(rank));
  }
  return ranks;
}

Result<Parallelism> parse_parallelism(std::string_view text) {
  Parallelism parallel;
  const std::pair<std::string_view, std::uint32_t*> fields[] = {
      {"tp", &parallel.tp},     {"pp", &parallel.pp}, {"ep", &parallel.ep},
      {"fsdp", &parallel.fsdp}, {"dp", &parallel.dp}, {"replicas", &parallel.replicas}};
  std::set<std::string_view> seen;
  while (!text.empty()) {
    const std::string_view term = text.substr(0, text.find(','));
    text.remove_prefix(std::min(term.size() + 1, text.size()));
    const std::size_t equals = std::min(term.find('='), term.size());
    const std::string_view key = term.substr(0, equals);
    const std::string_view number = term.substr(std::min(equals + 1, term.size()));
    const auto field = std::find_if(std::begin(fields), std::end(fields),
                                    [&](const auto& each) { return each.first == key; });
    std::uint32_t value = 0;
    const auto [end, wrong] = std::from_chars(number.data(), number.data() + number.size(), value);
    if (field == std::end(fields) || !seen.insert(key).second || wrong != std::errc() ||
        end != number.data() + number.size() || value == 0 || value > most_ranks)
      return fail(Code::invalid_argument,
                  fmt::format("\"{}\" is none of tp=, pp=, ep=, fsdp=, dp= and replicas= with a "
                              "number from 1 to {}, each at most once",
                              term, most_ranks));
    *field->second = value;
  }
  return parallel;
}

}  // namespace weft::weights
