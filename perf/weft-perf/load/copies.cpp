#include "load/copies.hpp"

#include <nlohmann/json.hpp>

namespace weft::perf {
namespace {

double sum_of(const nlohmann::json& metrics, const char* name) {
  double sum = 0;
  for (const auto& sample : metrics.at(name).at("samples")) sum += sample.at("value").get<double>();
  return sum;
}

}  // namespace

Ledger Ledger::of(const Engine& engine) {
  Ledger ledger;
  const auto snapshot = engine.snapshot();
  if (!snapshot) return ledger;
  const auto metrics = nlohmann::json::parse(*snapshot).at("metrics");
  ledger.kept_ = true;
  ledger.bytes_ = sum_of(metrics, "weft_transfer_bytes_total");
  ledger.copied_ = sum_of(metrics, "weft_copied_bytes_total");
  ledger.maybe_copied_ = sum_of(metrics, "weft_maybe_copied_bytes_total");
  return ledger;
}

Copies Ledger::since(const Ledger& before) const {
  const double bytes = bytes_ - before.bytes_;
  return {bytes > 0 ? (copied_ - before.copied_) / bytes : 0,
          kept_ && maybe_copied_ == before.maybe_copied_};
}

}  // namespace weft::perf
