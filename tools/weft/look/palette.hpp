// Colours that can be told apart, by colour-blind readers too.
#pragma once

#include <cstddef>
#include <string>

namespace weft::tool {

struct Colour {
  std::string fill, text;  ///< "#e69f00"; the text can be read on the fill.
};

/// Of GPU `index`: sixteen colours, then the same again. Numbers tell the GPUs apart as well.
Colour gpu_colour(std::size_t index);

}  // namespace weft::tool
