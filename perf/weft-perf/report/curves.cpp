#include "report/curves.hpp"

#include <fmt/format.h>

#include "common/drawing_program.hpp"
#include "common/printable.hpp"

namespace weft::perf {
namespace {

tool::DrawingProgram gnuplot() {
  return {"gnuplot", "", "gnuplot is not installed: the package gnuplot-nox has it"};
}

}  // namespace

std::string in_quotes(std::string_view text) {
  std::string quote = "'";
  for (const char each : tool::printable(text))
    quote += each == '\'' ? std::string("''") : std::string(1, each);
  return quote + "'";
}

void Curves::add(const std::string& name, const std::string& line, const std::string& look) {
  for (Curve& curve : all_)
    if (curve.name == name) return void(curve.lines += line);
  all_.push_back({name, line, look});
}

std::string Curves::data(char prefix) const {
  std::string text;
  for (std::size_t i = 0; i < all_.size(); ++i)
    text += fmt::format("${}{} << EOD\n{}EOD\n", prefix, i, all_[i].lines);
  return text;
}

std::string Curves::plot(char prefix, std::string_view how, bool titles) const {
  std::string text;
  for (std::size_t i = 0; i < all_.size(); ++i)
    text += fmt::format(
        "{}${}{} {} {} {}", i == 0 ? "plot " : ", ", prefix, i, how, all_[i].look,
        titles ? fmt::format("title {} noenhanced", in_quotes(all_[i].name)) : "notitle");
  return text + "\n";
}

Result<void> check_gnuplot() {
  return tool::check_installed(gnuplot());
}

Result<std::string> drawn_by_gnuplot(const std::string& script) {
  return tool::draw(gnuplot(), script);
}

}  // namespace weft::perf
