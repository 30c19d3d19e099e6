// An agent that has stopped: no call waits for it, and others go on.
#include <gmock/gmock.h>
#include <unistd.h>

#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "agent.hpp"
#include "process.hpp"

namespace weft::test {
namespace {

using namespace std::chrono_literals;
using namespace nixl::test;
using nixl::abi::BlobDescriptor;
using nixl::abi::MemoryType;
using nixl::abi::Operation;

constexpr std::size_t kib = 1024, bytes = 64 * kib;
// Of a transfer with a peer that hangs. A call that waited for the peer would take as long.
constexpr auto timeout = 3s;
// For a call that waits for nobody, on a busy machine.
constexpr auto at_once = timeout * 3 / 4;

std::string hex(const std::string& text) {
  return to_hex(std::as_bytes(std::span(text)));
}

std::string from_hex_text(const std::string& text) {
  const Blob blob = from_hex(text);
  return std::string(reinterpret_cast<const char*>(blob.data()), blob.size());
}

/// How an agent is reached, and memory of it: what libnixl's metadata tells.
struct Introduction {
  std::string info;
  std::vector<BlobDescriptor> memory;

  std::string text() const {
    std::ostringstream out;
    out << hex(info);
    for (const BlobDescriptor& each : memory)
      out << ' ' << each.address << ' ' << each.bytes << ' ' << hex(each.blob);
    return out.str();
  }
  static Introduction of(const std::string& text) {
    std::istringstream in(text);
    Introduction read;
    std::string word;
    in >> word;
    read.info = from_hex_text(word);
    for (BlobDescriptor each; in >> each.address >> each.bytes >> word;) {
      each.blob = from_hex_text(word);
      read.memory.push_back(each);
    }
    return read;
  }
  static Introduction of(const Agent& agent, const std::vector<Buffer*>& buffers) {
    Introduction made;
    EXPECT_EQ(agent.backend().getConnInfo(made.info), Status::success);
    for (const Buffer* buffer : buffers) {
      BlobDescriptor memory;
      static_cast<nixl::abi::Descriptor&>(memory) = buffer->descriptor();
      EXPECT_EQ(agent.backend().getPublicData(buffer->local, memory.blob), Status::success);
      made.memory.push_back(memory);
    }
    return made;
  }
};

/// Memory of an agent of another process, as loaded.
class Loaded {
 public:
  Loaded(Agent& agent, const BlobDescriptor& memory, const std::string& of)
      : agent_(agent), memory_(memory), of_(of) {
    EXPECT_EQ(agent.backend().loadRemoteMD(memory, MemoryType::dram, of, metadata_),
              Status::success);
  }
  ~Loaded() { EXPECT_EQ(agent_.backend().unloadMD(metadata_), Status::success); }
  Loaded(const Loaded&) = delete;
  Loaded& operator=(const Loaded&) = delete;

  std::unique_ptr<Handle> move(Operation operation, Buffer& here) const {
    nixl::abi::MetaList local, remote;
    local.list = {piece_of(here.descriptor(), here.local)};
    remote.list = {piece_of(memory_, metadata_)};
    return std::make_unique<Handle>(agent_, of_, operation, local, remote);
  }

 private:
  Agent& agent_;
  const BlobDescriptor memory_;
  const std::string of_;
  nixl::abi::Metadata* metadata_ = nullptr;
};

/// Tells how it is reached, reads memory of those that it is told of, and says so.
WEFT_ROLE(nixl_agent) {
  Agent agent(arguments.at(0), arguments.at(1));
  Buffer &first = agent.add(bytes, 1), &second = agent.add(bytes, 2);
  parent.say(Introduction::of(agent, {&first, &second}).text());
  for (;;) {
    const std::string told = parent.hear(Deadline::in(60s));
    if (told == "end") return 0;
    const auto other = Introduction::of(told);
    EXPECT_EQ(agent.backend().loadRemoteConnInfo("a", other.info), Status::success);
    const Loaded memory(agent, other.memory.at(0), "a");
    const auto read = memory.move(Operation::read, first);
    read->post();
    parent.say(read->wait() == Status::success ? "read" : "not read");
  }
}

class HungPeer : public testing::TestWithParam<const char*> {
 protected:
  HungPeer() {
    told = Introduction::of(child.hear());
    other = Introduction::of(healthy.hear());
  }
  ~HungPeer() override {
    child.signal(SIGCONT);
    for (Child* each : {&child, &healthy}) {
      each->say("end");
      EXPECT_EQ(each->join(), 0);
    }
  }
  Status load(const Introduction& of, const std::string& name) {
    return a.backend().loadRemoteConnInfo(name, of.info);
  }
  /// Runs the call; it must not wait.
  template <typename Call>
  auto quick(const char* what, Call&& call) {
    const auto begun = Clock::now();
    auto answer = call();
    EXPECT_LT(Clock::now() - begun, at_once) << what;
    return answer;
  }
  /// All that is asked of a healthy agent while another one hangs.
  void others_go_on() {
    const auto begun = Clock::now();
    ASSERT_EQ(load(other, "c"), Status::success);
    const Loaded memory(a, other.memory.at(0), "c");
    const auto write = memory.move(Operation::write, here);
    ASSERT_GE(write->post("a word"), Status::success);
    EXPECT_EQ(write->wait(), Status::success);
    EXPECT_LT(Clock::now() - begun, at_once);
  }

  Child child{"nixl_agent", {"b", GetParam()}}, healthy{"nixl_agent", {"c", GetParam()}};
  Introduction told, other;
  Agent a{"a", GetParam(), {{"timeout_ms", "3000"}, {"death_after", "4s"}}};
  Buffer &here = a.add(bytes, 3), &more = a.add(bytes, 4);
};
INSTANTIATE_TEST_SUITE_P(Providers, HungPeer, testing::Values("tcp", "shm"),
                         [](const auto& info) { return std::string(info.param); });

/// It stops after it was met, and it is not known that it has.
TEST_P(HungPeer, NoCallWaitsForOneThatWasMet) {
  ASSERT_EQ(load(told, "b"), Status::success);
  const Loaded known(a, told.memory.at(0), "b");
  const auto before = known.move(Operation::read, here);
  before->post();
  ASSERT_EQ(before->wait(), Status::success);
  child.freeze();

  EXPECT_EQ(quick("loadRemoteConnInfo", [&] { return load(told, "b"); }), Status::success);
  const auto fresh =
      quick("loadRemoteMD", [&] { return std::make_unique<Loaded>(a, told.memory.at(1), "b"); });
  const auto write = quick("prepXfer", [&] { return known.move(Operation::write, here); });
  const auto read =
      quick("prepXfer, new memory", [&] { return fresh->move(Operation::read, more); });
  ASSERT_EQ(read->prepared(), Status::success);
  const std::string note(100 * kib, 'n');
  const auto posted = Clock::now();
  EXPECT_GE(quick("postXfer", [&] { return write->post(note); }), Status::success);
  EXPECT_EQ(quick("postXfer, new memory", [&] { return read->post("new"); }), Status::in_progress);
  EXPECT_EQ(quick("checkXfer", [&] { return read->check(); }), Status::in_progress);
  for (int i = 0; i < 200; ++i)  // more than there is room for
    quick("genNotif", [&] { return a.backend().genNotif("b", note); });
  nixl::abi::Notifications arrived;
  EXPECT_EQ(quick("getNotifs", [&] { return a.backend().getNotifs(arrived); }), Status::success);
  EXPECT_EQ(quick("connect", [&] { return a.backend().connect("b"); }), Status::success);
  others_go_on();

  EXPECT_LT(read->wait(), Status::success);
  EXPECT_LT(Clock::now() - posted, 2 * timeout);
  EXPECT_TRUE(quick("releaseReqH", [&] { return read->release(); }));
  EXPECT_EQ(quick("disconnect", [&] { return a.backend().disconnect("b"); }), Status::success);
}

/// It has stopped before it is met: what is asked of it fails by its deadline, and once it goes on
/// it is met anew.
TEST_P(HungPeer, IsMetWhenItGoesOn) {
  child.freeze();
  EXPECT_EQ(quick("first", [&] { return load(told, "b"); }), Status::success);
  const auto memory =
      quick("loadRemoteMD", [&] { return std::make_unique<Loaded>(a, told.memory.at(0), "b"); });
  EXPECT_EQ(quick("again", [&] { return load(told, "b"); }), Status::success);
  EXPECT_EQ(quick("genNotif", [&] { return a.backend().genNotif("b", "word"); }), Status::success);
  {
    const auto read = quick("prepXfer", [&] { return memory->move(Operation::read, here); });
    ASSERT_EQ(quick("postXfer", [&] { return read->post(); }), Status::in_progress);
    others_go_on();
    EXPECT_EQ(read->wait(), Status::backend);
    EXPECT_TRUE(quick("releaseReqH", [&] { return read->release(); }));
  }
  const auto dropped = memory->move(Operation::read, here);
  ASSERT_EQ(dropped->post(), Status::in_progress);
  EXPECT_EQ(quick("releaseReqH, not begun", [&] { return dropped->release_once(); }),
            Status::success);
  child.signal(SIGCONT);
  Status status = Status::in_progress;
  for (const auto until = Deadline::in(20s); !until.passed() && status != Status::success;) {
    ASSERT_EQ(quick("when it goes on", [&] { return load(told, "b"); }), Status::success);
    status = memory->move(Operation::read, here)->move();
  }
  EXPECT_EQ(status, Status::success);
  EXPECT_TRUE(holds(here.bytes, 1));
}

/// Known to be dead, it is tried anew each time that it is loaded, and still nobody waits.
TEST_P(HungPeer, ThatIsTakenForDeadIsTriedAnew) {
  ASSERT_EQ(load(told, "b"), Status::success);
  const Loaded memory(a, told.memory.at(0), "b");
  const auto read = memory.move(Operation::read, here);
  read->post();
  ASSERT_EQ(read->wait(), Status::success);
  child.freeze();
  Status status = Status::success;
  for (const auto until = Deadline::in(20s);
       !until.passed() && status != Status::remote_disconnect;) {
    status = read->post();
    if (status == Status::in_progress) status = read->wait();
  }
  ASSERT_EQ(status, Status::remote_disconnect);
  for (int i = 0; i < 2; ++i)
    EXPECT_EQ(quick("loadRemoteConnInfo", [&] { return load(told, "b"); }), Status::success);
  const auto again = quick("prepXfer", [&] { return memory.move(Operation::read, here); });
  ASSERT_EQ(quick("postXfer", [&] { return again->post(); }), Status::in_progress);
  child.signal(SIGCONT);
  // The meeting that began while it stood still, or the next one.
  status = again->wait();
  for (const auto until = Deadline::in(20s); !until.passed() && status != Status::success;) {
    status = memory.move(Operation::read, here)->move();
  }
  EXPECT_EQ(status, Status::success);
}

/// The one call that waits: libnixl frees the memory after it, whatever it is told. What concerns
/// other agents goes on meanwhile.
TEST_P(HungPeer, DeregistrationWaitsWithinItsBound) {
  ASSERT_EQ(child.ask(Introduction::of(a, {&more}).text()), "read");
  child.freeze();
  std::thread others([&] { others_go_on(); });
  const auto begun = Clock::now();
  const Status status = a.deregister(more);
  EXPECT_LT(Clock::now() - begun, 10s + 5s);
  others.join();
  EXPECT_EQ(status, Status::success);
}

}  // namespace
}  // namespace weft::test
