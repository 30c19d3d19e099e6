#include "look/comparison.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "common/units.hpp"
#include "look/path_views.hpp"

namespace weft::tool {
namespace {

using Copied = weft::Report::Copied;

std::string side_text(bool at_peer) {
  return at_peer ? "at the peer" : "here";
}

/// Lays a path and a ledger side by side, copy by copy.
class Comparing {
 public:
  Comparing(const Path& path, const TransferTotals& ledger) : path_(path), ledger_(ledger) {}

  Comparison result(const std::vector<NicCounters>& nics);

 private:
  void add_hop(const Hop& hop);
  void add_rest(const Copied& copied);
  void look_at_rails();
  void look_at_nics(const std::vector<NicCounters>& nics);
  std::string why_other(const Copied& copied) const;
  bool through_nics() const;
  void differs(std::string sentence) { out_.differences.push_back(std::move(sentence)); }

  const Path& path_;
  const TransferTotals& ledger_;
  std::vector<Copied> left_;  // of the ledger's copies, those not met yet
  Comparison out_;
};

Comparison Comparing::result(const std::vector<NicCounters>& nics) {
  out_.path = path_headline(path_);
  left_ = ledger_.copied;
  for (const Hop& hop : path_.hops) add_hop(hop);
  for (const Copied& copied : left_) add_rest(copied);
  const auto copied =
      std::accumulate(ledger_.copied.begin(), ledger_.copied.end(), std::uint64_t{0},
                      [](std::uint64_t sum, const Copied& each) { return sum + each.bytes; });
  out_.copies_declared = path_.copies;
  if (ledger_.carried > 0)
    out_.copies_in_ledger = static_cast<double>(copied) / static_cast<double>(ledger_.carried);
  out_.queued = spread_of(ledger_.queued);
  out_.under_way = spread_of(ledger_.under_way);
  out_.retries = ledger_.retries;
  look_at_rails();
  look_at_nics(nics);
  return std::move(out_);
}

void Comparing::add_hop(const Hop& hop) {
  const bool at_peer = hop.side == PathSide::remote;
  Comparison::Row row{fmt::format("{} → {}", to_string(hop.from), to_string(hop.to)),
                      std::string(to_string(hop.by)),
                      side_text(at_peer),
                      {},
                      {},
                      "no copy"};
  if (!hop.copies()) return out_.rows.push_back(std::move(row));
  row.declared = ledger_.asked;
  const auto met = std::find_if(left_.begin(), left_.end(), [&](const Copied& copied) {
    return copied.known != Copied::Known::unknown && copied.by == hop.by &&
           copied.at_peer == at_peer;
  });
  if (met == left_.end()) {
    row.known = "missing";
    differs(fmt::format("{}: the ledger has no such copy by {} {}", row.what, in_words(hop.by),
                        row.side));
    return out_.rows.push_back(std::move(row));
  }
  row.ledger = met->bytes;
  row.known = std::string(to_string(met->known));
  if (met->bytes != ledger_.asked) differs(fmt::format("{}: {}", row.what, why_other(*met)));
  left_.erase(met);
  out_.rows.push_back(std::move(row));
}

std::string Comparing::why_other(const Copied& copied) const {
  const bool more = copied.bytes > ledger_.asked;
  const std::string how_many =
      fmt::format("{} bytes {} than declared",
                  grouped(more ? copied.bytes - ledger_.asked : ledger_.asked - copied.bytes),
                  more ? "more" : "fewer");
  if (!more && ledger_.carried < ledger_.asked)
    return fmt::format("{}, since {} bytes of what was asked for were not carried", how_many,
                       grouped(ledger_.asked - ledger_.carried));
  if (more && ledger_.retries > 0)
    return fmt::format("{}, since {} chunks came back and were copied once more", how_many,
                       grouped(ledger_.retries));
  return how_many + ", and nothing in the ledger says why";
}

/// A copy that no hop of the path is.
void Comparing::add_rest(const Copied& copied) {
  Comparison::Row row{"not on the path",
                      std::string(to_string(copied.by)),
                      side_text(copied.at_peer),
                      {},
                      {},
                      std::string(to_string(copied.known))};
  if (copied.known != Copied::Known::unknown) {
    row.ledger = copied.bytes;
    differs(fmt::format("the ledger has {} bytes copied by {} {}, which the path does not",
                        grouped(copied.bytes), in_words(copied.by), row.side));
  } else if (path_.bounced_below > 0) {
    row.what = fmt::format("pieces below {} bytes, bounced", path_.bounced_below);
    differs(
        fmt::format("pieces below {} bytes may be copied once more by {} {}, and the "
                    "provider does not tell how many were",
                    path_.bounced_below, in_words(copied.by), row.side));
  } else {
    differs("of some transfers the ledger can't tell what was copied");
  }
  out_.rows.push_back(std::move(row));
}

void Comparing::look_at_rails() {
  out_.rails_declared = path_.rails;
  out_.rails_used.assign(ledger_.rails.begin(), ledger_.rails.end());
  for (const std::string& rail : out_.rails_used)
    if (std::find(path_.rails.begin(), path_.rails.end(), rail) == path_.rails.end())
      differs(fmt::format("rail {} carried some of it, which the path does not name", rail));
}

bool Comparing::through_nics() const {
  return std::any_of(path_.hops.begin(), path_.hops.end(),
                     [](const Hop& hop) { return hop.to.kind == Stop::Kind::nic; });
}

/// Bytes of a one-sided path without copies that no NIC saw as RDMA went another way than it says.
void Comparing::look_at_nics(const std::vector<NicCounters>& nics) {
  const bool write = path_.direction == Direction::write;
  std::optional<std::uint64_t> seen = 0;
  for (const NicCounters& nic : nics) {
    const auto by_rdma = write ? nic.left_by_rdma() : nic.came_by_rdma();
    out_.nics.push_back({nic.nic, by_rdma, write ? nic.messages_sent : nic.messages_received,
                         write ? nic.sent : nic.received});
    seen = seen && by_rdma ? std::optional(*seen + *by_rdma) : std::nullopt;
  }
  if (nics.empty() || !seen || !through_nics()) return;
  const bool by_rdma = path_.transport == TransportKind::one_sided && path_.copies == 0;
  if (by_rdma && *seen < ledger_.carried)
    differs(
        fmt::format("the NICs saw {} bytes go by RDMA of {} that were carried: the others went "
                    "in messages, over a path that is emulated",
                    grouped(*seen), grouped(ledger_.carried)));
  if (!by_rdma && ledger_.carried > 0 && *seen >= ledger_.carried)
    differs(fmt::format("the NICs saw {} bytes go by RDMA, where the path declares copies",
                        grouped(*seen)));
}

}  // namespace

Comparison compare(const Path& path, const TransferTotals& ledger,
                   const std::vector<NicCounters>& nics) {
  return Comparing(path, ledger).result(nics);
}

}  // namespace weft::tool
