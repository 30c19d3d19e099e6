// Enumerators by the names that people and JSON use.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <weft/kv.hpp>
#include <weft/kv_models.hpp>
#include <weft/transfer.hpp>
#include <weft/weights_plan.hpp>

namespace weft::tool {

template <typename Enum>
using Names = std::map<std::string, Enum>;

inline const Names<kv::DType> dtype_names = {{"bf16", kv::DType::bf16}, {"fp8", kv::DType::fp8}};
inline const Names<kv::Placement> placement_names = {{"split", kv::Placement::split},
                                                     {"fused", kv::Placement::fused}};
inline const Names<kv::Order> order_names = {{"layer-major", kv::Order::layer_major},
                                             {"block-major", kv::Order::block_major}};
inline const Names<kv::HeadOrder> head_order_names = {{"nhd", kv::HeadOrder::nhd},
                                                      {"hnd", kv::HeadOrder::hnd}};
inline const Names<TransportKind> transport_names = {{"automatic", TransportKind::automatic},
                                                     {"one-sided", TransportKind::one_sided},
                                                     {"bounce", TransportKind::bounce},
                                                     {"device-copy", TransportKind::device_copy}};

inline const Names<Direction> direction_names = {{"write", Direction::write},
                                                 {"read", Direction::read}};
inline const Names<Priority> priority_names = {
    {"latency", Priority::latency}, {"normal", Priority::normal}, {"bulk", Priority::bulk}};
inline const Names<weights::FanOut> fan_out_names = {{"automatic", weights::FanOut::automatic},
                                                     {"direct", weights::FanOut::direct},
                                                     {"chain", weights::FanOut::chain}};

/// "?" for a value that has no name.
template <typename Enum>
std::string name_of(const Names<Enum>& names, Enum value) {
  for (const auto& [name, each] : names)
    if (each == value) return name;
  return "?";
}

/// "bf16|fp8".
template <typename Enum>
std::string listed(const Names<Enum>& names, std::string_view separator) {
  std::string list;
  for (const auto& [name, each] : names) {
    if (!list.empty()) list += separator;
    list += name;
  }
  return list;
}

}  // namespace weft::tool
