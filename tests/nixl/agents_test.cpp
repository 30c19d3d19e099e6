// What is told of other agents, and what the log is told.
#include "nixl/agents.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nixl/status.hpp"
#include "nixl/wire.hpp"

namespace weft::nixl {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

class AgentsTest : public testing::Test {
 protected:
  ~AgentsTest() override {
    EXPECT_TRUE(engine->close(Deadline::in(10s)));
    agents.close(Deadline::in(10s));
  }
  static std::shared_ptr<Engine> open() {
    Config config;
    config.providers = {"shm"};
    return std::make_shared<Engine>(Engine::open(config).value());
  }
  /// Why one that listens at loopback is refused; empty: it is being met.
  std::string refused(const std::string& host, const std::string& network) {
    const auto loaded =
        agents.load("other", encode({"other@1", "127.0.0.1:1", host, 4096, network}));
    return loaded ? "" : loaded.error().message();
  }

  const std::shared_ptr<Engine> engine = open();
  Agents agents{{engine, Cutter(engine), 1s}, 4096};
};

TEST_F(AgentsTest, LoopbackIsOfOneNetworkAlone) {
  ASSERT_THAT(this_network(), testing::StartsWith("net:["));
  EXPECT_EQ(refused(this_host(), this_network()), "");
  EXPECT_EQ(refused(this_host(), ""), "") << "of an agent that does not tell its network";
  EXPECT_THAT(refused(this_host(), "net:[1]"),
              testing::AllOf(HasSubstr("another container of this machine"),
                             HasSubstr("set WEFT_LISTEN there")));
  EXPECT_THAT(refused("elsewhere", this_network()), HasSubstr("another machine"));
}

TEST_F(AgentsTest, AnOldAgentsInfoIsRead) {
  flatbuffers::FlatBufferBuilder builder;
  builder.Finish(wire::CreateConnectionDirect(builder, 1, "old@1", "10.0.0.1:7", "host", 64));
  const auto read = decode_connection(
      std::string(reinterpret_cast<const char*>(builder.GetBufferPointer()), builder.GetSize()));
  ASSERT_TRUE(read);
  EXPECT_EQ(*read, (Connection{"old@1", "10.0.0.1:7", "host", 64, ""}));
}

TEST(Log, HasTheFirstFailuresOfAKindAndTheirNumber) {
  LogLimit limit;
  const Error error(Code::peer_down, "it is gone");
  const auto now = Clock::now();
  const auto lines = [&](int calls, const char* what, Clock::time_point when) {
    std::vector<std::string> written;
    for (int i = 0; i < calls; ++i)
      if (auto line = limit.line(what, error, when)) written.push_back(*line);
    return written;
  };
  EXPECT_EQ(lines(1000, "a transfer failed", now).size(), LogLimit::most_lines);
  EXPECT_EQ(lines(1, "memory was not registered", now).size(), 1U);
  EXPECT_TRUE(limit.line("a transfer failed", Error(Code::stale, "another"), now));
  const auto later = lines(1000, "a transfer failed", now + LogLimit::period);
  ASSERT_EQ(later.size(), LogLimit::most_lines);
  EXPECT_THAT(later[0], HasSubstr("it is gone (and 990 like it before)"));
  EXPECT_THAT(later[1], testing::Not(HasSubstr("like it")));
}

}  // namespace
}  // namespace weft::nixl
