#include "look/palette.hpp"

#include <array>

namespace weft::tool {

Colour gpu_colour(std::size_t index) {
  // Okabe and Ito's eight, their black not quite so, then others that are lighter or darker.
  static const std::array<Colour, 16> colours = {{
      {"#e69f00", "#000000"},
      {"#56b4e9", "#000000"},
      {"#009e73", "#000000"},
      {"#f0e442", "#000000"},
      {"#0072b2", "#ffffff"},
      {"#d55e00", "#000000"},
      {"#cc79a7", "#000000"},
      {"#333333", "#ffffff"},
      {"#8a5f00", "#ffffff"},
      {"#bfe3f8", "#000000"},
      {"#005c43", "#ffffff"},
      {"#faf5b5", "#000000"},
      {"#003a5c", "#ffffff"},
      {"#f5b98c", "#000000"},
      {"#7a2f58", "#ffffff"},
      {"#b9a5e2", "#000000"},
  }};
  return colours[index % colours.size()];
}

}  // namespace weft::tool
