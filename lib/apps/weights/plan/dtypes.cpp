#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <weft/weights_plan.hpp>

namespace weft::weights {

namespace {

struct Named {
  std::string_view name;  // of torch.dtype
  std::uint32_t bytes;
};

constexpr std::array<Named, 13> types = {{
    {"bfloat16", 2},
    {"float16", 2},
    {"float32", 4},
    {"float64", 8},
    {"float8_e4m3fn", 1},
    {"float8_e5m2", 1},
    {"float8_e8m0fnu", 1},
    {"int8", 1},
    {"int16", 2},
    {"int32", 4},
    {"int64", 8},
    {"uint8", 1},
    {"bool", 1},
}};

}  // namespace

std::uint32_t bytes_of(DType type) noexcept {
  return types[static_cast<std::size_t>(type)].bytes;
}

std::string_view name_of(DType type) noexcept {
  return types[static_cast<std::size_t>(type)].name;
}

Result<DType> dtype_named(std::string_view name) {
  const auto it = std::find_if(types.begin(), types.end(),
                               [&](const Named& each) { return each.name == name; });
  if (it != types.end()) return static_cast<DType>(it - types.begin());
  std::vector<std::string_view> names;
  for (const Named& each : types) names.push_back(each.name);
  return fail(Code::not_found,
              fmt::format("There is no type \"{}\"; there are {}.", name, fmt::join(names, ", ")));
}

}  // namespace weft::weights
