// Processes that end while an engine of theirs works, and nobody closes it: their exit status is
// the application's.
#include <algorithm>
#include <cstdlib>

#include "engines.hpp"
#include "process.hpp"

namespace weft::test::exit_tests {
namespace {

constexpr std::size_t bytes = 64 << 10;
constexpr std::size_t operations = 16;  // under way at a time, of each direction

/// How often each is done. A number of hundreds tells more, and takes minutes.
int exits() {
  const char* const wanted = std::getenv("WEFT_TEST_EXITS");
  return wanted != nullptr ? std::atoi(wanted) : 4;
}

/// An engine with peers, memory and what else there is when an application just returns from
/// main().
struct Application {
  explicit Application(const std::string& provider, const std::string& address)
      : engine(must(Engine::open(config_for(provider)))),
        peer(must(engine.connect(address, soon()))),
        segment(must(engine.add(Memory::own((operations + 1) * bytes)))),
        grant(must(segment.grant({}, Rights::read_write))),
        there(must(peer.lookup("parents", soon()))) {
    must(engine.publish("childs", grant));
  }
  /// For that long; some transfers are under way when it returns.
  void work(Deadline until) {
    const Pair out[] = {{0, 0, bytes}};
    while (!until.passed()) {
      wait_for(transfers.size());  // The next ones read into the same memory.
      transfers.clear();
      for (std::size_t i = 0; i < operations; ++i) {
        // Each where no other writes.
        const Pair in[] = {{(i + 1) * bytes, 0, bytes}};
        if (auto transfer = engine.write(segment, there, out))
          transfers.push_back(std::move(*transfer));
        if (auto transfer = engine.read(segment, there, in))
          transfers.push_back(std::move(*transfer));
      }
      wait_for(transfers.size() - std::min(transfers.size(), operations));
    }
  }
  /// The first ones. They may fail: the other side ends when it likes.
  void wait_for(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) static_cast<void>(transfers[i].wait(soon()));
  }

  Engine engine;
  Peer peer;
  Segment segment;
  Grant grant;
  Remote there;
  std::vector<Transfer> transfers;
};

/// The application's own statics, of which the first takes a while to go: the engine's threads work
/// until the process is gone, after all other statics.
struct LastStatic {
  ~LastStatic() { std::this_thread::sleep_for(30ms); }
};

constexpr int status_of_application = 42;

/// Returns from main() in the middle of traffic.
WEFT_ROLE(leaver) {
  static const LastStatic last;
  Application* application = nullptr;
  if (arguments.at(2) == "static") {
    static Application destroyed(arguments.at(0), arguments.at(1));
    application = &destroyed;
  } else {
    static auto& leaked = *new Application(arguments.at(0), arguments.at(1));
    application = &leaked;
  }
  parent.say("ready");
  parent.hear(soon());
  application->work(Deadline::in(50ms));
  return status_of_application;
}

class Exit : public testing::TestWithParam<std::tuple<std::string, std::string>> {};

TEST_P(Exit, InTheMiddleOfTrafficHasTheApplicationsStatus) {
  const auto& [provider, kind] = GetParam();
  Engine engine = must(Engine::open(config_for(provider)));
  Segment segment = must(engine.add(Memory::own(bytes)));
  Grant grant = must(segment.grant({}, Rights::read_write));
  must(engine.publish("parents", grant));
  const Pair all[] = {{0, 0, bytes}};
  for (int round = 0; round < exits(); ++round) {
    Child child("leaver", {provider, engine.address(), kind});
    const Peer peer = must(engine.accept(soon()));
    const Remote there = must(peer.lookup("childs", soon()));
    ASSERT_EQ(child.hear(), "ready");
    child.say("go");
    while (peer.up()) {
      for (const auto direction : {Direction::write, Direction::read})
        if (auto transfer = direction == Direction::write ? engine.write(segment, there, all)
                                                          : engine.read(segment, there, all))
          static_cast<void>(transfer->wait(soon()));
    }
    ASSERT_EQ(child.join(), status_of_application) << "round " << round;
  }
}

INSTANTIATE_TEST_SUITE_P(All, Exit,
                         testing::Combine(testing::ValuesIn(all_providers()),
                                          testing::Values("static", "leaked")),
                         [](const auto& info) {
                           return name_of(std::get<0>(info.param)) + "_" + std::get<1>(info.param);
                         });

}  // namespace
}  // namespace weft::test::exit_tests
