#include "baseline/carrier.hpp"

#include <gmock/gmock.h>

namespace weft::perf {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr RailKind direct{7, 1}, sockets{8, 2}, memory{9, 3};

RailInfo rail(const std::string& name, const std::string& provider, const std::string& domain,
              const RailKind& kind) {
  RailInfo info;
  info.name = name;
  info.capability.protocol = kind.protocol;
  info.capability.address_format = kind.address_format;
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
  info.rails = {rail("efa:0", "efa", "rdmap0", direct), rail("efa:1", "efa", "rdmap1", direct),
                rail("efa:2", "efa", "rdmap1", direct), rail("tcp:0", "net", "eth0", sockets),
                rail("shm:0", "shm", "memory", memory)};
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
  const Carrier carrier =
      carrier_of(info_of_two(), std::vector<std::string>{"efa:2", "efa:0", "efa:1"});
  EXPECT_EQ(carrier.provider, "efa");
  EXPECT_THAT(carrier.nics, ElementsAre(RawNic{"rdmap1", "efa-direct"}, RawNic{"rdmap0", "efa"}));
}

TEST(Carrier, IsOfTheFirstRailsKind) {
  const Carrier carrier = carrier_of(info_of_two(), std::vector<std::string>{"tcp:0", "efa:0"});
  EXPECT_EQ(carrier.provider, "net");
  EXPECT_THAT(carrier.nics, ElementsAre(RawNic{"eth0", "10.0.0.0/8"}));
}

TEST(Carrier, OfMemoryHasNoNics) {
  const Carrier carrier = carrier_of(info_of_two(), std::vector<std::string>{"shm:0"});
  EXPECT_EQ(carrier.provider, "shm");
  EXPECT_THAT(carrier.nics, IsEmpty());
  EXPECT_EQ(carrier_of(info_of_two(), std::vector<std::string>()).provider, "");
}

TEST(Carrier, OfAKindHasAllOfThatKind) {
  const Carrier carrier = carrier_of(info_of_two(), direct);
  EXPECT_EQ(carrier.provider, "efa");
  EXPECT_THAT(carrier.nics, ElementsAre(RawNic{"rdmap0", "efa"}, RawNic{"rdmap1", "efa-direct"}));
  EXPECT_EQ(carrier_of(info_of_two(), memory).provider, "shm");
  EXPECT_THAT(carrier_of(info_of_two(), memory).nics, IsEmpty());
  EXPECT_EQ(carrier_of(info_of_two(), RailKind{7, 2}).provider, "") << "another kind of address";
}

}  // namespace
}  // namespace weft::perf
