#include "kv/compatible.hpp"

#include <fmt/format.h>

#include <tuple>
#include <utility>

#include "kv/shape.hpp"

namespace weft::kv {

namespace {

Result<void> check_same_group(const Group& src, const Group& dst, std::size_t index) {
  const std::tuple<const char*, std::uint64_t, std::uint64_t> numbers[] = {
      {"layers", src.layers.size(), dst.layers.size()},
      {"KV heads", src.kv_heads, dst.kv_heads},
      {"elements per head", src.head_size, dst.head_size},
      {"bytes per element", src.element_size, dst.element_size},
      {"vectors per token and head", parts_of(src), parts_of(dst)},
      {"tokens of attention window", src.window, dst.window},
  };
  for (const auto& [what, here, there] : numbers) {
    if (here != there) {
      return fail(Code::invalid_argument,
                  fmt::format("The caches hold different models: group {} has {} {} at the source "
                              "and {} at the destination.",
                              index, here, what, there));
    }
  }
  if (src.layers != dst.layers) {
    return fail(
        Code::invalid_argument,
        fmt::format("The caches hold different models: the layers of group {} differ.", index));
  }
  return {};
}

}  // namespace

Result<void> check_same_model(const Layout& src, const Layout& dst) {
  if (src.groups().empty() || src.groups().size() != dst.groups().size()) {
    return fail(Code::invalid_argument,
                fmt::format("The caches hold different models: {} groups at the source and {} at "
                            "the destination.",
                            src.groups().size(), dst.groups().size()));
  }
  for (std::size_t i = 0; i < src.groups().size(); ++i) {
    if (auto ok = check_same_group(src.groups()[i], dst.groups()[i], i); !ok) return ok;
  }
  return {};
}

Result<std::vector<std::uint32_t>> source_ranks(const Layout& src, const Layout& dst) {
  if (auto ok = check_same_model(src, dst); !ok) return fail(std::move(ok).error());
  std::vector<std::uint32_t> ranks;
  TensorParallel tp = src.tensor_parallel();
  for (tp.rank = 0; tp.rank < tp.size; ++tp.rank) {
    for (const Group& group : dst.groups()) {
      if (heads_to_send(group.kv_heads, tp, dst.tensor_parallel()).count > 0) {
        ranks.push_back(tp.rank);
        break;
      }
    }
  }
  return ranks;
}

}  // namespace weft::kv
