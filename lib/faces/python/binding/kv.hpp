// weft.kv: layouts of paged KV caches and the copies between them. In this order.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <utility>

namespace weft::python {

/// (first, count), as TokenRange and LayerRange.
using TokenTuple = std::pair<std::uint64_t, std::uint64_t>;
using LayerTuple = std::pair<std::uint32_t, std::uint32_t>;

/// What a layer keeps, groups, layouts.
void bind_kv_layouts(nanobind::module_& module);
/// Caches, plans, ranks, prefixes.
void bind_kv_plans(nanobind::module_& module);
/// Models and servers.
void bind_kv_models(nanobind::module_& module);

}  // namespace weft::python
