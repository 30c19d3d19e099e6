#include "report/html.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "common/printable.hpp"
#include "common/units.hpp"
#include "report/columns.hpp"

namespace weft::perf {
namespace {

constexpr const char* style =
    "body{font-family:sans-serif;margin:1em auto;max-width:1240px;padding:0 16px;color:#222}\n"
    "svg{max-width:100%;height:auto}\n"
    "table{border-collapse:collapse;font-size:13px;max-width:100%}\n"
    "th,td{padding:3px 7px;border-bottom:1px solid #ddd;text-align:right;vertical-align:top}\n"
    "th:first-child,td:first-child{text-align:left}\n"
    ".facts th,.facts td{text-align:left}\n"
    "td small{display:block;color:#777;white-space:nowrap}\n"
    ".remark{color:#b00;font-weight:bold}\n"
    ".scroll{overflow-x:auto}\n"
    "p{max-width:60em;line-height:1.4}\n";

std::string escaped(std::string_view text) {
  std::string safe;
  for (const char each : text) {
    if (each == '<')
      safe += "&lt;";
    else if (each == '&')
      safe += "&amp;";
    else
      safe += each;
  }
  return safe;
}

std::string plain(const Json& value) {
  if (value.is_string()) return tool::printable(value.get<std::string>());
  if (value.is_boolean()) return value.get<bool>() ? "yes" : "no";
  if (value.is_number_float()) return fmt::format("{:g}", value.get<double>());
  if (!value.is_array()) return value.dump();
  std::string list;
  for (const Json& each : value) list += (list.empty() ? "" : ", ") + plain(each);
  return list;
}

/// "12.13 (11.34-13.39)": the spread below the figure, in small letters.
std::string cell(const std::string& figure) {
  const std::size_t space = figure.find(" (");
  if (space == figure.npos) return "<td>" + escaped(figure) + "</td>";
  return fmt::format("<td>{}<small>{}</small></td>", escaped(figure.substr(0, space)),
                     escaped(figure.substr(space + 1)));
}

std::string row_of(const PointResult& result, const std::vector<Column>& columns) {
  const Summary sum = summarize(result);
  std::string row = "<tr><td>" + escaped(label_of(result));
  for (const std::string& remark : remarks_on(result, sum))
    row += fmt::format("<div class=\"remark\">{}</div>", escaped(remark));
  row += "</td>";
  for (const Column& column : columns) row += cell(column.text(result, sum));
  return row + "</tr>\n";
}

std::string table_of(const std::vector<PointResult>& results, const std::vector<Column>& columns) {
  std::string text = "<div class=\"scroll\"><table>\n<tr><th></th>";
  for (const Column& column : columns) text += "<th>" + escaped(column.name) + "</th>";
  text += "</tr>\n";
  for (const PointResult& result : results)
    if (!result.runs.empty()) text += row_of(result, columns);
  return text + "</table></div>\n";
}

/// "warm_up_seconds" as "warm up seconds", but WEFT_RAILS as it is.
std::string readable(std::string name) {
  if (std::ranges::any_of(name, [](char each) { return each >= 'A' && each <= 'Z'; })) return name;
  for (char& each : name)
    if (each == '_') each = ' ';
  return name;
}

std::string fact(const std::string& name, const std::string& value) {
  return fmt::format("<tr><th>{}</th><td>{}</td></tr>\n", escaped(name), escaped(value));
}

/// A machine, or a setting of several parts, has lines of its own.
void add_facts(const std::string& name, const Json& value, std::string& rows) {
  if (value.is_object()) {
    for (const auto& [inner, each] : value.items())
      add_facts(name.empty() ? readable(inner) : name + ", " + readable(inner), each, rows);
  } else if (value.is_array() && !value.empty() && value.front().is_object()) {
    for (std::size_t i = 0; i < value.size(); ++i)
      add_facts(fmt::format("{} {}", name, i), value[i], rows);
  } else if (name.ends_with("memory bytes") && value.is_number_unsigned()) {
    rows += fact(name.substr(0, name.size() - 6), tool::binary_bytes(value.get<std::uint64_t>()));
  } else if (!value.is_null() && !(value.is_array() && value.empty())) {
    rows += fact(name, plain(value));
  }
}

std::string facts_of(const Json& value) {
  std::string rows;
  add_facts("", value, rows);
  return "<table class=\"facts\">\n" + rows + "</table>\n";
}

/// When and how it was measured, and how it ended.
std::string summary_of(const Json& document) {
  std::string rows;
  for (const char* name : {"date", "command_line", "ended", "error"})
    if (document.contains(name)) rows += fact(readable(name), plain(document.at(name)));
  return "<table class=\"facts\">\n" + rows + "</table>\n";
}

/// "</script>" must not come up within.
std::string embedded(const Json& document) {
  std::string data = document.dump();
  for (std::size_t at = 0; (at = data.find("</", at)) != data.npos; at += 3)
    data.replace(at, 2, "<\\/");
  return data;
}

}  // namespace

std::string html(const std::vector<PointResult>& results, const std::string& picture,
                 const Json& document) {
  std::string notes;
  const auto columns = columns_of(baselines_of(results));
  for (const std::string& each : explanations(columns, results, document.at("machines")))
    notes += "<p>" + escaped(each) + "</p>\n";
  const std::size_t svg = picture.find("<svg");
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head><meta "
      "charset=\"utf-8\"><title>weft-perf</title>\n"
      "<style>\n{}</style></head>\n<body>\n<h1>weft-perf</h1>\n{}<h2>Figures</h2>\n{}{}"
      "<h2>Pictures</h2>\n{}\n<h2>Settings</h2>\n{}<h2>Machines</h2>\n{}"
      "<script type=\"application/json\" id=\"results\">\n{}\n</script>\n</body>\n</html>\n",
      style, summary_of(document), table_of(results, columns), notes,
      svg == picture.npos ? "" : picture.substr(svg), facts_of(document.at("settings")),
      facts_of(document.at("machines")), embedded(document));
}

}  // namespace weft::perf
