#include "look/dot_labels.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "common/layout.hpp"
#include "common/printable.hpp"
#include "common/units.hpp"

namespace weft::tool {
namespace {

struct Colour {
  std::string fill, text;  ///< "#e69f00"; the text can be read on the fill.
};

/// Sixteen that can be told apart, by colour-blind readers too; then the same again, and numbers
/// tell the GPUs apart as well.
const Colour& gpu_colour(std::size_t index) {
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

/// So many GPUs are named in one line of a NIC that serves more.
constexpr std::size_t badges_per_line = 4;

// In points: boxes of devices, and columns in them. Text that is longer makes them wider.
constexpr std::size_t device_width = 190;
constexpr std::size_t speed_width = 68;
constexpr std::size_t badge_width = 20;

/// Bytes in a line of names of NICs that are not used.
constexpr std::size_t unused_line = 34;

const Colour plain = {"#ffffff", "#000000"};
const Colour hub = {"#f4f4f4", "#000000"};
const Colour faint = {"#eeeeee", "#666666"};

/// `more` are its attributes.
std::string cell(const Colour& colour, const std::string& more, const std::string& content) {
  return fmt::format(R"(<TD BGCOLOR="{}" {}><FONT COLOR="{}">{}</FONT></TD>)", colour.fill, more,
                     colour.text, content);
}

/// A label that is a row of cells.
std::string row(const std::string& cells) {
  return fmt::format(R"(<<TABLE BORDER="0" CELLBORDER="1" CELLSPACING="0" CELLPADDING="3" )"
                     R"(COLOR="#555555"><TR>{}</TR></TABLE>>)",
                     cells);
}

std::string small(const std::string& content) {
  return fmt::format(R"(<FONT POINT-SIZE="9">{}</FONT>)", content);
}

/// The numbers of GPUs in their colours.
std::string badges(const std::vector<std::size_t>& gpus) {
  std::string rows;
  for (std::size_t at = 0; at < gpus.size(); ++at) {
    if (at % badges_per_line == 0) rows += at == 0 ? "<TR>" : "</TR><TR>";
    rows += cell(gpu_colour(gpus[at]), R"(WIDTH="18")", fmt::format("<B>{}</B>", gpus[at]));
  }
  return fmt::format(
      R"(<TD CELLPADDING="0"><TABLE BORDER="0" CELLBORDER="0" CELLSPACING="0">{}</TR></TABLE></TD>)",
      rows);
}

}  // namespace

std::string html(std::string_view text) {
  if (text.empty()) return "?";
  std::string out;
  for (const char each : printable(text)) switch (each) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\\':
        out += "\\\\";
        break;
      default:
        out += each;
    }
  return out;
}

std::string node_label(const NumaNode& node) {
  std::string text = fmt::format("<B>NUMA node {}</B>", node.id);
  if (node.package >= 0) text += fmt::format("<BR/>socket {}", node.package);
  text += fmt::format("<BR/>{}", binary_bytes(node.bytes));
  return row(cell(plain, R"(CELLPADDING="10")", text));
}

std::string unknown_node_label() {
  return row(cell(faint, R"(CELLPADDING="10")", "NUMA node<BR/>unknown"));
}

std::string switch_label(const PciSwitch& each) {
  const char* kind = each.above < 0 ? "root complex" : "switch";
  return row(cell(hub, R"(CELLPADDING="5")", fmt::format("{}<BR/>{}", kind, html(each.pci))));
}

std::string gpu_label(const Gpu& gpu, std::size_t index) {
  const std::string name = gpu.name.empty() ? "" : "<BR/>" + small(html(gpu.name));
  return row(cell(gpu_colour(index), fmt::format(R"(WIDTH="{}" CELLPADDING="5")", device_width),
                  fmt::format("<B>GPU {}</B>  {}{}", index, html(gpu.pci), name)));
}

std::string nic_label(const Nic& nic, const std::vector<std::size_t>& gpus) {
  const Colour colour = gpus.size() == 1 ? gpu_colour(gpus.front()) : plain;
  const std::size_t beside = std::min(gpus.size(), badges_per_line);
  const std::size_t width = device_width - speed_width - 2 - badge_width * beside;
  return row((gpus.empty() ? "" : badges(gpus)) +
             cell(colour, fmt::format(R"(WIDTH="{}" ALIGN="LEFT")", width), html(nic.name)) +
             cell(colour, fmt::format(R"(WIDTH="{}" ALIGN="RIGHT")", speed_width),
                  nic.gbps > 0 ? bit_rate(nic.gbps) : "? Gb/s"));
}

std::string drive_label(const Drive& drive) {
  const std::string size = drive.bytes > 0 ? "  " + binary_bytes(drive.bytes) : "";
  const std::string model = drive.model.empty() ? "" : "<BR/>" + small(html(drive.model));
  return row(cell(plain, fmt::format(R"(WIDTH="{}")", device_width),
                  fmt::format("drive {}{}{}", html(drive.name), size, model)));
}

std::string unused_label(const std::vector<std::string>& names) {
  std::vector<std::string> words, lines;
  for (const std::string& each : names) words.push_back(printable(each));
  for (const std::string& each : wrapped(words, unused_line)) lines.push_back(html(each));
  return row(cell(faint, fmt::format(R"(WIDTH="{}")", device_width),
                  small(fmt::format("{}", fmt::join(lines, "<BR/>")))));
}

}  // namespace weft::tool
