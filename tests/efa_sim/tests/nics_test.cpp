// The NICs that the real provider finds, for fabrics of several kinds; and how long a device lives.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>

#include <filesystem>
#include <sstream>

#include "efa_fabric.hpp"
#include "engines.hpp"
#include "node.hpp"
#include "process.hpp"
#include "topo/machine.hpp"

namespace weft::efa_sim {
namespace {

using namespace std::chrono_literals;
using test::Child;

/// Says what fi_getinfo gives: "domain pci gigabits up;" for each endpoint of the kind that moves
/// data reliably.
WEFT_ROLE(list) {
  fi_info* const hints = fi_allocinfo();
  hints->fabric_attr->prov_name = strdup("efa");
  hints->fabric_attr->name = strdup("efa");
  hints->ep_attr->type = FI_EP_RDM;
  fi_info* found = nullptr;
  fi_getinfo(FI_VERSION(1, 17), nullptr, nullptr, 0, hints, &found);
  std::string text;
  for (const fi_info* each = found; each != nullptr; each = each->next) {
    if (std::string(each->fabric_attr->name) != "efa") continue;
    const auto& pci = each->nic->bus_attr->attr.pci;
    text += fmt::format("{} {:04x}:{:02x}:{:02x}.{} {} {};", each->domain_attr->name, pci.domain_id,
                        pci.bus_id, pci.device_id, pci.function_id,
                        each->nic->link_attr->speed / 1'000'000'000,
                        each->nic->link_attr->state == FI_LINK_UP ? "up" : "down");
  }
  fi_freeinfo(found);
  fi_freeinfo(hints);
  parent.say(text);
  parent.hear(Deadline::in(60s));
  return 0;
}

std::string list_of(const EfaFabric& fabric) {
  fabric.set_environment();
  Child child("list");
  const std::string text = child.ask("end");
  EXPECT_EQ(child.join(), 0);
  return text;
}

TEST(Nics, AreFound) {
  EfaOptions options;
  options.nic_list = "rdmap0s6@0000:00:06.0@100,rdmap1s7@0001:3f:1b.2@200,x@0002:a0:1c.0@400";
  const EfaFabric fabric(options);
  // Older versions know no more than EDR.
  const bool old = FI_VERSION_LT(fi_version(), FI_VERSION(2, 0));
  EXPECT_EQ(list_of(fabric),
            old ? "rdmap0s6-rdm 0000:00:06.0 100 up;rdmap1s7-rdm 0001:3f:1b.2 0 up;"
                  "x-rdm 0002:a0:1c.0 0 up;"
                : "rdmap0s6-rdm 0000:00:06.0 100 up;rdmap1s7-rdm 0001:3f:1b.2 200 up;"
                  "x-rdm 0002:a0:1c.0 400 up;");
}

TEST(Nics, AreAbsentDownOrBroken) {
  EfaFabric fabric(EfaOptions{.nics = 2, .settings = "efa_0.link_down=1"});
  EXPECT_EQ(list_of(fabric), "efa_0-rdm 0000:10:1a.0 100 down;efa_1-rdm 0000:10:1b.0 100 up;");
  fabric.set("clear,efa_0.absent=1");
  EXPECT_EQ(list_of(fabric), "efa_1-rdm 0000:10:1b.0 100 up;");
  fabric.set("clear,efa_1.open_fail=1");
  EXPECT_EQ(list_of(fabric), "") << "one NIC that can't be opened, and the provider has none";
  fabric.set("clear,absent=1");
  EXPECT_EQ(list_of(fabric), "");
}

TEST(Nics, AreNoneWithoutADevice) {
  auto fabric = std::make_unique<EfaFabric>();
  fabric->set_environment();
  fabric.reset();
  Child child("list");
  EXPECT_EQ(child.ask("end"), "");
  EXPECT_EQ(child.join(), 0);
}

TEST(Nics, RefuseUnknownSettings) {
  EXPECT_THROW(EfaFabric(EfaOptions{.settings = "what=1"}), std::runtime_error);
  EXPECT_THROW(EfaFabric(EfaOptions{.nic_list = "what"}), std::runtime_error);
  EfaFabric fabric;
  EXPECT_THROW(fabric.set("what=1"), std::runtime_error);
}

/// At the usual depths the provider takes some 70 MB for each endpoint.
constexpr char shallow[] = "send_queue=256,receive_queue=256";

/// Opens all NICs, and writes by each into the peer's memory.
WEFT_ROLE(opener) {
  const unsigned count = static_cast<unsigned>(std::stoul(arguments.at(0)));
  constexpr std::size_t bytes = 100'000;
  std::vector<std::unique_ptr<Node>> nodes;
  std::vector<fi_addr_t> peers;
  std::vector<Reach> reaches;
  for (unsigned i = 0; i < count; ++i) {
    nodes.push_back(std::make_unique<Node>("efa", 2 * bytes, fmt::format("efa_{}", i)));
    nodes.back()->memory()[0] = static_cast<std::byte>(i + 1);
    parent.say(nodes.back()->reach().to_text());
  }
  for (const auto& each : nodes) {
    reaches.push_back(Reach::from_text(parent.hear(Deadline::in(60s))));
    peers.push_back(each->add(reaches.back()));
  }
  for (unsigned i = 0; i < count; ++i)
    nodes[i]->write(1, 0, bytes, peers[i], reaches[i].base + bytes, reaches[i].key);
  const auto right = [&] {
    for (unsigned i = 0; i < count; ++i) {
      if (static_cast<volatile std::byte*>(nodes[i]->memory())[bytes] != std::byte(i + 1))
        return false;
    }
    return true;
  };
  const auto end = std::chrono::steady_clock::now() + 60s;
  while (!right() && std::chrono::steady_clock::now() < end) std::this_thread::sleep_for(1ms);
  parent.say(right() ? "right" : "wrong");
  parent.hear(Deadline::in(60s));
  return 0;
}

TEST(Nics, MayBeMany) {
  constexpr unsigned count = 32;
  const EfaFabric fabric(EfaOptions{.nics = count, .settings = shallow});
  fabric.set_environment();
  Child one("opener", {std::to_string(count)}), other("opener", {std::to_string(count)});
  std::vector<std::string> of_one, of_other;
  for (unsigned i = 0; i < count; ++i) of_one.push_back(one.hear());
  for (unsigned i = 0; i < count; ++i) of_other.push_back(other.hear());
  for (const std::string& each : of_other) one.say(each);
  for (const std::string& each : of_one) other.say(each);
  EXPECT_EQ(one.hear(), "right");
  EXPECT_EQ(other.hear(), "right");
  for (Child* each : {&one, &other}) {
    each->say("end");
    EXPECT_EQ(each->join(), 0);
  }
}

/// Opens an engine as it is by default. Says which NICs it takes, and why not the last one.
WEFT_ROLE(engine) {
  Config config;
  config.providers = {"efa"};
  const Engine engine = test::must(Engine::open(config));
  std::vector<std::string> taken;
  for (const RailInfo& rail : engine.info().rails) taken.push_back(rail.capability.domain);
  parent.say(fmt::format("{}", fmt::join(taken, " ")));
  for (const Candidate& each : engine.info().candidates)
    if (each.domain == arguments.at(0)) parent.say(each.reason);
  parent.hear(Deadline::in(60s));
  return 0;
}

/// The first half of them on a NUMA node where this process has no cores.
std::string far_and_near(unsigned count) {
  const auto nodes = topo::usable_nodes();
  const int near = nodes.empty() ? 0 : nodes.front(), far = 63;
  std::string list;
  for (unsigned i = 0; i < count; ++i)
    list += fmt::format("efa_{}@0000:{:02x}:1a.0@100@{},", i, 0x10 + i, i < count / 2 ? far : near);
  return list;
}

TEST(Nics, NearestFourOfManyAreTaken) {
  if (topo::usable_nodes().empty()) GTEST_SKIP() << "this machine does not tell its NUMA nodes";
  const EfaFabric fabric(EfaOptions{.nic_list = far_and_near(32), .settings = shallow});
  fabric.set_environment();
  Child child("engine", {"efa_31"});
  EXPECT_EQ(child.hear(), "efa_16 efa_17 efa_18 efa_19");
  EXPECT_NE(child.hear().find("no more than 4 were asked for"), std::string::npos);
  child.say("end");
  EXPECT_EQ(child.join(), 0);
}

std::string folder_of(const EfaFabric& fabric) {
  return std::filesystem::path(fabric.environment().at(socket_variable)).parent_path();
}

bool gone_soon(pid_t process, const std::string& folder) {
  const auto end = std::chrono::steady_clock::now() + 20s;
  while (std::chrono::steady_clock::now() < end) {
    if (kill(process, 0) != 0 && !std::filesystem::exists(folder)) return true;
    std::this_thread::sleep_for(1ms);
  }
  return false;
}

TEST(Device, EndsWithItsObject) {
  auto fabric = std::make_unique<EfaFabric>();
  const pid_t process = fabric->process();
  const std::string folder = folder_of(*fabric);
  EXPECT_TRUE(std::filesystem::exists(folder));
  EXPECT_EQ(kill(process, 0), 0);
  fabric.reset();
  EXPECT_FALSE(std::filesystem::exists(folder));
  EXPECT_NE(kill(process, 0), 0);
}

WEFT_ROLE(starter) {
  const EfaFabric fabric;
  parent.say(fmt::format("{} {}", fabric.process(), folder_of(fabric)));
  parent.hear(Deadline::in(60s));
  return 0;
}

TEST(Device, EndsWithTheProcessThatStartedIt) {
  Child starter("starter");
  std::istringstream words(starter.hear());
  pid_t process = 0;
  std::string folder;
  words >> process >> folder;
  EXPECT_TRUE(std::filesystem::exists(folder));
  starter.kill();
  EXPECT_TRUE(gone_soon(process, folder));
}

int run_command(const std::string& text) {
  return std::system((WEFT_EFA_FOLDER "/with-efa " + text).c_str());
}

TEST(WithEfa, ReturnsWhatTheCommandDoes) {
  EXPECT_EQ(WEXITSTATUS(run_command("-- sh -c 'exit 7'")), 7);
  EXPECT_EQ(WEXITSTATUS(run_command("-- sh -c 'kill -9 $$'")), 128 + SIGKILL);
  EXPECT_EQ(WEXITSTATUS(run_command("-- /no/such/command 2>/dev/null")), 1);
  EXPECT_EQ(WEXITSTATUS(run_command("--fault what=1 -- true 2>/dev/null")), 1);
}

TEST(WithEfa, SetsFaultsWhileTheCommandRuns) {
  const std::string fault = WEFT_EFA_FOLDER "/efa-fault ";
  EXPECT_EQ(run_command("-- sh -c '" + fault + "nic_down=1 && " + fault + "counters' >/dev/null"),
            0);
  EXPECT_NE(run_command("-- " + fault + "what=1 2>/dev/null"), 0);
}

}  // namespace
}  // namespace weft::efa_sim
