// weft.weights: new weights for running ranks, the plan of them, and known models. In this order.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <vector>
#include <weft/weights_plan.hpp>

namespace weft::python {

/// tuple[int, ...], as numpy's and torch's shapes.
using Numbers = nanobind::typed<nanobind::tuple, std::uint64_t, nanobind::ellipsis>;
Numbers numbers_of(const weights::Dims& dims);
weights::Dims dims_of(const std::vector<std::uint64_t>& numbers);

/// Shards, ranks, plans.
void bind_weights_plan(nanobind::module_& module);
/// Publishers, subscribers, readings.
void bind_weights_steps(nanobind::module_& module);
/// Tensors of known models.
void bind_weights_models(nanobind::module_& module);

}  // namespace weft::python
