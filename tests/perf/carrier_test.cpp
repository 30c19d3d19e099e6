#include "carrier.hpp"

#include <gmock/gmock.h>

namespace weft::perf {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

RailInfo rail(const std::string& name, const std::string& provider, const std::string& domain) {
  RailInfo info;
  info.name = name;
  info.capability.provider = provider;
  info.capability.domain = domain;
  return info;
}

Candidate taken(const std::string& provider, const std::string& domain, const std::string& fabric) {
  Candidate candidate;
  candidate.provider = provider;
  candidate.domain = domain;
  candidate.fabric = fabric;
  candidate.taken = true;
  return candidate;
}

/// Two EFA NICs, the second with two rails, an interface, and memory.
Info info_of_two() {
  Info info;
  info.rails = {rail("efa:0", "efa", "rdmap0"), rail("efa:1", "efa", "rdmap1"),
                rail("efa:2", "efa", "rdmap1"), rail("tcp:0", "net", "eth0"),
                rail("shm:0", "shm", "memory")};
  info.candidates = {taken("efa (efa-direct)", "rdmap0", "efa-direct"),
                     taken("efa (efa-direct)", "rdmap1", "efa-direct"),
                     taken("verbs (verbs;ofi_rxm)", "rdmap0", "IB"),
                     taken("tcp", "eth0", "10.0.0.0/8"), taken("shm", "memory", "")};
  info.candidates[0].taken = false;  // Seen in another way as well.
  info.candidates.push_back(taken("efa (efa)", "rdmap0", "efa"));
  info.candidates[4].is_nic = false;
  return info;
}

TEST(Carrier, HasEachNicOnceInTheOrderOfTheRails) {
  const Carrier carrier = carrier_of(info_of_two(), {"efa:2", "efa:0", "efa:1"});
  EXPECT_EQ(carrier.provider, "efa");
  EXPECT_THAT(carrier.nics, ElementsAre(RawNic{"rdmap1", "efa-direct"}, RawNic{"rdmap0", "efa"}));
}

TEST(Carrier, IsOfTheFirstRailsProvider) {
  const Carrier carrier = carrier_of(info_of_two(), {"tcp:0", "efa:0"});
  EXPECT_EQ(carrier.provider, "net");
  EXPECT_THAT(carrier.nics, ElementsAre(RawNic{"eth0", "10.0.0.0/8"}));
}

TEST(Carrier, OfMemoryHasNoNics) {
  const Carrier carrier = carrier_of(info_of_two(), {"shm:0"});
  EXPECT_EQ(carrier.provider, "shm");
  EXPECT_THAT(carrier.nics, IsEmpty());
  EXPECT_EQ(carrier_of(info_of_two(), {}).provider, "");
}

TEST(Carrier, TellsTheNicsOfOneProvider) {
  EXPECT_THAT(nics_of(info_of_two(), "efa"),
              ElementsAre(RawNic{"rdmap0", "efa"}, RawNic{"rdmap1", "efa-direct"}));
  EXPECT_THAT(nics_of(info_of_two(), "shm"), IsEmpty());
  EXPECT_THAT(nics_of(info_of_two(), "verbs;ofi_rxm"), IsEmpty());
}

}  // namespace
}  // namespace weft::perf
