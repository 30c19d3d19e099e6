// The process that is attacked: an engine with two segments in memory that the test maps too, one
// for the rogue and one for those who keep to the protocol.
#include <sys/resource.h>

#include <sstream>

#include "engines.hpp"
#include "process.hpp"
#include "shared_memory.hpp"

namespace weft::test {
namespace {

class Victim {
 public:
  Victim(const std::string& provider, const std::string& path)
      : memory_(path), engine_(must(Engine::open(config_for(provider, 1)))) {
    const std::size_t half = memory_.bytes().size() / 2;
    attacked_ = must(engine_.add(Memory::map(memory_.fd(), 0, half)));
    shared_ = must(engine_.add(Memory::map(memory_.fd(), half, half)));
    const Grant grant = must(shared_->grant({}, Rights::read_write));
    must(engine_.publish("shared", grant));
    shared_blob_ = grant.blob();
  }
  const Blob& shared_blob() const { return shared_blob_; }
  const std::string& address() const { return engine_.address(); }

  ///   grant RIGHTS OFFSET LENGTH...  of the attacked segment: the grant
  ///   revoke                         the grant made last
  ///   release                        the attacked segment
  ///   expect PEER ID                 waits for a signal
  ///   nothing PEER ID                whether no such signal has come
  ///   hear PEER TAG                  waits for a message: its bytes
  ///   tell PEER TAG BYTES            sends one
  std::string answer(const std::string& question) {
    std::istringstream words(question);
    std::string verb;
    words >> verb;
    if (verb == "grant") return make_grant(words);
    if (verb == "revoke")
      return must(grant_->revoke(soon())) == Revoked::quiescent ? "yes" : "quarantined";
    if (verb == "release") {
      must(attacked_->release(soon()));
      return "yes";
    }
    std::string name, bytes;
    std::uint64_t number = 0;
    words >> name >> number >> bytes;
    return speak(verb, peer_called(name), number, bytes);
  }

 private:
  std::string make_grant(std::istringstream& words) {
    unsigned rights = 0;
    words >> rights;
    std::vector<Range> ranges;
    for (Range each; words >> each.offset >> each.length;) ranges.push_back(each);
    grant_ = must(attacked_->grant(ranges, static_cast<Rights>(rights), unlimited, Keys::own));
    return to_hex(grant_->blob());
  }

  Peer peer_called(const std::string& name) const {
    for (const Peer& each : engine_.peers())
      if (each.name() == name) return each;
    throw std::runtime_error("no peer " + name);
  }

  std::string speak(const std::string& verb, const Peer& peer, std::uint64_t number,
                    const std::string& bytes) {
    if (verb == "tell") {
      must(peer.send(number, from_hex(bytes), soon()));
      return "yes";
    }
    if (verb == "hear") return to_hex(must(peer.recv(number, ~0ULL, soon())).bytes);
    Expectation expectation = must(peer.expect(number, 1));
    if (verb == "nothing") return expectation.ready() ? "no" : "yes";
    must(expectation.wait(soon()));
    return "yes";
  }

  const SharedMemory memory_;
  Engine engine_;
  std::optional<Segment> attacked_, shared_;
  std::optional<Grant> grant_;
  Blob shared_blob_;
};

/// Arguments: provider, path of the memory.
WEFT_ROLE(victim) {
  Victim victim(arguments.at(0), arguments.at(1));
  // An attack may end it, which is no news.
  const rlimit no_core{0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  parent.say(victim.address());
  parent.say(to_hex(victim.shared_blob()));
  while (true) {
    const std::string question = parent.hear(Deadline::in(120s));
    if (question == "end") return 0;
    parent.say(victim.answer(question));
  }
}

}  // namespace
}  // namespace weft::test
