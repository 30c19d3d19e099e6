#include "owner.hpp"

#include <sstream>

#include "direct_nic.hpp"
#include "namespaces.hpp"

namespace weft::test {
namespace {

/// "check SIGNALS SEED [SEED TO FROM LENGTH]..."
std::string check(std::istringstream& words, const Peer& peer, const Store& store) {
  std::uint64_t signals = 0, seed = 0;
  words >> signals >> seed;
  std::vector<Landed> pieces;
  for (Landed each; words >> each.seed >> each.to >> each.from >> each.length;)
    pieces.push_back(each);
  if (signals != 0) must(must(peer.expect(arrival, signals)).wait(soon()));
  const auto holds = store.holds(seed, std::move(pieces));
  return holds ? "yes" : holds.message();
}

int own(Line& parent, const std::vector<std::string>& arguments) {
  std::optional<int> gpu;
  if (arguments.at(1) == "gpu") gpu = gpus() > 1 ? 1 : 0;
  use_direct_nics_if_asked();
  Store store(gpu, std::stoul(arguments.at(2)));
  Engine engine = must(Engine::open(config_for(arguments.at(0))));
  Segment segment = must(engine.add(store.memory()));
  Grant grant = must(segment.grant({}, Rights::read_write));
  must(engine.publish("memory", grant));
  parent.say(engine.address());
  const Peer peer = must(engine.accept(soon()));
  while (true) {
    std::istringstream words(parent.hear(Deadline::in(120s)));
    std::string verb;
    words >> verb;
    if (verb == "check") parent.say(check(words, peer, store));
    if (verb == "fill") {
      std::uint64_t seed = 0;
      words >> seed;
      store.fill(seed);
      parent.say("filled");
    }
    if (verb == "end") {
      must(segment.release(soon()));  // or the GPU's memory would be freed under the engine
      return 0;
    }
  }
}

/// PROVIDER gpu|host BYTES NAMESPACES
WEFT_ROLE(gpu_owner) {
  const int namespaces = std::stoi(arguments.at(3));
  if (namespaces == 0) return own(parent, arguments);
  const int status = run_apart(namespaces, [&] { return own(parent, arguments); });
  if (status == refused_apart) parent.say("refused");
  return status;
}

}  // namespace

Owner::Owner(const std::string& provider, bool gpu, std::size_t bytes, int namespaces)
    : child_("gpu_owner",
             {provider, gpu ? "gpu" : "host", std::to_string(bytes), std::to_string(namespaces)}) {}

bool Owner::begins() {
  address_ = child_.hear();
  if (address_ == "refused") child_.join();
  return address_ != "refused";
}

Remote Owner::meet(Engine& engine) {
  if (address_.empty()) address_ = child_.hear();
  const Peer peer = must(engine.connect(address_, soon()));
  return must(peer.lookup("memory", soon()));
}

void Owner::fill(std::uint64_t seed) {
  EXPECT_EQ(child_.ask("fill " + std::to_string(seed)), "filled");
}

testing::AssertionResult Owner::holds(std::uint64_t seed, const std::vector<Landed>& pieces,
                                      std::uint64_t signals) {
  std::ostringstream question;
  question << "check " << signals << ' ' << seed;
  for (const Landed& each : pieces)
    question << ' ' << each.seed << ' ' << each.to << ' ' << each.from << ' ' << each.length;
  const std::string answer = child_.ask(question.str());
  if (answer == "yes") return testing::AssertionSuccess();
  return testing::AssertionFailure() << "in the other process: " << answer;
}

void Owner::end() {
  child_.say("end");
  EXPECT_EQ(child_.join(), 0);
}

}  // namespace weft::test
