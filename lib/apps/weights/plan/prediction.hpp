// How long a plan takes.
#pragma once

#include <span>
#include <vector>
#include <weft/weights_plan.hpp>

#include "weights/plan/loads.hpp"

namespace weft::weights {

/// Seconds until all transfers have arrived; plan() says what is assumed. `transfers` are ordered
/// as in a Plan.
double predict(const World& world, const Loads& loads, std::span<const Transfer> transfers,
               const PlanOptions& options);

}  // namespace weft::weights
