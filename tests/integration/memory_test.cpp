// All kinds of memory, on both sides.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <future>
#include <memory>
#include <optional>
#include <utility>

#include "engines.hpp"
#include "process.hpp"

namespace weft::test::memory_tests {
namespace {

constexpr std::size_t bytes = 2 << 20;

class MemoryOver : public testing::TestWithParam<Variant> {
 protected:
  Couple pair = couple(config_for(GetParam()));

  void expect_works(const Memory& local, const Memory& remote) {
    Board board(pair, local, remote);
    const Pair pieces[] = {{1, 3, 1'000'000}, {1'500'000, 1'200'001, 500'000}};
    board.expect_moved(Direction::write, pieces);
    board.repaint();
    board.expect_moved(Direction::read, pieces);
  }
};

TEST_P(MemoryOver, Own) {
  Segment segment = must(pair.a.add(Memory::own(bytes)));
  const Blob zeros(bytes);
  EXPECT_TRUE(same_bytes(bytes_of(segment), zeros));
  EXPECT_EQ(segment.fd(), -1);
  EXPECT_EQ(segment.place().kind, MemoryKind::host);
  EXPECT_EQ(segment.place().device, -1);
  expect_works(Memory::own(bytes), Memory::own(bytes));
}

TEST_P(MemoryOver, Shared) {
  expect_works(Memory::shared(bytes), Memory::own(bytes));
  expect_works(Memory::own(bytes), Memory::shared(bytes));
}

TEST_P(MemoryOver, Huge) {
  auto segment = pair.a.add(Memory::huge(bytes - 5));
  if (!segment) {
    ASSERT_TRUE(fails_with(segment, Code::out_of_memory));
    GTEST_SKIP() << segment.error().to_string();
  }
  EXPECT_EQ(segment->size(), bytes) << "whole pages";
  must(segment->release(soon()));
  expect_works(Memory::huge(bytes), Memory::own(bytes));
}

TEST_P(MemoryOver, Adopted) {
  // With a frame that must stay as it is, at an odd address.
  constexpr std::size_t frame = 777;
  Blob mine = pattern(bytes + 2 * frame, 4), yours = pattern(bytes + 2 * frame, 5);
  {
    Board board(pair, Memory::adopt(mine.data() + frame, bytes),
                Memory::adopt(yours.data() + frame, bytes));
    EXPECT_EQ(board.local.data(), mine.data() + frame);
    const Pair all[] = {{0, 0, bytes}};
    board.expect_moved(Direction::write, all);
    board.repaint();
    board.expect_moved(Direction::read, all);
    EXPECT_TRUE(succeeds(board.local.release(soon())));
    EXPECT_TRUE(succeeds(board.remote.release(soon())));
    for (Blob* memory : {&mine, &yours}) {
      const std::uint64_t seed = memory == &mine ? 4 : 5;
      EXPECT_TRUE(holds(Bytes(*memory).first(frame), seed));
      EXPECT_TRUE(holds(Bytes(*memory).last(frame), seed, bytes + frame));
    }
  }
  // Released, so the memory is the caller's again, and may even go.
  fill(mine, 6);
  Blob().swap(yours);
  EXPECT_TRUE(holds(mine, 6));
}

TEST_P(MemoryOver, AdoptedOnTheStack) {
  std::byte mine[5000];
  fill(mine, 8);
  Segment local = must(pair.a.add(Memory::adopt(mine, sizeof mine)));
  Segment remote = must(pair.b.add(Memory::own(sizeof mine)));
  Grant grant = must(remote.grant({}, Rights::write));
  const Pair all[] = {{0, 0, sizeof mine}};
  ASSERT_TRUE(
      succeeds(must(pair.a.write(local, must(pair.a.import(grant.blob())), all)).wait(soon())));
  must(local.release(soon()));
  EXPECT_TRUE(holds(bytes_of(remote), 8));
}

/// Memory that tells when it goes.
struct Owned {
  Blob blob;
  std::promise<void>& gone;
  ~Owned() { gone.set_value(); }
};

/// The program forgets the memory: it stays for those that may still touch it.
TEST_P(MemoryOver, AdoptedWithItsOwner) {
  std::promise<void> mine_goes, yours_goes;
  std::future<void> mine_gone = mine_goes.get_future(), yours_gone = yours_goes.get_future();
  const auto add = [](Engine& engine, Blob blob, std::promise<void>& goes) {
    const std::shared_ptr<Owned> owner(new Owned{std::move(blob), goes});
    return must(engine.add(Memory::adopt(owner->blob.data(), bytes, owner)));
  };
  std::optional<Segment> local = add(pair.a, pattern(bytes, 3), mine_goes);
  std::optional<Segment> remote = add(pair.b, Blob(bytes), yours_goes);
  std::byte* const yours = remote->data();
  std::optional<Grant> grant = must(remote->grant({}, Rights::write));
  remote.reset();
  const Pair all[] = {{0, 0, bytes}};
  {
    const Remote there = must(pair.a.import(grant->blob()));
    Transfer transfer = must(pair.a.write(*local, there, all));
    local.reset();
    ASSERT_TRUE(succeeds(transfer.wait_quiescent(soon())));
  }
  EXPECT_EQ(mine_gone.wait_until(soon().when()), std::future_status::ready);
  ASSERT_NE(yours_gone.wait_for(0s), std::future_status::ready) << "the grant holds";
  EXPECT_TRUE(holds({yours, bytes}, 3));
  EXPECT_EQ(must(grant->revoke(soon())), Revoked::quiescent);
  grant.reset();
  EXPECT_EQ(yours_gone.wait_until(soon().when()), std::future_status::ready);
}

TEST_P(MemoryOver, SeveralSegmentsOverTheSameBytes) {
  Blob mine = pattern(10'000, 1);
  Segment whole = must(pair.a.add(Memory::adopt(mine.data(), mine.size())));
  Segment part = must(pair.a.add(Memory::adopt(mine.data() + 1000, 5000)));
  Segment remote = must(pair.b.add(Memory::own(10'000)));
  const Remote there = must(pair.a.import(must(remote.grant({}, Rights::write)).blob()));
  const Pair all[] = {{0, 0, 10'000}}, some[] = {{0, 1000, 5000}};
  Transfer first = must(pair.a.write(whole, there, all));
  must(first.wait(soon()));
  must(whole.release(soon()));
  // The other one does not mind.
  fill(mine, 2);
  must(must(pair.a.write(part, there, some)).wait(soon()));
  EXPECT_TRUE(holds(bytes_of(remote).subspan(1000, 5000), 2, 1000));
  EXPECT_TRUE(holds(bytes_of(remote).first(1000), 1));
  EXPECT_TRUE(holds(bytes_of(remote).last(4000), 1, 6000));
}

TEST_P(MemoryOver, AddressesThatAreUsedAgain) {
  // The same addresses with other pages behind them: a registration kept too long would show.
  void* place = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(place, MAP_FAILED);
  Segment remote = must(pair.b.add(Memory::own(bytes)));
  Grant grant = must(remote.grant({}, Rights::read_write));
  const Remote there = must(pair.a.import(grant.blob()));
  const Pair all[] = {{0, 0, bytes}};
  for (std::uint64_t round = 0; round < 10; ++round) {
    ASSERT_EQ(
        mmap(place, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
        place);
    Segment local = must(pair.a.add(Memory::adopt(place, bytes)));
    fill(bytes_of(local), round);
    must(must(pair.a.write(local, there, all)).wait(soon()));
    ASSERT_TRUE(holds(bytes_of(remote), round));
    fill(bytes_of(remote), 100 + round);
    must(must(pair.a.read(local, there, all)).wait(soon()));
    ASSERT_TRUE(holds(bytes_of(local), 100 + round));
    must(local.release(soon()));
  }
  munmap(place, bytes);
}

/// Pages that must not be written: a byte that comes there would end the process.
class ReadOnlyPages {
 public:
  explicit ReadOnlyPages(std::uint64_t seed)
      : file_(memfd_create("weft-test-read-only", MFD_CLOEXEC | MFD_ALLOW_SEALING)) {
    const Blob content = pattern(bytes, seed);
    // Sealed, so that peers map it.
    if (write(file_, content.data(), bytes) != static_cast<ssize_t>(bytes) ||
        fcntl(file_, F_ADD_SEALS, F_SEAL_SHRINK) != 0)
      throw std::runtime_error("a memfd can't be written");
    address_ = mmap(nullptr, bytes, PROT_READ, MAP_SHARED, file_, 0);
  }
  ~ReadOnlyPages() {
    munmap(address_, bytes);
    close(file_);
  }
  void* address() const { return address_; }
  /// The same file, opened for reading only.
  int open_for_reading() const {
    return open(("/proc/self/fd/" + std::to_string(file_)).c_str(), O_RDONLY | O_CLOEXEC);
  }

 private:
  const int file_;
  void* address_;
};

TEST_P(MemoryOver, ReadOnlyMemoryIsASource) {
  const ReadOnlyPages pages(7);
  const int file = pages.open_for_reading();
  ASSERT_GE(file, 0);
  const Pair all[] = {{0, 0, bytes}};
  for (const Memory& memory :
       {Memory::adopt(pages.address(), bytes).read_only(), Memory::map(file, 0, bytes)}) {
    Segment source = must(pair.a.add(memory));
    Segment target = must(pair.b.add(Memory::own(bytes)));
    Grant to_write = must(target.grant({}, Rights::read_write));
    const Remote written = must(pair.a.import(to_write.blob()));
    must(must(pair.a.write(source, written, all)).wait(soon()));
    EXPECT_TRUE(holds(bytes_of(target), 7));
    fill(bytes_of(target), 8);
    Grant to_read = must(source.grant({}, Rights::read));
    const Remote read = must(pair.b.import(to_read.blob()));
    must(must(pair.b.read(target, read, all)).wait(soon()));
    EXPECT_TRUE(holds(bytes_of(target), 7));

    EXPECT_TRUE(fails_with(pair.a.read(source, written, all), Code::permission_denied));
    for (const Rights rights : {Rights::write, Rights::read_write})
      EXPECT_TRUE(fails_with(source.grant({}, rights), Code::permission_denied));
    EXPECT_TRUE(fails_with(pair.b.write(target, read, all), Code::permission_denied));
    must(source.release(soon()));
  }
  close(file);
  EXPECT_TRUE(fails_with(pair.a.add(Memory::own(bytes).read_only()), Code::invalid_argument));
}

INSTANTIATE_TEST_SUITE_P(All, MemoryOver, testing::ValuesIn(all_variants()),
                         [](const auto& info) { return name_of(info.param); });

/// Maps another process's descriptor, checks stream 1 there, and answers with stream 2 in place.
WEFT_ROLE(mapper) {
  const int descriptor = open(arguments.at(0).c_str(), O_RDWR | O_CLOEXEC);
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  if (memory == MAP_FAILED) return 3;
  const std::span<std::byte> mapped(static_cast<std::byte*>(memory), bytes);
  parent.say("mapped");
  parent.hear(soon());
  if (!holds(mapped, 1)) return 2;
  fill(mapped, 2);
  parent.say("answered");
  parent.hear(soon());
  return 0;
}

/// Makes a segment of another process's descriptor, and grants it.
WEFT_ROLE(lender) {
  const int descriptor = open(arguments.at(1).c_str(), O_RDWR | O_CLOEXEC);
  Engine engine = must(Engine::open(config_for(arguments.at(0))));
  Segment segment = must(engine.add(Memory::map(descriptor, 4096, bytes - 4096)));
  close(descriptor);
  Grant grant = must(segment.grant({}, Rights::read_write));
  must(engine.publish("lent", grant));
  parent.say(engine.address());
  parent.hear(soon());
  return 0;
}

std::string path_of(int descriptor) {
  return "/proc/" + std::to_string(getpid()) + "/fd/" + std::to_string(descriptor);
}

class SharedMemory : public testing::TestWithParam<std::string> {};

TEST_P(SharedMemory, IsMappedByAnotherProcess) {
  Couple pair = couple(config_for(GetParam()));
  Board board(pair, Memory::own(bytes), Memory::shared(bytes));
  ASSERT_GE(board.remote.fd(), 0);
  EXPECT_NE(fcntl(board.remote.fd(), F_GETFD) & FD_CLOEXEC, 0);
  Child child("mapper", {path_of(board.remote.fd())});
  ASSERT_EQ(child.hear(), "mapped");
  fill(bytes_of(board.local), 1);
  const Pair all[] = {{0, 0, bytes}};
  must(must(pair.a.write(board.local, board.there, all)).wait(soon()));
  ASSERT_EQ(child.ask("look"), "answered");
  must(must(pair.a.read(board.local, board.there, all)).wait(soon()));
  EXPECT_TRUE(holds(bytes_of(board.local), 2));
  child.say("end");
  EXPECT_EQ(child.join(), 0);
}

TEST_P(SharedMemory, OfAnotherProcessMakesASegment) {
  Engine engine = must(Engine::open(config_for(GetParam())));
  Segment seen = must(engine.add(Memory::shared(bytes)));
  Segment local = must(engine.add(Memory::own(bytes)));
  fill(bytes_of(seen), 1);
  fill(bytes_of(local), 2);
  Child child("lender", {GetParam(), path_of(seen.fd())});
  const Peer peer = must(engine.connect(child.hear(), soon()));
  const Remote lent = must(peer.lookup("lent", soon()));
  EXPECT_EQ(lent.segment_size(), bytes - 4096);
  const Pair some[] = {{5, 7, 1'000'000}};
  must(must(engine.write(local, lent, some)).wait(soon()));
  EXPECT_TRUE(holds(bytes_of(seen).first(4096 + 7), 1));
  EXPECT_TRUE(holds(bytes_of(seen).subspan(4096 + 7, 1'000'000), 2, 5));
  EXPECT_TRUE(holds(bytes_of(seen).subspan(4096 + 7 + 1'000'000), 1, 4096 + 7 + 1'000'000));
  child.say("end");
  EXPECT_EQ(child.join(), 0);
}

INSTANTIATE_TEST_SUITE_P(All, SharedMemory, testing::ValuesIn(all_providers()),
                         [](const auto& info) { return name_of(info.param); });

TEST(BadMemory, IsAnError) {
  Engine engine = must(Engine::open(config_for("tcp", 1)));
  EXPECT_TRUE(fails_with(engine.add(Memory::own(0)), Code::invalid_argument));
  EXPECT_TRUE(fails_with(engine.add(Memory::own(std::size_t{1} << 50)), Code::out_of_memory));
  EXPECT_TRUE(fails_with(engine.add(Memory::own(~std::size_t{0})), Code::out_of_memory));
  EXPECT_TRUE(fails_with(engine.add(Memory::shared(std::size_t{1} << 50)), Code::out_of_memory));
  EXPECT_TRUE(fails_with(engine.add(Memory::adopt(nullptr, 10)), Code::invalid_argument));
  EXPECT_TRUE(fails_with(engine.add(Memory::map(-1, 0, 10)), Code::invalid_argument));
  const int file = memfd_create("test", MFD_CLOEXEC);
  ASSERT_EQ(ftruncate(file, 8192), 0);
  EXPECT_TRUE(fails_with(engine.add(Memory::map(file, 4096, 4097)), Code::invalid_argument));
  EXPECT_FALSE(engine.add(Memory::map(file, 1, 100)));
  EXPECT_TRUE(succeeds(engine.add(Memory::map(file, 4096, 4096))));
  close(file);
}

}  // namespace
}  // namespace weft::test::memory_tests
