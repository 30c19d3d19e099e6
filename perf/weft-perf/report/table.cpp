#include "report/table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "common/layout.hpp"
#include "report/title.hpp"

namespace weft::perf {
namespace {

constexpr std::size_t widest_label = 39;  // A longer one has a line of its own.
constexpr std::size_t provider_width = 4;

/// Of the labels that stand beside their figures.
std::size_t width_of(const std::vector<Point>& points) {
  constexpr std::size_t indent = 3;
  std::size_t longest = indent;
  for (const Point& point : points)
    if (const std::size_t width = provider_width + title(point).size(); width <= widest_label)
      longest = std::max(longest, width);
  return longest + 1;
}

std::size_t width_of(const std::vector<Column>& columns, unsigned greatest_rank) {
  std::size_t width = 0;
  for (const Column& each : columns) width += each.rank <= greatest_rank ? 1 + each.width : 0;
  return width;
}

/// Which of them fit, the most important first.
std::vector<bool> fitting(const std::vector<Column>& columns, std::size_t room) {
  std::vector<std::size_t> order(columns.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return columns[i].rank; });
  std::vector<bool> fits(columns.size());
  for (const std::size_t i : order) {
    const std::size_t needed = 1 + columns[i].width;
    fits[i] = columns[i].rank == 0 || needed <= room;
    if (fits[i]) room -= std::min(room, needed);
  }
  return fits;
}

}  // namespace

Table::Table(const std::vector<Point>& points, const std::vector<std::string>& baselines,
             std::size_t width)
    : width_(width), label_width_(width_of(points)) {
  constexpr unsigned baselines_rank = 1;
  const std::size_t room = width - std::min(width, label_width_);
  auto all = columns_of(baselines);
  if (width_of(all, baselines_rank) > room) {
    all = columns_of(baselines, Ratios::middles);
    left_out_.emplace_back("intervals of the ratios");
  }
  const std::vector<bool> fits = fitting(all, room);
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (fits[i])
      columns_.push_back(std::move(all[i]));
    else
      left_out_.push_back(all[i].name);
  }
}

std::string Table::head() const {
  std::string text(label_width_, ' ');
  for (const Column& column : columns_) text += fmt::format(" {:>{}}", column.name, column.width);
  return text + "\n";
}

std::string Table::row(const PointResult& result) const {
  const Summary sum = summarize(result);
  const std::string label = label_of(result);
  std::string text =
      label.size() <= label_width_
          ? fmt::format("{:<{}}", label, label_width_)
          : fmt::format("{}{:{}}", tool::hanging("", label, width_), "", label_width_);
  for (const Column& column : columns_)
    text += fmt::format(" {:>{}}", column.text(result, sum), column.width);
  text += "\n";
  for (const std::string& remark : remarks_on(result, sum))
    text += tool::hanging("    ", remark, width_);
  return text;
}

std::string Table::foot(const std::vector<PointResult>& results, const Json& machines) const {
  std::string text = "\n";
  for (const std::string& each : explanations(columns_, results, machines))
    text += tool::hanging("", each, width_);
  if (!left_out_.empty())
    text += tool::hanging("",
                          fmt::format("Not shown: {}. --wide shows all columns, --json has them.",
                                      fmt::join(left_out_, ", ")),
                          width_);
  return text;
}

}  // namespace weft::perf
