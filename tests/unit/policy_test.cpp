// Policies: what they refuse, and in which words.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <weft/policy.hpp>

#include "path/judge.hpp"

namespace weft::core {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Stop stop(Stop::Kind kind, PathSide side) {
  return {.kind = kind, .side = side};
}

/// As tcp's between two hosts.
Path by_sockets() {
  Path path;
  path.provider = "tcp";
  path.hops = {
      {stop(Stop::Kind::host, PathSide::local), stop(Stop::Kind::socket_buffer, PathSide::local),
       Mover::kernel, PathSide::local},
      {stop(Stop::Kind::socket_buffer, PathSide::local), stop(Stop::Kind::nic, PathSide::local)},
      {stop(Stop::Kind::nic, PathSide::local), stop(Stop::Kind::wire, PathSide::between)},
      {stop(Stop::Kind::wire, PathSide::between), stop(Stop::Kind::socket_buffer, PathSide::remote),
       Mover::nic, PathSide::remote},
      {stop(Stop::Kind::socket_buffer, PathSide::remote), stop(Stop::Kind::host, PathSide::remote),
       Mover::kernel, PathSide::remote}};
  path.copies = path.cpu_copies = 2;
  path.copies_local = path.copies_remote = 1;
  path.bounced_below = 9000;
  path.bounces_local = path.bounces_remote = 1;
  path.gbps = 25;
  path.limit = "NIC eth0, if the CPUs copy as fast";
  path.not_used = {"efa: the peer has none", "shm: other host"};
  return path;
}

/// GPU memory through the bounce-buffer transport, over a NIC that can't reach it.
Path staged() {
  Path path;
  path.provider = "efa";
  path.transport = TransportKind::bounce;
  Stop memory = stop(Stop::Kind::device, PathSide::local);
  memory.device = 3;
  path.hops = {{memory, stop(Stop::Kind::bounce_buffer, PathSide::local), Mover::copy_engine,
                PathSide::local},
               {stop(Stop::Kind::bounce_buffer, PathSide::local),
                stop(Stop::Kind::bounce_buffer, PathSide::remote)},
               {stop(Stop::Kind::bounce_buffer, PathSide::remote),
                stop(Stop::Kind::host, PathSide::remote), Mover::cpu, PathSide::remote}};
  path.copies = 2;
  path.cpu_copies = path.copies_local = path.copies_remote = 1;
  path.limit = "not known: no link on it tells its speed";
  path.not_used = {"GPUDirect: no dmabuf from the driver"};
  return path;
}

Path direct() {
  Path path;
  path.provider = "efa";
  path.hops = {
      {stop(Stop::Kind::device, PathSide::local), stop(Stop::Kind::host, PathSide::remote)}};
  path.gpudirect_local = true;
  path.gbps = 400;
  return path;
}

TEST(Policies, AnEmptyOneRefusesNothing) {
  for (const Path& path : {by_sockets(), staged(), direct()})
    EXPECT_EQ(reject_reason({}, path, 1), "");
  EXPECT_TRUE(Policy{}.empty());
}

TEST(Policies, WhatIsKeptToIsNotRefused) {
  const Policy strict{.max_copies = 0,
                      .forbid_cpu_copies = true,
                      .require_gpudirect = true,
                      .min_gbps = 400,
                      .providers = {"efa"}};
  EXPECT_EQ(reject_reason(strict, direct(), 1), "");
  EXPECT_EQ(reject_reason({.max_copies = 2, .min_gbps = 25, .providers = {"efa", "tcp"}},
                          by_sockets(), 9000),
            "");
}

TEST(Policies, TooManyCopies) {
  EXPECT_EQ(reject_reason({.max_copies = 0}, by_sockets()),
            "allows no copies of each byte, and the path over tcp makes 2: host memory to socket "
            "buffer by the kernel, the peer's socket buffer to the peer's host memory by the "
            "kernel; not used: efa: the peer has none; shm: other host");
  EXPECT_EQ(reject_reason({.max_copies = 1}, staged()),
            "allows 1 copy of each byte, and the path over efa through bounce buffers makes 2: "
            "memory of GPU 3 to bounce buffer by the GPU's copy engine, the peer's bounce buffer "
            "to the peer's host memory by the CPU; not used: GPUDirect: no dmabuf from the "
            "driver");
}

TEST(Policies, CopiesOfSmallPiecesCount) {
  EXPECT_EQ(reject_reason({.max_copies = 2}, by_sockets(), 9000), "");
  EXPECT_THAT(reject_reason({.max_copies = 2}, by_sockets(), 8999),
              HasSubstr("allows 2 copies of each byte, and the path over tcp makes 4: "));
  EXPECT_THAT(reject_reason({.max_copies = 2}, by_sockets(), 8999),
              HasSubstr("; pieces below 9000 bytes are bounced twice on top; "));
}

TEST(Policies, CopiesByTheCpu) {
  EXPECT_EQ(
      reject_reason({.forbid_cpu_copies = true}, staged()),
      "forbids copies by the CPU, and the path over efa through bounce buffers makes 1: the peer's "
      "bounce buffer to the peer's host memory by the CPU; not used: GPUDirect: no dmabuf from "
      "the driver");
  Path nic_alone = direct();
  nic_alone.bounced_below = 100;
  nic_alone.bounces_local = 1;
  EXPECT_EQ(reject_reason({.forbid_cpu_copies = true}, nic_alone, 99),
            "forbids copies by the CPU, and the path over efa makes 1: pieces below 100 bytes are "
            "bounced once on top");
}

TEST(Policies, NoGpuDirect) {
  EXPECT_EQ(reject_reason({.require_gpudirect = true}, staged()),
            "requires GPUDirect, and memory of GPU 3 is staged through host memory; GPUDirect: no "
            "dmabuf from the driver");
  EXPECT_EQ(reject_reason({.require_gpudirect = true}, by_sockets()), "") << "of host memory alone";
}

TEST(Policies, TooSlow) {
  EXPECT_EQ(reject_reason({.min_gbps = 100}, by_sockets()),
            "asks for 100 Gb/s at least, and the path over tcp carries 25 at most: NIC eth0, if "
            "the CPUs copy as fast; not used: efa: the peer has none; shm: other host");
  EXPECT_EQ(reject_reason({.min_gbps = 0.5}, staged()),
            "asks for 0.5 Gb/s at least, and what the path over efa through bounce buffers carries "
            "is not known: no link on it tells its speed");
}

TEST(Policies, AProviderThatIsNotAllowed) {
  EXPECT_EQ(reject_reason({.providers = {"efa", "verbs"}}, by_sockets()),
            "allows only efa, verbs, and the path goes over tcp; not used: efa: the peer has "
            "none; shm: other host");
}

TEST(PolicyText, IsReadAndWritten) {
  const auto policy = parse_policy(
      " max-copies=0, forbid_cpu_copies ,require-gpudirect=true,min_gbps=12.5,providers=efa+verbs");
  ASSERT_TRUE(policy) << policy.error().to_string();
  EXPECT_EQ(policy->max_copies, 0U);
  EXPECT_TRUE(policy->forbid_cpu_copies && policy->require_gpudirect);
  EXPECT_EQ(policy->min_gbps, 12.5);
  EXPECT_THAT(policy->providers, ElementsAre("efa", "verbs"));
  const std::string text = to_string(*policy);
  EXPECT_EQ(text,
            "max_copies=0,forbid_cpu_copies,require_gpudirect,min_gbps=12.5,providers=efa+verbs");
  EXPECT_EQ(*parse_policy(text), *policy);
  EXPECT_EQ(to_string(Policy{}), "");
  EXPECT_TRUE(parse_policy("")->empty());
  EXPECT_TRUE(parse_policy("forbid_cpu_copies=false")->empty());
}

std::string complaint(std::string_view text) {
  const auto policy = parse_policy(text);
  if (policy) return "";
  EXPECT_EQ(policy.error().code(), Code::invalid_argument);
  return policy.error().message();
}

TEST(PolicyText, WhatCantBeReadIsSaid) {
  EXPECT_EQ(complaint("most_copies=1"),
            "a policy has no 'most_copies'; it has max_copies, forbid_cpu_copies, "
            "require_gpudirect, min_gbps, providers");
  EXPECT_EQ(complaint("max_copies=few"), "a policy's max_copies is a number of copies, not 'few'");
  EXPECT_EQ(complaint("max_copies=-1"), "a policy's max_copies is a number of copies, not '-1'");
  EXPECT_EQ(complaint("min_gbps=nan"), "a policy's min_gbps is a number of Gb/s, not 'nan'");
  EXPECT_EQ(complaint("min_gbps=inf"), "a policy's min_gbps is a number of Gb/s, not 'inf'");
  EXPECT_EQ(complaint("min_gbps="), "a policy's min_gbps is a number of Gb/s, not ''");
  EXPECT_EQ(complaint("forbid_cpu_copies=maybe"),
            "a policy's forbid_cpu_copies is true or false, not 'maybe'");
  EXPECT_THAT(complaint("providers=efa++tcp"), HasSubstr("names of providers with + between"));
  EXPECT_THAT(complaint("providers="), HasSubstr("names of providers with + between"));
  EXPECT_THAT(complaint("max_copies=1,,"), HasSubstr("a policy has no ''"));
}

}  // namespace
}  // namespace weft::core
