#include <array>
#include <weft/kv.hpp>

namespace weft::kv {

namespace {

struct Named {
  const char* name;
  std::uint32_t bits;
};

constexpr std::array<Named, 8> types = {{
    {"bf16", 16},
    {"fp8", 8},
    {"fp16", 16},
    {"fp32", 32},
    {"fp8_e5m2", 8},
    {"fp4", 4},
    {"e8m0", 8},
    {"int8", 8},
}};

const Named& named(DType type) noexcept {
  return types[static_cast<std::size_t>(type)];
}

Field field_of(std::string name, std::uint32_t heads, std::vector<Piece> vector) {
  Field field;
  field.name = std::move(name);
  field.heads = heads;
  field.vector = std::move(vector);
  return field;
}

// As DeepSeek's fp8 kernels quantize: a scale for each tile of 128 values.
constexpr std::uint32_t scale_tile = 128;

}  // namespace

std::uint32_t bits_of(DType type) noexcept {
  return named(type).bits;
}

const char* name_of(DType type) noexcept {
  return named(type).name;
}

std::vector<Field> keys_values(std::uint32_t heads, std::uint32_t head_size, DType type,
                               std::uint32_t value_size) {
  return {field_of("keys", heads, {{type, head_size}}),
          field_of("values", heads, {{type, value_size != 0 ? value_size : head_size}})};
}

std::vector<Field> latent(std::uint32_t elements, DType type) {
  return {field_of("latent", 1, {{type, elements}})};
}

std::vector<Field> latent_fp8(std::uint32_t nope, std::uint32_t rope) {
  return {field_of("latent", 1,
                   {{DType::fp8, nope}, {DType::fp32, nope / scale_tile}, {DType::bf16, rope}})};
}

std::vector<Field> index_keys(std::uint32_t elements) {
  return {field_of("index", 1, {{DType::fp8, elements}}),
          field_of("index_scales", 1, {{DType::fp32, elements / scale_tile}})};
}

Field scales_of(const Field& of, std::uint32_t elements_per_scale, DType type) {
  Field scales = of;
  scales.name += "_scales";
  scales.beside = false;
  std::uint32_t elements = 0;
  for (const Piece& piece : of.vector) elements += piece.elements;
  scales.vector = {{type, elements_per_scale != 0 ? elements / elements_per_scale : 0}};
  return scales;
}

std::vector<Field> recurrent_state(std::span<const ConvRow> rows, std::uint32_t kernel,
                                   ConvOrder order, DType conv_type, std::uint32_t heads,
                                   std::uint32_t state_elements, DType state_type) {
  std::vector<Field> fields;
  const std::uint32_t past = kernel > 0 ? kernel - 1 : 0;
  for (const ConvRow& row : rows) {
    const bool by_time = order == ConvOrder::time;
    Field field = field_of("conv_" + row.name, row.heads,
                           {{conv_type, by_time ? row.head_size * past : row.head_size}});
    if (!by_time) {
      field.rows = past;
      field.beside = !fields.empty();
    }
    fields.push_back(std::move(field));
  }
  fields.push_back(field_of("state", heads, {{state_type, state_elements}}));
  return fields;
}

}  // namespace weft::kv
