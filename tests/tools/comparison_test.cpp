// Paths beside ledgers: what is paired, what is said of the rest.
#include "look/comparison.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weft::tool {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using Known = weft::Report::Copied::Known;

Stop stop(Stop::Kind kind, PathSide side) {
  return {.kind = kind, .side = side};
}

/// Over sockets of one host: a copy on either side.
Path by_sockets() {
  Path path;
  path.provider = "tcp";
  path.rails = {"tcp:0", "tcp:1"};
  const Stop socket = stop(Stop::Kind::socket_buffer, PathSide::local);
  path.hops = {{stop(Stop::Kind::host, PathSide::local), socket, Mover::kernel, PathSide::local},
               {socket, stop(Stop::Kind::host, PathSide::remote), Mover::kernel, PathSide::remote}};
  path.copies = 2;
  path.copies_local = path.copies_remote = 1;
  path.cpu_copies = 2;
  return path;
}

/// From memory to memory by NICs alone.
Path by_nics() {
  Path path;
  path.provider = "efa";
  path.rails = {"efa:0"};
  const Stop own = stop(Stop::Kind::nic, PathSide::local);
  const Stop theirs = stop(Stop::Kind::nic, PathSide::remote);
  path.hops = {{stop(Stop::Kind::host, PathSide::local), own, Mover::nic, PathSide::local},
               {own, theirs, Mover::nic, PathSide::remote},
               {theirs, stop(Stop::Kind::host, PathSide::remote), Mover::nic, PathSide::remote}};
  return path;
}

weft::Report report(std::uint64_t bytes, std::vector<weft::Report::Copied> copied,
                    const std::string& rail) {
  weft::Report report;
  report.bytes = report.bytes_done = bytes;
  report.copied = std::move(copied);
  report.rails = {{rail, 1, bytes}};
  report.queued = std::chrono::milliseconds(1);
  report.carried = std::chrono::milliseconds(2);
  return report;
}

weft::Report by_sockets(std::uint64_t bytes) {
  return report(bytes,
                {{Known::declared, Mover::kernel, false, bytes},
                 {Known::declared, Mover::kernel, true, bytes}},
                "tcp:0");
}

TransferTotals ledger_of(const std::vector<weft::Report>& reports) {
  TransferTotals ledger;
  for (const auto& each : reports) ledger.add(each);
  return ledger;
}

TEST(Ledgers, AddUpCopyByCopy) {
  const TransferTotals ledger = ledger_of({by_sockets(100), by_sockets(20)});
  EXPECT_EQ(ledger.asked, 120U);
  EXPECT_EQ(ledger.carried, 120U);
  ASSERT_EQ(ledger.copied.size(), 2U);
  for (const auto& each : ledger.copied) EXPECT_EQ(each.bytes, 120U);
  EXPECT_EQ(ledger.queued.size(), 2U);
}

TEST(Ledgers, KeepTwoCopiesOfOneKindApart) {
  const weft::Report::Copied copied{Known::declared, Mover::cpu, true, 10};
  const TransferTotals ledger =
      ledger_of({report(10, {copied, copied}, "shm:0"), report(10, {copied, copied}, "shm:0"),
                 report(10, {copied}, "shm:0")});
  ASSERT_EQ(ledger.copied.size(), 2U);
  EXPECT_EQ(ledger.copied[0].bytes, 30U);
  EXPECT_EQ(ledger.copied[1].bytes, 20U);
}

TEST(Comparisons, FindNothingWhereEachCopyIsInTheLedger) {
  const Comparison same = compare(by_sockets(), ledger_of({by_sockets(100)}), {});
  EXPECT_THAT(same.differences, IsEmpty());
  ASSERT_EQ(same.rows.size(), 2U);
  EXPECT_EQ(same.rows[0].what, "host memory → socket buffer");
  EXPECT_EQ(same.rows[0].side, "here");
  EXPECT_EQ(same.rows[0].declared, 100U);
  EXPECT_EQ(same.rows[0].ledger, 100U);
  EXPECT_EQ(same.rows[0].known, "declared");
  EXPECT_EQ(same.rows[1].side, "at the peer");
  EXPECT_EQ(same.copies_declared, 2);
  EXPECT_EQ(same.copies_in_ledger, 2);
  EXPECT_THAT(same.rails_used, ElementsAre("tcp:0"));
}

TEST(Comparisons, SayWhatWasNotCarried) {
  weft::Report failed = by_sockets(100);
  failed.bytes_done = failed.copied[0].bytes = failed.copied[1].bytes = 60;
  const Comparison less = compare(by_sockets(), ledger_of({failed}), {});
  EXPECT_THAT(less.differences,
              ElementsAre(HasSubstr("40 bytes fewer than declared, since 40 bytes of what was "
                                    "asked for were not carried"),
                          HasSubstr("40 bytes fewer than declared")));
}

TEST(Comparisons, SayWhatWasCopiedAgain) {
  weft::Report again = by_sockets(100);
  again.copied[0] = {Known::counted, Mover::kernel, false, 130};
  EXPECT_THAT(compare(by_sockets(), ledger_of({again}), {}).differences,
              ElementsAre(HasSubstr("30 bytes more than declared, and nothing in the ledger")));
  again.retries = 3;
  EXPECT_THAT(compare(by_sockets(), ledger_of({again}), {}).differences,
              ElementsAre(HasSubstr("30 bytes more than declared, since 3 chunks came back")));
}

TEST(Comparisons, SayWhichCopiesOnlyOneOfThemHas) {
  weft::Report other = by_sockets(100);
  other.copied = {{Known::declared, Mover::kernel, false, 100},
                  {Known::counted, Mover::cpu, true, 70}};
  const Comparison both = compare(by_sockets(), ledger_of({other}), {});
  EXPECT_THAT(both.differences,
              ElementsAre(HasSubstr("no such copy by the kernel at the peer"),
                          "the ledger has 70 bytes copied by the CPU at the peer, which the path "
                          "does not"));
  EXPECT_EQ(both.rows.at(1).known, "missing");
  EXPECT_EQ(both.rows.at(2).ledger, 70U);
}

TEST(Comparisons, DontGuessWhatNobodyTells) {
  Path path = by_sockets();
  path.bounced_below = 9000;
  path.bounces_local = 1;
  weft::Report bounced = by_sockets(100);
  bounced.copied.push_back({Known::unknown, Mover::cpu, false, 0});
  const Comparison unknown = compare(path, ledger_of({bounced}), {});
  EXPECT_THAT(unknown.differences,
              ElementsAre("pieces below 9000 bytes may be copied once more by the CPU here, and "
                          "the provider does not tell how many were"));
  ASSERT_EQ(unknown.rows.size(), 3U);
  EXPECT_FALSE(unknown.rows[2].declared);
  EXPECT_FALSE(unknown.rows[2].ledger);
  EXPECT_EQ(unknown.rows[2].known, "unknown");
}

TEST(Comparisons, SayWhichRailThePathDoesNotName) {
  weft::Report other = by_sockets(100);
  other.rails.push_back({"tcp:7", 1, 10});
  EXPECT_THAT(compare(by_sockets(), ledger_of({other}), {}).differences,
              ElementsAre(HasSubstr("rail tcp:7 carried some of it")));
}

TEST(Comparisons, OfBytesThatTheNicsSawAsRdmaAreFine) {
  const Comparison rdma = compare(by_nics(), ledger_of({report(100, {}, "efa:0")}),
                                  {{.nic = "a", .written = 60, .read_by_peers = 0},
                                   {.nic = "b", .written = 45, .read_by_peers = 0}});
  EXPECT_THAT(rdma.differences, IsEmpty());
  EXPECT_EQ(rdma.rows.at(0).known, "no copy");
  EXPECT_FALSE(rdma.rows.at(0).declared);
  ASSERT_EQ(rdma.nics.size(), 2U);
  EXPECT_EQ(rdma.nics[0].by_rdma, 60U);
}

TEST(Comparisons, OfBytesThatNoNicSawAsRdmaProveAnEmulatedPath) {
  const NicCounters nic{.nic = "a", .written = 0, .read_by_peers = 0, .messages_sent = 110};
  EXPECT_THAT(compare(by_nics(), ledger_of({report(100, {}, "efa:0")}), {nic}).differences,
              ElementsAre("the NICs saw 0 bytes go by RDMA of 100 that were carried: the others "
                          "went in messages, over a path that is emulated"));
}

TEST(Comparisons, OfReadsLookAtWhatCame) {
  Path path = by_nics();
  path.direction = Direction::read;
  const NicCounters nic{.nic = "a", .written_by_peers = 0, .read = 100};
  EXPECT_THAT(compare(path, ledger_of({report(100, {}, "efa:0")}), {nic}).differences, IsEmpty());
}

TEST(Comparisons, SayNothingOfNicsThatTellNothing) {
  const TransferTotals ledger = ledger_of({report(100, {}, "efa:0")});
  EXPECT_THAT(compare(by_nics(), ledger, {{.nic = "a", .sent = 200}}).differences, IsEmpty());
  EXPECT_THAT(compare(by_nics(), ledger, {}).differences, IsEmpty());
}

TEST(Comparisons, SurviveJson) {
  weft::Report failed = by_sockets(100);
  failed.copied.push_back({Known::unknown, Mover::cpu, false, 0});
  const Comparison before = compare(by_sockets(), ledger_of({failed}), {{.nic = "a", .sent = 5}});
  const Comparison after = comparison_from_json(Json::parse(to_json(before).dump()));
  EXPECT_EQ(to_json(after), to_json(before));
  EXPECT_EQ(table(after), table(before));
  EXPECT_THROW(comparison_from_json(Json::object()), Json::exception);
}

TEST(ComparisonText, HasEachHopAndTheVerdict) {
  const std::string text = table(compare(by_sockets(), ledger_of({by_sockets(2048)}), {}));
  for (const char* words :
       {"declared, and carried: write over tcp: 2 copies of each byte",
        "socket buffer → the peer's", "2.00 KiB", "2.00 declared, 2.00 in the ledger",
        "tcp:0, tcp:1 declared; tcp:0 used",
        "none: the ledger has each copy that the path declares"})
    EXPECT_THAT(text, HasSubstr(words));
}

TEST(ComparisonText, CantBeTrickedByNames) {
  Path path = by_sockets();
  path.rails = {"\x1b[31m"};
  const std::string text =
      table(compare(path, ledger_of({by_sockets(1)}), {{.nic = "\x1b[2J", .sent = 1}}));
  EXPECT_EQ(text.find('\x1b'), text.npos);
}

}  // namespace
}  // namespace weft::tool
