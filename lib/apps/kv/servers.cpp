#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <weft/kv_models.hpp>

namespace weft::kv {

namespace {

constexpr std::array<ServerLayout, 6> layouts = {{
    // get_kv_cache_shape (2, blocks, block, heads, size), and the stride order of each layout.
    {"vllm-flash-attn", "vLLM, flash_attn.py at 0084b783bcda", Placement::split, Order::layer_major,
     HeadOrder::nhd, Regions::per_layer},
    {"vllm-flash-attn-hnd", "vLLM, flash_attn.py at 0084b783bcda", Placement::split,
     Order::layer_major, HeadOrder::hnd, Regions::per_layer},
    // get_kv_cache_shape (blocks, 2, block, heads, size).
    {"vllm-flashinfer", "vLLM 0.13.0, flashinfer.py", Placement::fused, Order::layer_major,
     HeadOrder::nhd, Regions::per_layer},
    {"vllm-flashinfer-hnd", "vLLM 0.13.0, flashinfer.py", Placement::fused, Order::layer_major,
     HeadOrder::hnd, Regions::per_layer},
    // k_buffer and v_buffer of each layer: (size + page_size, heads, size).
    {"sglang", "SGLang, memory_pool.py of August 2026", Placement::split, Order::layer_major,
     HeadOrder::nhd, Regions::per_layer_and_field},
    // The pool is (blocks, layers, 2, heads * tokens * size).
    {"tensorrt-llm", "TensorRT-LLM, kvCacheManager.cpp of 2025", Placement::fused,
     Order::block_major, HeadOrder::hnd, Regions::one},
}};

}  // namespace

std::span<const ServerLayout> server_layouts() noexcept {
  return layouts;
}

Result<LayoutOptions> with_server(std::string_view name, LayoutOptions options) {
  const auto it = std::find_if(layouts.begin(), layouts.end(),
                               [&](const ServerLayout& each) { return each.name == name; });
  if (it == layouts.end()) {
    std::vector<std::string_view> names;
    for (const ServerLayout& each : layouts) names.push_back(each.name);
    return fail(Code::not_found, fmt::format("No server's layout \"{}\" is known; there are {}.",
                                             name, fmt::join(names, ", ")));
  }
  options.placement = it->placement;
  options.order = it->order;
  options.head_order = it->head_order;
  options.regions = it->regions;
  return options;
}

}  // namespace weft::kv
