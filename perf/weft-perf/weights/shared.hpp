// What the measuring process and those of ranks agree on.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>
#include <weft/deadline.hpp>
#include <weft/error.hpp>
#include <weft/weights_plan.hpp>

namespace weft::perf {

struct WeightsOptions {
  std::string config;  ///< Path of a model's config.json.
  std::string trainers = "fsdp=4", ranks = "tp=4";
  std::uint64_t bytes = std::uint64_t{1} << 30;  ///< Of the model, about.
  std::vector<std::string> providers = {"tcp"};
  unsigned sets = 2, steps = 8;
  weights::FanOut fan_out = weights::FanOut::automatic;
  std::uint64_t chunk_bytes = weights::PlanOptions{}.chunk_bytes;
  bool verify = false;
  Nanoseconds timeout = std::chrono::seconds(60);
  std::string json;
};

void to_json(nlohmann::json& json, const WeightsOptions& options);
void from_json(const nlohmann::json& json, WeightsOptions& options);

/// All ranks, on one host, and the model's bytes. The model's tensors get shorter or longer until
/// they have about as many bytes as asked for.
struct WeightsWorld {
  weights::World world;
  std::uint64_t bytes = 0;
};
Result<WeightsWorld> world_of(const WeightsOptions& options);

std::uint64_t bytes_of(const weights::Rank& rank);

}  // namespace weft::perf
