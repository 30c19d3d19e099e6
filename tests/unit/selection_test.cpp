// Which NICs are taken, for machines of all kinds, without any of them.
#include "providers/select/selection.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

namespace weft::providers {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const ProviderName known[] = {
    {"shm", true, {"shm"}},
    {"efa", true, {"efa-direct", "efa"}},
    {"verbs", true, {"verbs;ofi_rxm"}},
    {"tcp", true, {"net", "tcp", "tcp;ofi_rxm"}},
    {"fi_shm", false, {"shm"}},
};

FoundNic shm() {
  FoundNic seen;
  seen.provider = seen.title = "shm";
  seen.domain = "memory";
  seen.is_nic = false;
  seen.score = "memory";
  return seen;
}

FoundNic fi_shm() {
  FoundNic seen = shm();
  seen.provider = "fi_shm";
  seen.title = "fi_shm (shm)";
  return seen;
}

FoundNic efa(const std::string& nic, const std::string& fabric = "efa-direct", unsigned way = 0,
             int numa_node = -1) {
  FoundNic seen;
  seen.provider = "efa";
  seen.title = "efa (efa)";
  seen.domain = nic;
  seen.fabric = fabric;
  seen.way = way;
  seen.numa_node = numa_node;
  seen.score = "NIC";
  return seen;
}

FoundNic verbs(const std::string& nic, const std::string& ip) {
  FoundNic seen = efa(nic, "IB-0xfe80");
  seen.ip = ip;
  seen.provider = "verbs";
  seen.title = "verbs (verbs;ofi_rxm)";
  return seen;
}

FoundNic tcp(const std::string& interface, const std::string& ip, unsigned way = 0) {
  FoundNic seen = efa(interface, ip, way);
  seen.provider = "tcp";
  seen.title = fmt::format("tcp ({})", known[3].ways[way]);
  seen.ip = ip;
  seen.chosen_by_ip = true;
  return seen;
}

FoundNic missing(const std::string& provider, const std::string& why, unsigned way = 0) {
  FoundNic seen;
  seen.provider = seen.title = provider;
  seen.way = way;
  seen.problem = why;
  return seen;
}

Wanted wanted(const std::vector<std::string>& providers = {},
              const std::vector<std::string>& nics = {}) {
  Wanted result;
  result.providers = providers;
  result.nics = nics;
  result.rail_address = "10.0.0.1";
  return result;
}

/// A row of the table: what is seen and asked for, and "provider domain" of what is taken
/// ("provider domain way" where that is not the best), or words of the error.
struct Case {
  std::string name;
  std::vector<FoundNic> seen;
  Wanted wanted;
  std::vector<std::string> taken;
  std::string error = {};
};

void PrintTo(const Case& row, std::ostream* out) {
  *out << row.name;
}

const std::vector<FoundNic>& p4d() {
  static const std::vector<FoundNic> seen = {
      shm(),
      efa("rdmap16s27"),
      efa("rdmap32s27"),
      efa("rdmap144s27"),
      efa("rdmap160s27"),
      efa("rdmap16s27", "efa", 1),
      tcp("ens32", "10.0.0.1"),
      tcp("lo", "127.0.0.1"),
  };
  return seen;
}

/// NICs that libfabric has in several ways.
const std::vector<FoundNic>& all_ways() {
  static const std::vector<FoundNic> seen = {
      shm(),
      efa("rdmap16s27"),
      efa("rdmap16s27", "efa", 1),
      tcp("eth0", "10.0.0.1"),
      tcp("eth0", "10.0.0.1", 1),
      tcp("eth0", "10.0.0.1", 2),
  };
  return seen;
}

std::vector<FoundNic> many(unsigned nics) {
  std::vector<FoundNic> seen;
  for (unsigned i = 0; i < nics; ++i)
    seen.push_back(efa("rdmap" + std::to_string(i), "efa-direct", 0, i < nics / 2 ? 0 : 1));
  return seen;
}

Wanted near(std::vector<int> nodes) {
  Wanted result = wanted({"efa"});
  result.near_nodes = std::move(nodes);
  return result;
}

std::vector<Case> table() {
  const std::string no_device = "there is no /dev/infiniband/uverbs*";
  const std::vector<FoundNic> in_container = {shm(), missing("efa", no_device),
                                              tcp("eth0", "10.0.0.1")};
  const std::vector<FoundNic> tcp_only = {shm(), missing("efa", "none"), missing("verbs", "none"),
                                          tcp("eth0", "10.0.0.1")};
  return {
      {"EfaPresent",
       p4d(),
       wanted(),
       {"shm memory", "efa rdmap16s27", "efa rdmap32s27", "efa rdmap144s27", "efa rdmap160s27",
        "tcp ens32"}},
      {"EfaWithoutItsDeviceFallsBack", in_container, wanted(), {"shm memory", "tcp eth0"}},
      {"EfaWithoutItsDeviceAndAskedFor", in_container, wanted({"efa"}), {}, no_device},
      {"EfaWithoutItsDeviceAndAskedForBesideTcp",
       in_container,
       wanted({"efa", "tcp"}),
       {},
       no_device},
      {"VerbsOnly",
       {shm(), missing("efa", "none"), verbs("mlx5_0", "10.1.0.1"), verbs("mlx5_1", "10.1.0.2"),
        tcp("eth0", "10.0.0.2")},
       wanted(),
       {"shm memory", "verbs mlx5_0", "verbs mlx5_1"}},
      {"VerbsNicWithTwoNamesAndAddresses",
       {verbs("mlx5_0", "10.1.0.1"), verbs("mlx5_0-xrc", "10.1.0.1"), verbs("mlx5_0", "10.0.0.1")},
       wanted({"verbs"}),
       {"verbs mlx5_0"}},
      {"TcpOnly", tcp_only, wanted(), {"shm memory", "tcp eth0"}},
      {"TcpOnAnotherAddress",
       {tcp("eth0", "10.9.9.9")},
       wanted({"tcp"}),
       {},
       "its address is 10.9.9.9, and rails were asked for on 10.0.0.1, which no NIC here has: set "
       "rail_address"},
      {"OrderedByTheUser", p4d(), wanted({"tcp", "shm"}), {"tcp ens32", "shm memory"}},
      {"NamedTwice", p4d(), wanted({"shm", "shm"}), {"shm memory"}},
      {"Forbidden", p4d(), wanted({"^efa", "^tcp"}), {"shm memory"}},
      {"ForbiddenAndNamed", p4d(), wanted({"shm", "tcp", "^tcp"}), {"shm memory"}},
      {"NotByItself", {shm(), missing("fi_shm", "")}, wanted(), {"shm memory"}},
      {"UnknownProvider",
       p4d(),
       wanted({"sockets"}),
       {},
       "no provider 'sockets'; it has: shm, efa (efa-direct), verbs (verbs;ofi_rxm), tcp (net, "
       "tcp;ofi_rxm), fi_shm"},
      {"UnknownProviderForbidden", p4d(), wanted({"^roce"}), {}, "no provider 'roce'"},
      {"PinnedNics",
       p4d(),
       wanted({"efa"}, {"rdmap160s27", "rdmap16s27"}),
       {"efa rdmap160s27", "efa rdmap16s27"}},
      {"PinnedNicsKeepMemory",
       p4d(),
       wanted({}, {"rdmap160s27"}),
       {"shm memory", "efa rdmap160s27"}},
      {"NicsByPattern", p4d(), wanted({"efa"}, {"rdmap1[0-9]s*"}), {"efa rdmap16s27"}},
      {"NicsBeyondTheUsualNumber",
       many(8),
       wanted({"efa"}, {"rdmap*"}),
       {"efa rdmap0", "efa rdmap1", "efa rdmap2", "efa rdmap3", "efa rdmap4", "efa rdmap5",
        "efa rdmap6", "efa rdmap7"}},
      {"ForbiddenNic",
       p4d(),
       wanted({"efa"}, {"^rdmap16s27", "^rdmap1[0-9][0-9]s*"}),
       {"efa rdmap32s27"}},
      {"UnknownNic", p4d(), wanted({}, {"mlx5_0"}), {}, "no NIC is called 'mlx5_0'; there are: "},
      {"NicOfAProviderThatWasNotNamed", p4d(), wanted({"tcp"}, {"rdmap16s27"}), {}, "'tcp'"},
      {"NearNicsFirst",
       many(8),
       near({1}),
       {"efa rdmap4", "efa rdmap5", "efa rdmap6", "efa rdmap7"}},
      {"NearNicsThenFarOnes",
       many(6),
       near({1}),
       {"efa rdmap3", "efa rdmap4", "efa rdmap5", "efa rdmap0"}},
      {"NoMoreOf32ThanAsked",
       many(32),
       near({0, 1}),
       {"efa rdmap0", "efa rdmap1", "efa rdmap2", "efa rdmap3"}},
      {"WorseWayWhereTheBestIsMissing",
       {missing("efa", "no efa-direct"), efa("a", "efa", 1), efa("b", "efa", 1)},
       wanted({"efa"}),
       {"efa a efa", "efa b efa"}},
      {"EachNicByItsBestWay",
       {efa("a"), efa("a", "efa", 1), efa("b", "efa", 1)},
       wanted({"efa"}),
       {"efa a", "efa b efa"}},
      {"WayByItsName", all_ways(), wanted({"tcp;ofi_rxm"}), {"tcp eth0 tcp;ofi_rxm"}},
      {"BestWayOfAProvider", all_ways(), wanted({"tcp"}), {"tcp eth0"}},
      {"WayForbidden",
       all_ways(),
       wanted({"^net", "^efa-direct"}),
       {"shm memory", "efa rdmap16s27 efa", "tcp eth0 tcp"}},
      {"WayOfANamedProviderForbidden",
       all_ways(),
       wanted({"efa", "^efa-direct"}),
       {"efa rdmap16s27 efa"}},
      {"WaysInTheOrderOfTheUser",
       all_ways(),
       wanted({"tcp;ofi_rxm", "shm", "net"}),
       {"tcp eth0 tcp;ofi_rxm", "shm memory"}},
      {"WayBeforeTheOthersOfItsProvider",
       all_ways(),
       wanted({"tcp;ofi_rxm", "tcp"}),
       {"tcp eth0 tcp;ofi_rxm"}},
      {"NextWayWhereTheFirstIsMissing",
       {missing("tcp", "no net"), tcp("eth0", "10.0.0.1", 2)},
       wanted({"net", "tcp;ofi_rxm"}),
       {"tcp eth0 tcp;ofi_rxm"}},
      {"WayMissing",
       {missing("tcp", "no net"), tcp("eth0", "10.0.0.1", 2)},
       wanted({"net"}),
       {},
       "provider 'tcp' can't be used; tcp: no net"},
      {"WayNamedAndForbidden", all_ways(), wanted({"shm", "net", "^net"}), {"shm memory"}},
      {"AllWaysForbidden", {verbs("mlx5_0", "10.1.0.1")}, wanted({"^verbs;ofi_rxm"}), {}},
      {"WeftsNameBeforeLibfabrics", {shm(), fi_shm()}, wanted({"shm"}), {"shm memory"}},
      {"LibfabricsNameForbiddenAsWefts",
       {shm(), fi_shm()},
       wanted({"fi_shm", "^shm"}),
       {"fi_shm memory"}},
      {"NothingAtAll", {}, wanted(), {}},
  };
}

std::string text_of(const FoundNic& nic) {
  std::string text = nic.provider + " " + nic.domain;
  const auto* provider = std::find_if(std::begin(known), std::end(known),
                                      [&](const auto& each) { return each.name == nic.provider; });
  if (nic.way > 0) text += fmt::format(" {}", provider->ways[nic.way]);
  return text;
}

class Select : public testing::TestWithParam<Case> {};

TEST_P(Select, Takes) {
  const Case& row = GetParam();
  const auto selection = select(row.seen, known, row.wanted);
  if (!row.error.empty()) {
    ASSERT_FALSE(selection);
    EXPECT_THAT(selection.error().message(), HasSubstr(row.error));
    return;
  }
  ASSERT_TRUE(selection) << selection.error().to_string();
  std::vector<std::string> taken;
  for (const std::size_t i : selection->taken) taken.push_back(text_of(row.seen[i]));
  EXPECT_EQ(taken, row.taken);
  ASSERT_EQ(selection->reasons.size(), row.seen.size());
  for (const std::string& reason : selection->reasons) EXPECT_NE(reason, "");
}

INSTANTIATE_TEST_SUITE_P(All, Select, testing::ValuesIn(table()),
                         [](const auto& info) { return info.param.name; });

TEST(SelectReasons, SayWhyEachWasPassedOver) {
  const std::vector<FoundNic> seen = {
      efa("a"),
      efa("a", "efa", 1),
      efa("a"),
      efa("b"),
      efa("c"),
      tcp("eth0", "10.0.0.1"),
      missing("verbs", "no RDMA device"),
  };
  Wanted asked = wanted({"efa", "^tcp"}, {"^b"});
  asked.max_nics = 1;
  const auto selection = select(seen, known, asked);
  ASSERT_TRUE(selection);
  EXPECT_THAT(selection->reasons,
              ElementsAre("NIC", HasSubstr("better reached as"), HasSubstr("better reached as"),
                          HasSubstr("this NIC is forbidden"), HasSubstr("max_nics"),
                          HasSubstr("forbidden"), HasSubstr("not among the providers asked for")));
}

TEST(SelectReasons, SayWhatBecameOfEachWay) {
  const auto named = select(all_ways(), known, wanted({"tcp;ofi_rxm"}));
  ASSERT_TRUE(named);
  const auto passed = HasSubstr("not among the providers asked for");
  EXPECT_THAT(named->reasons, ElementsAre(passed, passed, passed, passed, passed, "NIC"));

  const auto forbidden = select(all_ways(), known, wanted({"tcp", "^net"}));
  ASSERT_TRUE(forbidden);
  EXPECT_THAT(forbidden->reasons, ElementsAre(passed, passed, passed, HasSubstr("forbidden"), "NIC",
                                              HasSubstr("better reached as tcp (tcp) eth0")));
}

using Ways = std::vector<unsigned>;

/// Each provider with its ways.
std::vector<std::pair<std::string_view, Ways>> chosen(const std::vector<std::string>& terms) {
  std::vector<std::pair<std::string_view, Ways>> result;
  for (const Choice& each : choices_of(known, terms)) result.emplace_back(each.provider, each.ways);
  return result;
}

TEST(Choices, AreWhatIsWorthALook) {
  EXPECT_THAT(chosen({}),
              ElementsAre(testing::Pair("shm", Ways{0}), testing::Pair("efa", Ways{0, 1}),
                          testing::Pair("verbs", Ways{0}), testing::Pair("tcp", Ways{0, 1, 2})));
  EXPECT_THAT(chosen({"tcp;ofi_rxm"}), ElementsAre(testing::Pair("tcp", Ways{2})));
  EXPECT_THAT(chosen({"tcp;ofi_rxm", "tcp"}), ElementsAre(testing::Pair("tcp", Ways{2, 0, 1})));
  EXPECT_THAT(chosen({"tcp", "efa", "^net"}),
              ElementsAre(testing::Pair("tcp", Ways{1, 2}), testing::Pair("efa", Ways{0, 1})));
  EXPECT_THAT(chosen({"sockets", "net"}), ElementsAre(testing::Pair("tcp", Ways{0})));
}

TEST(Objection, EmulationIsRefusedWhereItIsRuledOut) {
  Capability record;
  record.domain = "rdmap16s27";
  Wanted asked;
  EXPECT_EQ(reject_reason(record, asked), "");
  record.read = Origin::emulated;
  EXPECT_EQ(reject_reason(record, asked), "");
  asked.allow_emulation = false;
  EXPECT_THAT(reject_reason(record, asked), HasSubstr("reads of rdmap16s27 would be emulated"));
  record.write = Origin::emulated;
  EXPECT_THAT(reject_reason(record, asked), HasSubstr("writes and reads"));
  record.write = record.read = Origin::native;
  EXPECT_EQ(reject_reason(record, asked), "");
}

}  // namespace
}  // namespace weft::providers
