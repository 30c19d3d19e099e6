// How processes of weft's tell somebody who only looks at the path to them.
#pragma once

#include <string_view>

namespace weft::tool {

/// The names of engines of `weft explain` begin so.
constexpr std::string_view explainer_prefix = "weft-explain-";

}  // namespace weft::tool
