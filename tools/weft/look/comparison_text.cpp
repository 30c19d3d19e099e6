#include <fmt/format.h>
#include <fmt/ranges.h>

#include "common/layout.hpp"
#include "common/printable.hpp"
#include "common/units.hpp"
#include "look/comparison.hpp"

namespace weft::tool {
namespace {

std::string bytes_text(const std::optional<std::uint64_t>& bytes) {
  return bytes ? binary_bytes(*bytes) : "-";
}

std::string listed(const std::vector<std::string>& names) {
  return names.empty() ? "none" : printable(fmt::format("{}", fmt::join(names, ", ")));
}

std::string fact_line(std::string_view name, const std::string& value) {
  return hanging(fmt::format("  {:<22} ", name), value);
}

std::string hop_line(const std::string& what, const std::string& by, const std::string& side,
                     const std::string& declared, const std::string& ledger,
                     const std::string& known) {
  // Longer names have a line of their own.
  constexpr std::size_t width = 40;
  const std::string name = columns_of(what) > width
                               ? fmt::format("  {}\n  {:<{}}", what, "", width)
                               : fmt::format("  {}{:<{}}", what, "", width - columns_of(what));
  return fmt::format("{} {:<11} {:<11} {:>10} {:>10}  {}\n", name, by, side, declared, ledger,
                     known);
}

}  // namespace

std::string table(const Comparison& comparison) {
  std::string out = hanging("declared, and carried: ", printable(comparison.path));
  out += hop_line("hop", "by", "side", "declared", "ledger", "known");
  for (const auto& row : comparison.rows)
    out += hop_line(printable(row.what), row.by, row.side, bytes_text(row.declared),
                    bytes_text(row.ledger), row.known);
  out += fact_line("known", "counted by this engine, declared by who makes it, or unknown to all");
  out += fact_line("copies of each byte",
                   fmt::format("{:.2f} declared, {:.2f} in the ledger", comparison.copies_declared,
                               comparison.copies_in_ledger));
  out += fact_line("rails", fmt::format("{} declared; {} used", listed(comparison.rails_declared),
                                        listed(comparison.rails_used)));
  out +=
      fact_line("queued", times_text(comparison.queued) + "  (min / median / max of a transfer)");
  out += fact_line("under way", times_text(comparison.under_way));
  out += fact_line("chunks that came back", grouped(comparison.retries));
  for (const auto& nic : comparison.nics)
    out += fact_line(
        "NIC " + printable(nic.name),
        fmt::format("{} by RDMA, {} in messages, {} in all, of all processes",
                    bytes_text(nic.by_rdma), bytes_text(nic.in_messages), bytes_text(nic.in_all)));
  if (comparison.differences.empty())
    return out + fact_line("differences", "none: the ledger has each copy that the path declares");
  for (std::size_t i = 0; i < comparison.differences.size(); ++i)
    out += fact_line(i == 0 ? "differences" : "", printable(comparison.differences[i]));
  return out;
}

}  // namespace weft::tool
