// The backend as libnixl drives it, between two agents of this process.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <fstream>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "agent.hpp"

namespace weft::nixl::test {
namespace {

using abi::Operation;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;
using weft::test::holds;
using weft::test::same_bytes;

constexpr std::size_t kib = 1024, mib = 1024 * kib;

class BackendTest : public testing::TestWithParam<const char*> {
 protected:
  Agent a{"a", GetParam()}, b{"b", GetParam()};

  void meet() {
    ASSERT_EQ(a.load(b), Status::success);
    ASSERT_EQ(b.load(a), Status::success);
  }
};
INSTANTIATE_TEST_SUITE_P(Providers, BackendTest, testing::Values("tcp", "shm"),
                         [](const auto& info) { return std::string(info.param); });

std::vector<Piece> whole(Buffer& local, const Buffer& remote) {
  return {{&local, 0, &remote, 0, local.bytes.size()}};
}

/// Memory whose pages can be taken away: they are a file's, which tells how many there are.
class MappedFile {
 public:
  explicit MappedFile(std::size_t size) : fd_(memfd_create("pages", 0)), size_(size) {
    EXPECT_EQ(ftruncate(fd_, static_cast<off_t>(size)), 0);
    address_ = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0);
    EXPECT_NE(address_, MAP_FAILED);
  }
  ~MappedFile() {
    munmap(address_, size_);
    close(fd_);
  }
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::span<std::byte> bytes() const { return {static_cast<std::byte*>(address_), size_}; }
  /// Gives all pages back; the blocks that are left.
  blkcnt_t drop() const {
    EXPECT_EQ(
        fallocate(fd_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, static_cast<off_t>(size_)),
        0);
    struct stat status {};
    EXPECT_EQ(fstat(fd_, &status), 0);
    return status.st_blocks;
  }

 private:
  const int fd_;
  const std::size_t size_;
  void* address_ = MAP_FAILED;
};

/// Of this process, by itself or by drivers: pages that can't be given back.
std::size_t locked_bytes() {
  std::ifstream status("/proc/self/status");
  std::size_t sum = 0;
  for (std::string word; status >> word;)
    if (std::size_t kilobytes = 0; (word == "VmLck:" || word == "VmPin:") && status >> kilobytes)
      sum += kilobytes * kib;
  return sum;
}

TEST_P(BackendTest, WritesAndReads) {
  Buffer &here = a.add(3 * mib + 17, 1), &there = b.add(3 * mib + 17, 2);
  meet();
  Handle write(a, b, Operation::write, whole(here, there));
  EXPECT_GE(write.post(), Status::success);
  ASSERT_EQ(write.wait(), Status::success);
  EXPECT_TRUE(holds(there.bytes, 1));
  weft::test::fill(there.bytes, 3);
  Handle read(a, b, Operation::read, whole(here, there));
  read.post();
  ASSERT_EQ(read.wait(), Status::success);
  EXPECT_TRUE(holds(here.bytes, 3));
}

TEST_P(BackendTest, AHandleThatWasNotPostedSaysSo) {
  Buffer &here = a.add(kib, 1), &there = b.add(kib, 2);
  meet();
  Handle write(a, b, Operation::write, whole(here, there));
  EXPECT_EQ(write.check(), Status::not_posted);
}

TEST_P(BackendTest, PostsTheSameHandleAgainAndAgain) {
  Buffer &here = a.add(64 * kib, 1), &there = b.add(64 * kib, 2);
  meet();
  Handle write(a, b, Operation::write, whole(here, there));
  for (std::uint64_t seed = 10; seed < 110; ++seed) {
    weft::test::fill(here.bytes, seed);
    write.post(std::to_string(seed));
    ASSERT_EQ(write.wait(), Status::success);
    EXPECT_THAT(b.notifications(), ElementsAre(Pair("a", std::to_string(seed))));
    ASSERT_TRUE(holds(there.bytes, seed));
  }
}

TEST_P(BackendTest, WhatIsUnderWayCantBePostedAgain) {
  Buffer &here = a.add(256 * mib, 1), &there = b.add(256 * mib, 2);
  meet();
  Handle write(a, b, Operation::write, whole(here, there));
  const bool under_way = write.post() == Status::in_progress;
  EXPECT_TRUE(!under_way || write.post() == Status::repost_active);
  EXPECT_EQ(write.wait(), Status::success);
}

/// Pages of many layers, each layer a registration of its own.
struct Layers {
  static constexpr std::size_t count = 24, pages = 16, page = 4 * kib;
  std::vector<Buffer*> here, there;
  Layers(Agent& a, Agent& b, std::uint64_t seed) {
    for (std::size_t i = 0; i < count; ++i) {
      here.push_back(&a.add(pages * page, seed + i));
      there.push_back(&b.add(pages * page, 1000 + i));
    }
  }
  /// Page by page, each through all layers, in another order on the other side.
  std::vector<Piece> pieces() const {
    std::vector<Piece> all;
    for (std::size_t i = 0; i < pages; ++i)
      for (std::size_t layer = 0; layer < count; ++layer)
        all.push_back({here[layer], i * page, there[layer], (i * 7 + 3) % pages * page, page});
    return all;
  }
  /// Where they are written to.
  testing::AssertionResult arrived(std::uint64_t seed) const {
    for (std::size_t layer = 0; layer < count; ++layer)
      for (std::size_t i = 0; i < pages; ++i) {
        const auto at = std::span(there[layer]->bytes).subspan((i * 7 + 3) % pages * page, page);
        if (auto right = holds(at, seed + layer, i * page); !right) return right;
      }
    return testing::AssertionSuccess();
  }
};

TEST_P(BackendTest, OneNotificationComesAfterAllRegistrations) {
  const Layers layers(a, b, 50);
  meet();
  Handle write(a, b, Operation::write, layers.pieces());
  for (int round = 0; round < 20; ++round) {
    for (Buffer* buffer : layers.there) weft::test::fill(buffer->bytes, 7);
    write.post("all");
    // Before it is known here that it has ended.
    ASSERT_THAT(b.notifications(), ElementsAre(Pair("a", "all")));
    ASSERT_TRUE(layers.arrived(50));
    ASSERT_EQ(write.wait(), Status::success);
  }
}

TEST_P(BackendTest, TellsTheOwnerOfWhatWasRead) {
  Buffer &here = a.add(mib, 1), &there = b.add(mib, 2);
  meet();
  Handle read(a, b, Operation::read, whole(here, there));
  read.post("was read");
  EXPECT_THAT(b.notifications(), ElementsAre(Pair("a", "was read")));
  EXPECT_EQ(read.wait(), Status::success);
  EXPECT_TRUE(holds(here.bytes, 2));
}

TEST_P(BackendTest, NotificationsHaveAnyLength) {
  Buffer &here = a.add(4 * kib, 1), &there = b.add(4 * kib, 2);
  meet();
  Handle write(a, b, Operation::write, whole(here, there));
  for (const std::size_t length : {0UL, 1UL, 8 * kib - 1, 8 * kib, 8 * kib + 1, mib, 5 * mib}) {
    std::string bytes(length, '\0');
    for (std::size_t i = 0; i < length; ++i) bytes[i] = static_cast<char>(i * 31 + i / 256);
    write.post(bytes);
    EXPECT_EQ(write.wait(), Status::success);
    EXPECT_TRUE(b.notifications() == (abi::Notifications{{"a", bytes}})) << length;
    ASSERT_EQ(b.backend().genNotif("a", bytes), Status::success);
    EXPECT_TRUE(a.notifications() == (abi::Notifications{{"b", bytes}})) << length;
  }
}

TEST_P(BackendTest, NoNotificationIsLostOrDoubled) {
  constexpr int count = 3000;
  meet();
  std::vector<int> seen(count);
  std::thread sender([&] {
    for (int i = 0; i < count; ++i)
      EXPECT_EQ(a.backend().genNotif("b", std::to_string(i)), Status::success);
  });
  for (const auto& [from, bytes] : b.notifications(count)) {
    EXPECT_EQ(from, "a");
    ++seen[std::stoul(bytes)];
  }
  sender.join();
  for (int i = 0; i < count; ++i) EXPECT_EQ(seen[i], 1) << i;
  abi::Notifications more;
  b.backend().getNotifs(more);
  EXPECT_THAT(more, IsEmpty());
}

TEST_P(BackendTest, WhatASenderSaidBeforeItWentIsThere) {
  meet();
  {
    Agent c("c", GetParam());
    ASSERT_EQ(c.load(b), Status::success);
    for (int i = 0; i < 10; ++i) ASSERT_EQ(c.backend().genNotif("b", "word"), Status::success);
    ASSERT_EQ(b.notifications().front().first, "c");
    for (int i = 0; i < 10; ++i) ASSERT_EQ(c.backend().genNotif("b", "last"), Status::success);
    // A transfer's signal follows them on its way, so that they have come when it is done.
    Buffer& source = c.add(kib, 1);
    Buffer& sink = b.add(kib, 2);
    c.unload(b);
    ASSERT_EQ(c.load(b), Status::success);
    Handle write(c, b, Operation::write, whole(source, sink));
    write.post("done");
    ASSERT_EQ(write.wait(), Status::success);
  }
  std::size_t last = 0, done = 0;
  for (const auto& [from, bytes] : b.notifications(11)) {
    last += bytes == "last" ? 1 : 0;
    done += bytes == "done" ? 1 : 0;
  }
  EXPECT_EQ(last, 10U);
  EXPECT_EQ(done, 1U);
}

TEST_P(BackendTest, AFailedTransferNotifiesNobody) {
  Layers layers(a, b, 50);
  meet();
  Handle write(a, b, Operation::write, layers.pieces());
  ASSERT_EQ(b.deregister(*layers.there[Layers::count / 2]), Status::success);
  Status status = write.post("never");
  if (status == Status::in_progress) status = write.wait();
  EXPECT_EQ(status, Status::not_found);
  ASSERT_EQ(a.backend().genNotif("b", "afterwards"), Status::success);
  EXPECT_THAT(b.notifications(), ElementsAre(Pair("a", "afterwards")));
}

TEST_P(BackendTest, ReleaseUnderWaySucceedsWhenTheMemoryIsQuiet) {
  constexpr std::size_t size = 128 * mib;
  Buffer &here = a.add(size, 1), &there = b.add(size, 2);
  Buffer &small_here = a.add(kib, 3), &small_there = b.add(kib, 4);
  meet();
  for (int round = 0; round < 3; ++round) {
    Handle read(a, b, Operation::read, whole(here, there));
    read.post();
    ASSERT_TRUE(read.release());
    std::fill(here.bytes.begin(), here.bytes.end(), std::byte{0x5a});
    // Traffic behind it has come by the time that the memory is looked at.
    Handle behind(a, b, Operation::read, whole(small_here, small_there));
    behind.post();
    ASSERT_EQ(behind.wait(), Status::success);
    ASSERT_TRUE(same_bytes(here.bytes, std::vector(size, std::byte{0x5a})));
  }
}

TEST_P(BackendTest, DeregisteredMemoryIsQuiet) {
  constexpr std::size_t size = 128 * mib;
  Buffer &here = a.add(size, 1), &there = b.add(size, 2);
  meet();
  Handle write(a, b, Operation::write, whole(here, there));
  const Status posted = write.post();
  ASSERT_EQ(b.deregister(there), Status::success);
  std::fill(there.bytes.begin(), there.bytes.end(), std::byte{0x5a});
  const Status ended = write.wait();
  EXPECT_TRUE(posted != Status::in_progress || ended == Status::success ||
              ended == Status::not_found);
  ASSERT_TRUE(same_bytes(there.bytes, std::vector(size, std::byte{0x5a})));
}

/// A server's sleep mode: it deregisters, gives the pages back, and registers others at the same
/// address when it wakes up.
TEST_P(BackendTest, DeregisteredMemoryHoldsNoPage) {
  constexpr std::size_t size = 4 * mib;
  Buffer& here = a.add(size, 1);
  const MappedFile pages(size);
  const std::size_t locked = locked_bytes();
  Buffer& asleep = b.adopt(pages.bytes(), 2);
  meet();
  Handle before(a, b, Operation::read, {{&here, 0, &asleep, 0, size}});
  before.post();
  ASSERT_EQ(before.wait(), Status::success);
  EXPECT_TRUE(holds(here.bytes, 2));
  ASSERT_EQ(b.deregister(asleep), Status::success);
  EXPECT_EQ(locked_bytes(), locked);
  EXPECT_EQ(pages.drop(), 0) << "bytes that somebody holds";

  Buffer& awake = b.adopt(pages.bytes(), 3);
  weft::test::fill(here.bytes, 4);
  Handle stale(a, b, Operation::read, {{&here, 0, &asleep, 0, size}});
  Status status = stale.prepared();
  if (status == Status::success) status = stale.post();
  EXPECT_EQ(status == Status::in_progress ? stale.wait() : status, Status::not_found);
  before.post();
  EXPECT_EQ(before.wait(), Status::not_found);
  EXPECT_TRUE(holds(here.bytes, 4)) << "of the pages behind the address now";
  ASSERT_EQ(a.load(b), Status::success);
  Handle after(a, b, Operation::read, {{&here, 0, &awake, 0, size}});
  after.post();
  ASSERT_EQ(after.wait(), Status::success);
  EXPECT_TRUE(holds(here.bytes, 3));
}

TEST_P(BackendTest, OwnMemoryIsDeregisteredUnderWay) {
  constexpr std::size_t size = 128 * mib;
  Buffer &here = a.add(size, 1), &there = b.add(size, 2);
  meet();
  Handle read(a, b, Operation::read, whole(here, there));
  read.post();
  ASSERT_EQ(a.deregister(here), Status::success);
  std::fill(here.bytes.begin(), here.bytes.end(), std::byte{0x5a});
  EXPECT_NE(read.wait(), Status::in_progress);
  ASSERT_TRUE(same_bytes(here.bytes, std::vector(size, std::byte{0x5a})));
}

TEST_P(BackendTest, ConnectsAgain) {
  Buffer &here = a.add(mib, 1), &there = b.add(mib, 2);
  meet();
  for (int round = 0; round < 5; ++round) {
    a.unload(b);
    EXPECT_EQ(a.backend().genNotif("b", "lost"), Status::not_found);
    ASSERT_EQ(a.backend().connect("b"), Status::success);
    ASSERT_EQ(a.load(b), Status::success);
    Handle write(a, b, Operation::write, whole(here, there));
    write.post("again");
    ASSERT_EQ(write.wait(), Status::success);
    EXPECT_THAT(b.notifications(), ElementsAre(Pair("a", "again")));
  }
}

TEST_P(BackendTest, DisconnectsInTheMiddle) {
  Buffer &here = a.add(128 * mib, 1), &there = b.add(128 * mib, 2);
  meet();
  Handle write(a, b, Operation::write, whole(here, there));
  write.post();
  a.unload(b);
  EXPECT_NE(write.wait(), Status::in_progress);
  // The other side's way here is its own.
  Handle back(b, a, Operation::read, whole(there, here));
  back.post();
  EXPECT_EQ(back.wait(), Status::success);
}

TEST_P(BackendTest, APeerThatClosesIsDisconnected) {
  Buffer& here = a.add(mib, 1);
  auto c = std::make_unique<Agent>("c", GetParam());
  Buffer& there = c->add(mib, 2);
  ASSERT_EQ(a.load(*c), Status::success);
  Handle write(a, *c, Operation::write, whole(here, there));
  write.post();
  ASSERT_EQ(write.wait(), Status::success);
  abi::Metadata* metadata = nullptr;
  abi::BlobDescriptor memory;
  static_cast<abi::Descriptor&>(memory) = there.descriptor();
  ASSERT_EQ(c->backend().getPublicData(there.local, memory.blob), Status::success);
  ASSERT_EQ(a.backend().loadRemoteMD(memory, abi::MemoryType::dram, "c", metadata),
            Status::success);
  a.forget(*c);
  c.reset();
  EXPECT_EQ(write.post(), Status::remote_disconnect);
  // It is tried anew, behind the call, and whoever needs it is told.
  ASSERT_EQ(a.backend().connect("c"), Status::success);
  {
    abi::MetaList local, remote;
    local.list = {piece_of(here.descriptor(), here.local)};
    remote.list = {piece_of(memory, metadata)};
    Handle again(a, "c", Operation::write, local, remote);
    EXPECT_EQ(again.move(), Status::backend);
  }
  EXPECT_EQ(a.backend().genNotif("c", "never"), Status::backend);
  EXPECT_EQ(a.backend().unloadMD(metadata), Status::success);
}

TEST_P(BackendTest, TransfersWithinAnAgent) {
  Buffer &from = a.add(mib + 3, 1), &to = a.add(mib + 3, 2);
  Handle write(a, a, Operation::write, whole(from, to));
  ASSERT_EQ(write.prepared(), Status::success);
  write.post("to myself");
  ASSERT_EQ(write.wait(), Status::success);
  EXPECT_THAT(a.notifications(), ElementsAre(Pair("a", "to myself")));
  EXPECT_TRUE(holds(to.bytes, 1));
  ASSERT_EQ(a.backend().genNotif("a", "a word"), Status::success);
  EXPECT_THAT(a.notifications(), ElementsAre(Pair("a", "a word")));
}

TEST_P(BackendTest, ThreadsPostTheirOwn) {
  constexpr std::size_t threads = 4, size = 64 * kib;
  std::array<Buffer*, threads> here, there;
  for (std::size_t i = 0; i < threads; ++i) {
    here[i] = &a.add(size, 0);
    there[i] = &b.add(size, 0);
  }
  meet();
  std::vector<std::thread> running;
  for (std::size_t i = 0; i < threads; ++i)
    running.emplace_back([&, i] {
      Handle write(a, b, Operation::write, whole(*here[i], *there[i]));
      for (std::uint64_t round = 1; round <= 100; ++round) {
        weft::test::fill(here[i]->bytes, 1000 * i + round);
        write.post("thread");
        ASSERT_EQ(write.wait(), Status::success);
        ASSERT_TRUE(holds(there[i]->bytes, 1000 * i + round));
      }
    });
  EXPECT_EQ(b.notifications(threads * 100).size(), threads * 100);
  for (std::thread& each : running) each.join();
}

TEST_P(BackendTest, AHundredThousandDescriptorsTakeTimeInProportion) {
  constexpr std::size_t count = 100'000, piece = 64;
  Buffer &here = a.add(count * piece, 1), &there = b.add(2 * count * piece, 2);
  meet();
  const auto time = [&](std::size_t pieces) {
    std::vector<Piece> scattered;
    for (std::size_t i = 0; i < pieces; ++i)
      scattered.push_back({&here, i * piece, &there, 2 * i * piece, piece});
    const auto begun = Clock::now();
    Handle write(a, b, Operation::write, scattered);
    write.post();
    EXPECT_EQ(write.wait(), Status::success);
    const auto took = Clock::now() - begun;
    for (std::size_t i = 0; i < pieces; ++i)
      EXPECT_TRUE(holds(std::span(there.bytes).subspan(2 * i * piece, piece), 1, i * piece));
    return took;
  };
  time(1000);
  const auto tenth = time(count / 10), all = time(count);
  // Ten times as much if it is in proportion; a machine that others use may take more.
  EXPECT_LT(all, 40 * tenth + std::chrono::milliseconds(200));
}

TEST_P(BackendTest, BadCallsAreRefused) {
  Buffer &here = a.add(mib, 1), &there = b.add(mib, 2);
  meet();
  EXPECT_EQ(Handle(a, b, Operation::write, {}).prepared(), Status::invalid_param);
  EXPECT_EQ(Handle(a, b, Operation::write, {{&here, 1, &there, 0, mib}}).prepared(),
            Status::invalid_param);
  EXPECT_EQ(Handle(a, b, Operation::write, {{&here, 0, &there, 1, mib}}).prepared(),
            Status::invalid_param);
  Buffer unknown(kib);
  EXPECT_EQ(Handle(a, b, Operation::write, {{&unknown, 0, &there, 0, kib}}).prepared(),
            Status::invalid_param);
  EXPECT_EQ(a.backend().loadRemoteConnInfo("x", "not of this plug-in"), Status::mismatch);
  EXPECT_EQ(a.backend().connect("x"), Status::not_found);
  EXPECT_EQ(a.backend().genNotif("x", ""), Status::not_found);
  abi::BlobDescriptor memory;
  memory.blob = "no grant";
  abi::Metadata* out = nullptr;
  EXPECT_EQ(a.backend().loadRemoteMD(memory, abi::MemoryType::dram, "b", out),
            Status::invalid_param);
  static_cast<abi::Descriptor&>(memory) = unknown.descriptor();
  EXPECT_EQ(a.backend().registerMem(memory, abi::MemoryType::vram, out), Status::invalid_param);
  EXPECT_EQ(a.backend().registerMem(memory, abi::MemoryType::object, out), Status::not_supported);
}

TEST(Creation, RefusesWhatItCantKeep) {
  const auto with = [](const char* name, const char* value) {
    return abi::Parameters{{"unchecked_nixl", "true"}, {name, value}};
  };
  EXPECT_THAT(refusal(with("nonsense", "1")), HasSubstr("'nonsense' is no option"));
  EXPECT_THAT(refusal(with("window", "many")), HasSubstr("window says 'many'"));
  EXPECT_THAT(refusal(with("timeout_ms", "0")), HasSubstr("timeout_ms says '0'"));
  EXPECT_THAT(refusal(with("policy", "providers=fi_shm")), HasSubstr("policy"));
  EXPECT_THAT(refusal(with("listen", "")), HasSubstr("has to listen"));
}

TEST(Creation, RefusesAnUnknownLibrary) {
  EXPECT_THAT(refusal({}), testing::AllOf(HasSubstr("its binary interface was checked in"),
                                          HasSubstr("unchecked_nixl=true")));
}

TEST(Plugin, SaysWhatItIs) {
  EXPECT_EQ(plugin().api_version, 1);
  EXPECT_STREQ(plugin().name(), "WEFT");
  EXPECT_THAT(plugin().memory_types(), ElementsAre(abi::MemoryType::dram, abi::MemoryType::vram,
                                                   abi::MemoryType::block, abi::MemoryType::file));
  for (const auto& [name, value] : plugin().options()) EXPECT_FALSE(name.empty());
}

}  // namespace
}  // namespace weft::nixl::test
