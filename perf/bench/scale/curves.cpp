#include "scale/curves.hpp"

#include <fmt/format.h>

#include "common/drawing_program.hpp"

namespace weft::perf {
namespace {

tool::DrawingProgram gnuplot() {
  return {"gnuplot", "", "gnuplot is not installed: the package gnuplot-nox has it"};
}

}  // namespace

void Curves::add(const std::string& name, const std::string& line) {
  for (Curve& curve : all_)
    if (curve.name == name) return void(curve.lines += line);
  all_.push_back({name, line});
}

std::string Curves::data(char prefix) const {
  std::string text;
  for (std::size_t i = 0; i < all_.size(); ++i)
    text += fmt::format("${}{} << EOD\n{}EOD\n", prefix, i, all_[i].lines);
  return text;
}

std::string Curves::plot(char prefix, std::string_view how) const {
  std::string text;
  for (std::size_t i = 0; i < all_.size(); ++i)
    text += fmt::format("{}${}{} {} title '{}' noenhanced", i == 0 ? "plot " : ", ", prefix, i, how,
                        all_[i].name);
  return text + "\n";
}

Result<void> check_gnuplot() {
  return tool::check_installed(gnuplot());
}

Result<std::string> drawn_by_gnuplot(const std::string& script) {
  return tool::draw(gnuplot(), script);
}

}  // namespace weft::perf
