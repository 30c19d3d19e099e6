// A model's config.json.
#include <weft/kv_models.hpp>

#include "target.hpp"

using namespace weft;

namespace {

/// What was understood has a shape: a layout of it exists, or its refusal says why.
void check(const kv::Model& model) {
  fuzz::require(model.layers > 0 && !model.kinds.empty(), "a model without layers was read");
  for (const kv::Kind& kind : model.kinds)
    fuzz::require(!kind.layers.empty() && kind.layers.back() < model.layers,
                  "a layer lies behind the last");
  const auto layout = model.layout({.blocks = 1});
  fuzz::require(layout || layout.error().code() == Code::invalid_argument,
                "a layout is refused for another reason");
  if (layout)
    fuzz::require(layout->bytes_per_token() == model.bytes_per_token(kv::DType::bf16) &&
                      layout->state_bytes() == model.state_bytes(),
                  "the model and its layout have other bytes");
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto model = kv::from_config(fuzz::text_of(data, size), "fuzzed");
  if (model)
    check(*model);
  else
    fuzz::require(
        model.error().code() == Code::invalid_argument || model.error().code() == Code::unsupported,
        "an error of another kind");
  return 0;
}
