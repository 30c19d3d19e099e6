// What a transfer's path is declared to be, for every combination of memory, provider and hosts,
// whether this machine has them or not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <sstream>

#include "path/copies.hpp"
#include "path/describe.hpp"
#include "providers/libfabric/capability_record.hpp"
#include "providers/shm/shm.hpp"

namespace weft::core {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const Place host{MemoryKind::host, 0, -1};
const Place gpu{MemoryKind::device, 0, 3};

/// The record that a provider makes for a NIC of libfabric's.
[[maybe_unused]] Capability record_of(const providers::Spec& spec, const char* provider,
                                      const char* fabric = "") {
  const auto library = providers::load_libfabric();
  if (!library) throw std::runtime_error(library.error().message());
  const providers::InfoPtr info = providers::copy_of(nullptr);
  info->fabric_attr->prov_name = strdup(provider);
  info->fabric_attr->name = strdup(fabric);
  info->domain_attr->name = strdup("nic0");
  return providers::make_record(spec, *info);
}

struct Provider {
  std::string name, title;
  Capability record;
  bool mapped = false;  // the remote memory is
};

std::vector<Provider> all_providers() {
  std::vector<Provider> all;
#ifdef WEFT_PROVIDER_SHM
  all.push_back({"shm", "shm", providers::shm::capability()});
  all.push_back({"shm", "shm, behind a memfd", providers::shm::capability(), true});
#endif
#ifdef WEFT_PROVIDER_FI_SHM
  all.push_back({"fi_shm", "fi_shm", record_of(providers::fi_shm, "shm")});
#endif
#ifdef WEFT_PROVIDER_TCP
  all.push_back({"tcp", "tcp", record_of(providers::tcp, "net")});
  all.push_back({"tcp", "tcp;ofi_rxm", record_of(providers::tcp, "tcp;ofi_rxm")});
#endif
#ifdef WEFT_PROVIDER_VERBS
  all.push_back({"verbs", "verbs", record_of(providers::verbs, "verbs;ofi_rxm")});
#endif
#ifdef WEFT_PROVIDER_EFA
  all.push_back({"efa", "efa-direct", record_of(providers::efa, "efa", "efa-direct")});
  Provider emulated{"efa", "efa, emulated", record_of(providers::efa, "efa", "efa")};
  providers::emulate_writes(emulated.record);
  providers::emulate_reads(emulated.record);
  all.push_back(emulated);
#endif
  return all;
}

/// Whether there may be such a provider that reaches a GPU's memory: where it copies itself, or the
/// kernel does, there is none.
bool may_reach_gpus(const Capability& record) {
  return record.write_carriage.copies() == 0 && record.read_carriage.copies() == 0;
}

PathFacts facts_of(const Provider& provider, Direction direction, Place local, Place remote,
                   bool same_host) {
  PathFacts facts;
  facts.local.place = local;
  facts.remote.place = remote;
  facts.direction = direction;
  facts.same_host = same_host;
  facts.provider = provider.name;
  facts.rails = {provider.name + ":0"};
  facts.record = provider.record;
  facts.record.gbps = 0;
  facts.mapping.mapped = provider.mapped;
  return facts;
}

Path path_of(const PathFacts& facts) {
  const auto path = describe_path(facts);
  EXPECT_TRUE(path) << path.error().to_string();
  return path.value_or(Path{});
}

/// What holds of any path.
void expect_sound(const Path& path, const PathFacts& facts) {
  ASSERT_FALSE(path.hops.empty());
  const bool write = facts.direction == Direction::write;
  EXPECT_EQ(path.hops.front().from.side, write ? PathSide::local : PathSide::remote);
  EXPECT_EQ(path.hops.back().to.side, write ? PathSide::remote : PathSide::local);
  unsigned copies = 0, by_cpu = 0;
  bool wire = false;
  for (std::size_t i = 0; i < path.hops.size(); ++i) {
    const Hop& hop = path.hops[i];
    if (i > 0) {
      EXPECT_EQ(to_string(hop.from), to_string(path.hops[i - 1].to)) << "the hops hang together";
    }
    copies += hop.copies() ? 1 : 0;
    by_cpu += hop.busies_cpu() ? 1 : 0;
    wire = wire || hop.to.kind == Stop::Kind::wire;
    const bool at_device = hop.from.kind == Stop::Kind::device || hop.to.kind == Stop::Kind::device;
    EXPECT_FALSE(at_device && hop.busies_cpu()) << "no CPU touches a GPU's memory";
    if (hop.to.kind == Stop::Kind::nic && facts.record.same_host_only)
      ADD_FAILURE() << "a way within a host has no NIC";
  }
  EXPECT_EQ(wire, !facts.same_host);
  EXPECT_EQ(path.copies, copies);
  EXPECT_EQ(path.copies_local + path.copies_remote, copies);
  EXPECT_EQ(path.cpu_copies, by_cpu);
  EXPECT_FALSE(path.limit.empty());
}

TEST(Paths, HoldTogetherInEveryCombination) {
  for (const Provider& provider : all_providers())
    for (const Direction direction : {Direction::write, Direction::read})
      for (const Place& local : {host, gpu})
        for (const Place& remote : {host, gpu})
          for (const bool same_host : {true, false})
            for (const bool gpudirect : {true, false})
              for (const bool bounced : {true, false}) {
                if (provider.record.same_host_only && !same_host) continue;
                if (gpudirect && !may_reach_gpus(provider.record)) continue;
                PathFacts facts = facts_of(provider, direction, local, remote, same_host);
                facts.record.device_memory = gpudirect;
                if (bounced) facts.asked = TransportKind::bounce;
                SCOPED_TRACE(provider.title);
                expect_sound(path_of(facts), facts);
              }
}

/// "3 (1 + 2)": in sum, and by the side that the bytes leave and the one that they come to.
std::string counted(const Path& path) {
  const bool write = path.direction == Direction::write;
  const unsigned left = write ? path.copies_local : path.copies_remote;
  const unsigned come_to = write ? path.copies_remote : path.copies_local;
  if (path.copies == 0) return "0";
  std::ostringstream text;
  text << path.copies << " (" << left << " + " << come_to << ")";
  return text.str();
}

std::string movers(const Path& path) {
  std::string text;
  for (const Hop& hop : path.hops)
    if (hop.copies() && text.find(to_string(hop.by)) == text.npos)
      text += (text.empty() ? ", " : " and ") + std::string(to_string(hop.by));
  return text;
}

std::string bounces(const Path& path) {
  if (path.bounced_below == 0) return "-";
  std::ostringstream text;
  text << path.bounces_local + path.bounces_remote << " below " << path.bounced_below;
  return text.str();
}

/// The cells of a row that tell of one-sided transfers between host memory, of the bounce-buffer
/// transport between any memory, and of GPUDirect.
std::string cells(const Provider& provider, Direction direction, bool same_host) {
  const auto facts = [&](const Place& local, const Place& remote) {
    return facts_of(provider, direction, local, remote, same_host);
  };
  const Path straight = path_of(facts(host, host));
  PathFacts bounced = facts(host, host);
  bounced.asked = TransportKind::bounce;
  const std::string by_bounce = counted(path_of(bounced));
  for (const auto& [local, remote] : {std::pair(gpu, host), {host, gpu}, {gpu, gpu}})
    EXPECT_EQ(counted(path_of(facts(local, remote))), by_bounce) << "whatever is staged";
  std::string direct = "-";
  if (may_reach_gpus(provider.record)) {
    PathFacts gpus = facts(gpu, gpu);
    gpus.record.device_memory = true;
    direct = counted(path_of(gpus));
  }
  return counted(straight) + movers(straight) + " | " + bounces(straight) + " | " + by_bounce +
         " | " + direct + " |";
}

/// The rows of tools/docs/paths.md for a provider.
std::vector<std::string> rows(const Provider& provider) {
  std::vector<std::string> rows;
  const std::string writes = cells(provider, Direction::write, true);
  const std::string reads = cells(provider, Direction::read, true);
  const bool near = provider.record.same_host_only;
  if (!near) {
    EXPECT_EQ(cells(provider, Direction::write, false), writes) << "only the NICs differ";
    EXPECT_EQ(cells(provider, Direction::read, false), reads) << "only the NICs differ";
  }
  const std::string begin = "| " + provider.title + " | " + (near ? "same" : "same or other");
  if (writes == reads) return {begin + " | write or read | " + writes};
  return {begin + " | write | " + writes, begin + " | read | " + reads};
}

TEST(Paths, AreThoseOfTheGuidesTable) {
  std::ifstream page(WEFT_PATHS_PAGE);
  std::vector<std::string> lines;
  for (std::string line; std::getline(page, line);) lines.push_back(line);
  // What follows tells how it was checked.
  for (const Provider& provider : all_providers())
    for (const std::string& row : rows(provider))
      EXPECT_TRUE(std::any_of(lines.begin(), lines.end(), [&](const std::string& line) {
        return line.starts_with(row);
      })) << row;
}

/// Where bytes stop, and who brings them on.
std::vector<std::string> stops_of(const Path& path) {
  std::vector<std::string> stops{to_string(path.hops.front().from)};
  for (const Hop& hop : path.hops)
    stops.push_back(std::string(to_string(hop.by)) + " > " + to_string(hop.to));
  return stops;
}

Provider nic_provider() {
  Provider provider{"nic", "nic", {}};
  provider.record.provider = "nic";
  provider.record.domain = "nic0";
  provider.record.device_memory_problem = "no dmabuf from the driver";
  return provider;
}

Provider socket_provider() {
  Provider provider{"sockets", "sockets", {}};
  provider.record.write_carriage = {.initiator_copies = true,
                                    .target_copies = true,
                                    .by = Mover::kernel,
                                    .between = Carriage::Between::socket_buffer,
                                    .bounced_below = 9000,
                                    .initiator_bounces = true};
  provider.record.read_carriage = provider.record.message_carriage = provider.record.write_carriage;
  return provider;
}

Provider memory_provider() {
  Provider provider{"memory", "memory", {}};
  provider.record.same_host_only = true;
  provider.record.write_carriage = {.initiator_copies = true, .by = Mover::kernel};
  provider.record.read_carriage = provider.record.write_carriage;
  provider.record.message_carriage = {
      .initiator_copies = true, .target_copies = true, .by = Mover::cpu};
  return provider;
}

TEST(Paths, ANicMovesHostMemoryWithoutACopy) {
  PathFacts facts = facts_of(nic_provider(), Direction::write, host, host, false);
  facts.local.nics = "a, b";
  const Path path = path_of(facts);
  EXPECT_THAT(stops_of(path),
              ElementsAre("host memory on node 0", "nic > NIC a, b", "nic > wire",
                          "nic > the peer's NIC", "nic > the peer's host memory on node 0"));
  EXPECT_EQ(path.copies, 0U);
  EXPECT_EQ(path.transport, TransportKind::one_sided);
  EXPECT_THAT(path.not_used, IsEmpty());
}

TEST(Paths, ReadsRunTheOtherWay) {
  const Path path = path_of(facts_of(socket_provider(), Direction::read, host, host, false));
  EXPECT_THAT(stops_of(path),
              ElementsAre("the peer's host memory on node 0", "kernel > the peer's socket buffer",
                          "nic > the peer's NIC", "nic > wire", "nic > NIC", "nic > socket buffer",
                          "kernel > host memory on node 0"));
  EXPECT_EQ(path.copies_local, 1U);
  EXPECT_EQ(path.copies_remote, 1U);
}

TEST(Paths, OneHostsSocketsNeedNoNic) {
  const Path path = path_of(facts_of(socket_provider(), Direction::write, host, host, true));
  EXPECT_THAT(stops_of(path), ElementsAre("host memory on node 0", "kernel > socket buffer",
                                          "kernel > the peer's host memory on node 0"));
}

TEST(Paths, TheSingleCopyBetweenProcessesIsTheInitiators) {
  for (const Direction direction : {Direction::write, Direction::read}) {
    const Path path = path_of(facts_of(memory_provider(), direction, host, host, true));
    EXPECT_EQ(path.hops.size(), 1U);
    EXPECT_EQ(path.copies_local, 1U);
    EXPECT_EQ(path.copies_remote, 0U);
    EXPECT_EQ(path.cpu_copies, 1U);
  }
}

TEST(Paths, WhatIsMappedIsCopiedByTheInitiatorItselfAndCounted) {
  PathFacts facts = facts_of(memory_provider(), Direction::write, host, host, true);
  using Known = Report::Copied::Known;
  const auto told = [&](std::uint64_t carried, std::uint64_t own) {
    std::vector<std::tuple<Known, Mover, std::uint64_t>> told;
    for (const auto& each : copies_on(path_of(facts), carried, own))
      told.emplace_back(each.known, each.by, each.bytes);
    return told;
  };
  const std::tuple kernel{Known::declared, Mover::kernel, std::uint64_t{30}};
  const std::tuple mapped{Known::counted, Mover::cpu, std::uint64_t{70}};
  for (const bool expected : {false, true}) {
    facts.mapping.mapped = expected;
    EXPECT_EQ(path_of(facts).hops.front().by, expected ? Mover::cpu : Mover::kernel);
    // What was done counts, whatever was expected.
    EXPECT_THAT(told(30, 0), ElementsAre(kernel));
    EXPECT_THAT(told(70, 70), ElementsAre(mapped));
    EXPECT_THAT(told(100, 70), ElementsAre(mapped, kernel));
  }
  facts.mapping = {false, "no room"};
  EXPECT_THAT(path_of(facts).not_used, ElementsAre("mapped: no room"));
}

TEST(Paths, GpuMemoryThatTheNicCantReachIsStaged) {
  const Path path = path_of(facts_of(nic_provider(), Direction::write, gpu, host, false));
  EXPECT_EQ(path.transport, TransportKind::bounce);
  EXPECT_THAT(stops_of(path),
              ElementsAre("memory of GPU 3", "copy_engine > bounce buffer", "nic > NIC",
                          "nic > wire", "nic > the peer's NIC", "nic > the peer's bounce buffer",
                          "cpu > the peer's host memory on node 0"));
  EXPECT_EQ(path.copies, 2U);
  EXPECT_EQ(path.cpu_copies, 1U) << "the copy engine's is not the CPU's";
  EXPECT_FALSE(path.gpudirect_local);
  EXPECT_THAT(path.not_used,
              ElementsAre("GPUDirect: nic nic0 can't reach a GPU's memory: no dmabuf from the "
                          "driver"));
}

TEST(Paths, GpuDirectNeedsNoCopy) {
  PathFacts facts = facts_of(nic_provider(), Direction::write, gpu, gpu, false);
  facts.record.device_memory = true;
  const Path path = path_of(facts);
  EXPECT_EQ(path.copies, 0U);
  EXPECT_EQ(path.transport, TransportKind::one_sided);
  EXPECT_TRUE(path.gpudirect_local && path.gpudirect_remote);
}

/// A segment's registrations know better than the record.
TEST(Paths, WhatWasSeenOfASegmentCountsMoreThanTheRecord) {
  using Reach = PathFacts::End::Reach;
  PathFacts facts = facts_of(nic_provider(), Direction::write, gpu, gpu, false);
  facts.local.reach = facts.remote.reach = Reach::direct;
  EXPECT_EQ(path_of(facts).transport, TransportKind::one_sided);

  facts.record.device_memory = true;
  facts.local.reach = Reach::staged;
  facts.local.why_staged = "the NIC has no room for it";
  Path path = path_of(facts);
  EXPECT_EQ(path.transport, TransportKind::bounce);
  EXPECT_FALSE(path.gpudirect_local || path.gpudirect_remote);
  EXPECT_THAT(path.not_used,
              ElementsAre("GPUDirect: the NIC has no room for it",
                          "GPUDirect at the peer: NICs reach this side's memory, and not the "
                          "other's"));
  facts.asked = TransportKind::one_sided;
  const auto refused = describe_path(facts);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message(),
            "one-sided transfers were asked for, and the NIC has no room for it");
}

TEST(Paths, BounceBuffersThatWereAskedForTellOnlyOfMemoryOutOfReach) {
  using Reach = PathFacts::End::Reach;
  PathFacts facts = facts_of(nic_provider(), Direction::write, gpu, gpu, false);
  facts.asked = TransportKind::bounce;
  facts.local.reach = Reach::direct;
  facts.remote.reach = Reach::staged;
  facts.remote.why_staged = "it has no key";
  EXPECT_THAT(path_of(facts).not_used, ElementsAre("one-sided: bounce buffers were asked for",
                                                   "GPUDirect at the peer: it has no key"));
}

TEST(Paths, HostMemoryIsNeverGpuDirect) {
  PathFacts facts = facts_of(nic_provider(), Direction::write, host, gpu, false);
  facts.record.device_memory = true;
  const Path path = path_of(facts);
  EXPECT_FALSE(path.gpudirect_local);
  EXPECT_TRUE(path.gpudirect_remote);
}

TEST(Paths, MemoryThatLiesNearAGpuIsHostMemory) {
  const Place near{MemoryKind::host, 1, 3};
  const Path path = path_of(facts_of(nic_provider(), Direction::write, near, host, false));
  EXPECT_EQ(path.transport, TransportKind::one_sided);
  EXPECT_EQ(to_string(path.hops.front().from), "host memory near GPU 3 on node 1");
}

TEST(Paths, BouncesAreDeclaredForTheSideThatMakesThem) {
  const Path write = path_of(facts_of(socket_provider(), Direction::write, host, host, false));
  EXPECT_EQ(write.bounced_below, 9000U);
  EXPECT_EQ(write.bounces_local, 1U);
  EXPECT_EQ(write.bounces_remote, 0U);
  PathFacts facts = facts_of(socket_provider(), Direction::read, host, host, false);
  facts.asked = TransportKind::bounce;
  const Path bounced =
      path_of(facts);  // what is read by the bounce-buffer transport the peer sends
  EXPECT_EQ(bounced.bounces_local, 0U);
  EXPECT_EQ(bounced.bounces_remote, 1U);
}

TEST(Paths, SayWhyOneSidedTransfersWereNotTaken) {
  PathFacts facts = facts_of(nic_provider(), Direction::write, host, host, false);
  facts.asked = TransportKind::bounce;
  facts.not_used = {"memory: other host"};
  EXPECT_THAT(path_of(facts).not_used,
              ElementsAre("memory: other host", "one-sided: bounce buffers were asked for"));
}

TEST(Paths, OneSidedTransfersOfMemoryOutOfReachAreRefused) {
  PathFacts facts = facts_of(nic_provider(), Direction::write, host, gpu, false);
  facts.asked = TransportKind::one_sided;
  const auto path = describe_path(facts);
  ASSERT_FALSE(path);
  EXPECT_EQ(path.error().code(), Code::unsupported);
  EXPECT_EQ(path.error().message(),
            "one-sided transfers were asked for, and nic nic0 can't reach a GPU's memory: no "
            "dmabuf from the driver");
}

TEST(Paths, AGpuCopiesToTheOtherOneWhereItsMemoryIsLent) {
  for (const Direction direction : {Direction::write, Direction::read}) {
    PathFacts facts = facts_of(memory_provider(), direction, gpu, gpu, true);
    facts.lending = {false, "no handle"};
    EXPECT_THAT(path_of(facts).not_used, Contains("from GPU to GPU: no handle"));
    facts.lending = {true};
    const Path path = path_of(facts);
    EXPECT_EQ(path.transport, TransportKind::device_copy);
    ASSERT_EQ(path.hops.size(), 1U);
    const bool write = direction == Direction::write;
    EXPECT_EQ(path.hops.front().from.side, write ? PathSide::local : PathSide::remote);
    EXPECT_EQ(path.hops.front().side, PathSide::local) << "this side's GPU does it";
    EXPECT_EQ(path.copies, 1U);
    EXPECT_EQ(path.copies_local, 1U);
    EXPECT_EQ(path.bounced_below, 0U);
    EXPECT_THAT(path.not_used, IsEmpty());
    facts.asked = TransportKind::bounce;
    EXPECT_EQ(path_of(facts).transport, TransportKind::bounce);
  }
}

TEST(Paths, CopiesFromGpuToGpuAreRefusedWhereNothingIsLent) {
  PathFacts facts = facts_of(memory_provider(), Direction::write, gpu, gpu, true);
  facts.asked = TransportKind::device_copy;
  facts.lending = {false, "another host"};
  const auto path = describe_path(facts);
  ASSERT_FALSE(path);
  EXPECT_EQ(path.error().code(), Code::unsupported);
  EXPECT_EQ(path.error().message(), "copies from GPU to GPU were asked for: another host");
}

TEST(PathLimits, TheSlowestLinkSetsIt) {
  PathFacts facts = facts_of(nic_provider(), Direction::write, gpu, host, false);
  facts.record.device_memory = true;
  facts.local.nics = "a";
  facts.local.nics_gbps = 400;
  facts.local.gpu_gbps = 504;
  Path path = path_of(facts);
  EXPECT_EQ(path.gbps, 400);
  EXPECT_EQ(path.limit, "NIC a");
  facts.remote.nics_gbps = 100;
  path = path_of(facts);
  EXPECT_EQ(path.gbps, 100);
  EXPECT_EQ(path.limit, "the peer's NIC");
  facts.local.gpu_gbps = 64;
  path = path_of(facts);
  EXPECT_EQ(path.limit, "the PCIe link of GPU 3");
  facts.local.nics_gbps = 32;
  facts.local.far_nics = true;
  EXPECT_EQ(path_of(facts).limit, "the way to NIC a");
  facts.local.link_notes = {"the uplink of switch 1 reports 16 Gb/s: not believed"};
  EXPECT_EQ(path_of(facts).limit,
            "the way to NIC a; the uplink of switch 1 reports 16 Gb/s: not believed");
}

TEST(PathLimits, CopiesByTheCpuMaySetALowerOne) {
  PathFacts facts = facts_of(socket_provider(), Direction::write, host, host, false);
  facts.local.nics = "eth0";
  facts.local.nics_gbps = 25;
  EXPECT_EQ(path_of(facts).limit, "NIC eth0, if the CPUs copy as fast");
}

TEST(PathLimits, ANicThatIsNotOnTheWayIsNone) {
  PathFacts facts = facts_of(socket_provider(), Direction::write, host, host, true);
  facts.local.nics_gbps = 25;
  const Path path = path_of(facts);
  EXPECT_EQ(path.gbps, 0);
  EXPECT_EQ(path.limit, "not known: CPUs copy, as fast as they and their memory are");
}

TEST(PathLimits, UnknownSpeedsAreSaidToBe) {
  const Path path = path_of(facts_of(nic_provider(), Direction::write, host, host, false));
  EXPECT_EQ(path.gbps, 0);
  EXPECT_EQ(path.limit, "not known: no link on it tells its speed");
}

}  // namespace
}  // namespace weft::core
