// Checks that two layouts can be copied into each other.
#pragma once

#include <weft/kv.hpp>

namespace weft::kv {

/// Whether two layouts hold the KV of the same model, however differently they lay it out.
Result<void> check_same_model(const Layout& src, const Layout& dst);

}  // namespace weft::kv
