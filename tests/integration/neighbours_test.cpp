// Several processes of a host that have one environment, as the ranks of a server do, with engines
// of which each has a name, addresses, files and memory of its own.
#include <cstdlib>
#include <set>

#include "engines.hpp"
#include "http_client.hpp"
#include "process.hpp"

namespace weft::test::neighbours_tests {
namespace {

constexpr std::size_t bytes = 10'000;
constexpr std::size_t processes = 3, engines_each = 2;

/// Opens so many engines, each with a segment, and says their names, addresses and where their
/// metrics are.
WEFT_ROLE(neighbour) {
  std::vector<Engine> engines;
  std::vector<Segment> segments;
  std::vector<Grant> grants;
  for (int i = std::stoi(arguments.at(1)); i > 0; --i) {
    engines.push_back(must(Engine::open(config_for(arguments.at(0)))));
    segments.push_back(must(engines.back().add(Memory::shared(bytes))));
    grants.push_back(must(segments.back().grant({}, Rights::read_write)));
    must(engines.back().publish("memory", grants.back()));
  }
  for (const Engine& engine : engines) {
    parent.say(engine.name());
    parent.say(engine.address());
    parent.say(engine.metrics_address());
  }
  // A seed for each, whose pattern has come there.
  for (const Segment& segment : segments) {
    const auto seed = std::stoull(parent.hear(soon()));
    parent.say(holds(bytes_of(segment), seed) ? "yes" : "no");
  }
  parent.hear(soon());
  return 0;
}

/// A variable of the environment, for as long as it lives.
class Variable {
 public:
  Variable(const char* name, const std::string& value) : name_(name) {
    setenv(name, value.c_str(), 1);
  }
  ~Variable() { unsetenv(name_); }

 private:
  const char* const name_;
};

struct Told {
  std::string name, address, metrics;
};

class Neighbours : public testing::TestWithParam<std::string> {
 protected:
  void start(std::size_t engines) {
    for (std::size_t i = 0; i < processes; ++i)
      children_.push_back(
          std::make_unique<Child>("neighbour", std::vector{GetParam(), std::to_string(engines)}));
    for (const auto& child : children_)
      for (std::size_t i = 0; i < engines; ++i) {
        Told told{child->hear(), child->hear(), child->hear()};
        names_.insert(told.name);
        told_.push_back(std::move(told));
      }
  }
  /// Writes something else into the memory of each, all at once.
  void expect_each_gets_its_own() {
    Engine engine = must(Engine::open(config_for(GetParam())));
    std::vector<Segment> sources;
    std::vector<Transfer> transfers;
    const Pair all[] = {{0, 0, bytes}};
    for (std::size_t i = 0; i < told_.size(); ++i) {
      const Peer peer = must(engine.connect(told_[i].address, soon()));
      EXPECT_EQ(peer.name(), told_[i].name);
      const Remote there = must(peer.lookup("memory", soon()));
      sources.push_back(must(engine.add(Memory::own(bytes))));
      fill(bytes_of(sources.back()), 100 + i);
      transfers.push_back(must(engine.write(sources.back(), there, all)));
    }
    for (Transfer& transfer : transfers) EXPECT_TRUE(succeeds(transfer.wait(soon())));
    const std::size_t engines = told_.size() / children_.size();
    for (std::size_t i = 0; i < told_.size(); ++i)
      EXPECT_EQ(children_[i / engines]->ask(std::to_string(100 + i)), "yes") << told_[i].name;
    for (const auto& child : children_) {
      child->say("end");
      EXPECT_EQ(child->join(), 0);
    }
  }

  std::vector<std::unique_ptr<Child>> children_;
  std::vector<Told> told_;
  std::set<std::string> names_;
};

TEST_P(Neighbours, ShareAnAddressForMetricsThatOneOfThemHas) {
  Config config = config_for(GetParam());
  config.metrics_listen = "127.0.0.1:0";
  const Engine first = must(Engine::open(config));
  const Variable address("WEFT_METRICS_LISTEN", first.metrics_address());
  const Variable quiet("WEFT_LOG", "error");  // of the warnings that it is in use
  start(engines_each);
  EXPECT_EQ(names_.size(), processes * engines_each);
  for (const Told& each : told_) EXPECT_EQ(each.metrics, "");
  expect_each_gets_its_own();
}

TEST_P(Neighbours, HaveNamesAndSocketsByTheirProcess) {
  const Variable address("WEFT_METRICS_LISTEN", "unix:" + testing::TempDir() + "weft-%p.sock");
  const Variable name("WEFT_NAME", "rank-%p");
  start(1);
  EXPECT_EQ(names_.size(), processes);
  for (std::size_t i = 0; i < processes; ++i) {
    const std::string process = std::to_string(children_[i]->pid());
    EXPECT_EQ(told_[i].name, "rank-" + process);
    EXPECT_EQ(told_[i].metrics, "unix:" + testing::TempDir() + "weft-" + process + ".sock");
    EXPECT_NE(http_get(told_[i].metrics, "/metrics").find("200"), std::string::npos);
  }
  expect_each_gets_its_own();
}

INSTANTIATE_TEST_SUITE_P(All, Neighbours, testing::ValuesIn(all_providers()),
                         [](const auto& info) { return name_of(info.param); });

}  // namespace
}  // namespace weft::test::neighbours_tests
