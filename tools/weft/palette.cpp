#include "palette.hpp"

#include <array>

namespace weft::tool {

Colour gpu_colour(std::size_t index) {
  // Okabe and Ito's eight, grey for their black, then a lighter or darker one of each.
  static const std::array<Colour, 16> colours = {{
      {"#e69f00", "#000000"},
      {"#56b4e9", "#000000"},
      {"#009e73", "#000000"},
      {"#f0e442", "#000000"},
      {"#0072b2", "#ffffff"},
      {"#d55e00", "#000000"},
      {"#cc79a7", "#000000"},
      {"#999999", "#000000"},
      {"#8a5f00", "#ffffff"},
      {"#bfe3f8", "#000000"},
      {"#005c43", "#ffffff"},
      {"#faf5b5", "#000000"},
      {"#003a5c", "#ffffff"},
      {"#f5b98c", "#000000"},
      {"#7a2f58", "#ffffff"},
      {"#4d4d4d", "#ffffff"},
  }};
  return colours[index % colours.size()];
}

}  // namespace weft::tool
