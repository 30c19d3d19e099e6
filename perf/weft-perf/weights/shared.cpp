#include "weights/shared.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <weft/weights_models.hpp>

#include "common/input.hpp"

namespace weft::perf {
namespace {

/// In a dimension that is not dealt out by heads and the like; what has none is small.
void scale(weights::ModelTensor& tensor, double by) {
  const std::size_t d = tensor.cut == 0U ? 1 : 0;
  if (d >= tensor.shape.size()) return;
  const auto scaled = std::llround(static_cast<double>(tensor.shape[d]) * by);
  tensor.shape[d] = static_cast<std::uint64_t>(std::max(1LL, scaled));
}

Result<std::vector<weights::Rank>> ranks_of(const weights::Model& model, const std::string& text,
                                            const char* name) {
  const auto parallel = weights::parse_parallelism(text);
  if (!parallel) return fail(parallel.error());
  return model.ranks(
      {.parallel = *parallel, .name = name, .host = "here", .ranks_per_host = 1U << 16, .nics = 1});
}

}  // namespace

void to_json(nlohmann::json& json, const WeightsOptions& options) {
  json = {{"config", options.config},
          {"trainers", options.trainers},
          {"ranks", options.ranks},
          {"bytes", options.bytes},
          {"providers", options.providers},
          {"sets", options.sets},
          {"steps", options.steps},
          {"fan_out", static_cast<int>(options.fan_out)},
          {"chunk_bytes", options.chunk_bytes},
          {"verify", options.verify},
          {"alone", options.alone},
          {"timeout_seconds", std::chrono::duration<double>(options.timeout).count()}};
}

void from_json(const nlohmann::json& json, WeightsOptions& options) {
  json.at("config").get_to(options.config);
  json.at("trainers").get_to(options.trainers);
  json.at("ranks").get_to(options.ranks);
  json.at("bytes").get_to(options.bytes);
  json.at("providers").get_to(options.providers);
  json.at("sets").get_to(options.sets);
  json.at("steps").get_to(options.steps);
  options.fan_out = static_cast<weights::FanOut>(json.at("fan_out").get<int>());
  json.at("chunk_bytes").get_to(options.chunk_bytes);
  json.at("verify").get_to(options.verify);
  json.at("alone").get_to(options.alone);
  options.timeout = std::chrono::duration_cast<Nanoseconds>(
      std::chrono::duration<double>(json.at("timeout_seconds").get<double>()));
}

Result<WeightsWorld> world_of(const WeightsOptions& options) {
  auto model = tool::read_input(options.config).and_then([&](const std::string& text) {
    return weights::from_config(text, options.config);
  });
  if (!model) return fail(model.error());
  const double by = static_cast<double>(options.bytes) / static_cast<double>(model->bytes());
  for (weights::ModelTensor& tensor : model->tensors) scale(tensor, by);
  auto trainers = ranks_of(*model, options.trainers, "trainer");
  if (!trainers) return fail(std::move(trainers.error()));
  auto ranks = ranks_of(*model, options.ranks, "rank");
  if (!ranks) return fail(std::move(ranks.error()));
  return WeightsWorld{{std::move(*trainers), std::move(*ranks)}, model->bytes()};
}

std::uint64_t bytes_of(const weights::Rank& rank) {
  std::uint64_t bytes = 0;
  for (const weights::Shard& shard : rank.shards) {
    std::uint64_t elements = weights::bytes_of(shard.dtype);
    for (const std::uint64_t each : shard.extent) elements *= each;
    bytes += elements;
  }
  return bytes;
}

}  // namespace weft::perf
