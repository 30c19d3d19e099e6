// Files as memory: every byte, on both sides, and what goes wrong with files.
#include "files.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <memory>
#include <optional>
#include <set>

#include "base/descriptor.hpp"
#include "base/sync.hpp"
#include "device/file/io_channel.hpp"
#include "engines.hpp"
#include "folder.hpp"
#include "forked.hpp"
#include "hung_drive.hpp"
#include "small_packets.hpp"

namespace weft::test::files_tests {
namespace {

using testing::HasSubstr;

constexpr std::size_t file_bytes = (1 << 20) + 777, memory_bytes = 2 << 20;

/// Whole pages, edges, pieces within a page, and pieces over several requests.
const std::vector<Pair> pieces = {{0, 4096, 8192},
                                  {9000, 1, 4094},
                                  {20'000, 12'288, 300'000},
                                  {400'001, 350'003, 1},
                                  {500'000, 400'000, 500'000},
                                  {1'100'000, file_bytes - 100, 100}};

/// Two sizes, and what is moved between them.
struct Moves {
  std::size_t file = file_bytes, memory = memory_bytes;
  std::vector<Pair> pairs = pieces;
};

/// Whole blocks, alone, and more than a bounce buffer holds. `local`: anywhere in memory.
Moves moves_of_blocks(std::uint64_t block) {
  const std::uint64_t many = 1'100'000 / block + 1;
  return {(many + 6) * block,
          (many + 6) * block + 5000,
          {{4096, 2 * block, block}, {block + 4099, 4 * block, many * block}, {0, 0, 0}}};
}

FileOptions checked(std::uint64_t block) {
  FileOptions options;
  options.checked_block = block;
  return options;
}

/// One side of a couple has a file, the other one host memory.
class FileOver : public testing::TestWithParam<std::string> {
 protected:
  Memory file(const FileOptions& options = {}) const { return Memory::file(path, 0, 0, options); }
  /// Every byte of both sides after transfers both ways.
  void expect_moves(const FileOptions& options, bool local_file, const Moves& moves = {}) {
    put(path, pattern(moves.file, 1));
    Segment of_file = must((local_file ? pair.a : pair.b).add(file(options)));
    Segment of_memory = must((local_file ? pair.b : pair.a).add(Memory::own(moves.memory)));
    fill(bytes_of(of_memory), 2);
    Segment& mine = local_file ? of_file : of_memory;
    Segment& theirs = local_file ? of_memory : of_file;
    std::vector<Pair> pairs = moves.pairs;
    if (local_file)
      for (Pair& each : pairs) std::swap(each.local, each.remote);
    const Grant grant = must(theirs.grant({}, Rights::read_write));
    const Remote there = must(pair.a.import(grant.blob()));
    for (const Direction direction : {Direction::read, Direction::write}) {
      const Blob memory_before(of_memory.data(), of_memory.data() + moves.memory);
      const Blob file_before = contents_of(path);
      const Prepared prepared = must(pair.a.prepare(mine, there, direction, pairs));
      Transfer transfer = must(pair.a.submit(prepared));
      ASSERT_TRUE(succeeds(transfer.wait(soon())));
      const bool into_file = (direction == Direction::write) != local_file;
      const std::vector<Pair>& by_memory = moves.pairs;  // local: the memory, remote: the file
      EXPECT_TRUE(same_bytes(
          bytes_of(of_memory),
          into_file ? memory_before
                    : expected_after(memory_before, file_before, Direction::read, by_memory)));
      EXPECT_TRUE(same_bytes(
          contents_of(path),
          into_file ? expected_after(file_before, memory_before, Direction::write, by_memory)
                    : file_before));
      fill(bytes_of(of_memory), 3);
    }
  }

  const Folder folder;
  const std::string path = folder.at("pages");
  Couple pair = couple(config_for(GetParam()));
};

TEST_P(FileOver, EveryByteOfThePeersFile) {
  expect_moves({}, false);
}

TEST_P(FileOver, EveryByteOfAnOwnFile) {
  expect_moves({}, true);
}

TEST_P(FileOver, EveryByteBuffered) {
  FileOptions options;
  options.direct = false;
  expect_moves(options, false);
  expect_moves(options, true);
}

TEST_P(FileOver, EveryByteDurably) {
  FileOptions options;
  options.durable = true;
  expect_moves(options, false);
}

TEST_P(FileOver, EveryByteOfBlocksThatAreChecked) {
  for (const std::uint64_t block : {4 << 10, 64 << 10, 256 << 10})
    for (const bool local_file : {false, true}) {
      std::filesystem::remove(path + ".xxh3");
      expect_moves(checked(block), local_file, moves_of_blocks(block));
      if (HasFailure()) return;
      Blob sums = contents_of(path + ".xxh3");
      sums.resize(sums.size() + 8);
      EXPECT_FALSE(same_bytes({sums.data() + 4096 + 16, 8}, Blob(8))) << "it was written";
      EXPECT_TRUE(same_bytes({sums.data() + 4096 + 8, 8}, Blob(8))) << "it was not";
    }
}

/// Between two of them, whose blocks differ.
TEST_P(FileOver, EveryByteFromOneCheckedFileToAnother) {
  constexpr std::size_t bytes = 2 << 20;
  put(path, pattern(bytes, 1));
  put(path + "2", pattern(bytes, 2));
  FileOptions options = checked(64 << 10);
  Segment mine = must(pair.a.add(Memory::file(path, 0, bytes, options)));
  options.checked_block = 8 << 10;
  options.durable = true;
  Segment theirs = must(pair.b.add(Memory::file(path + "2", 0, bytes, options)));
  const Grant grant = must(theirs.grant({}, Rights::read_write));
  const Remote there = must(pair.a.import(grant.blob()));
  const Pair pieces[] = {{64 << 10, 8 << 10, 1 << 20}}, back[] = {{0, 8 << 10, 1 << 20}};
  Transfer transfer =
      must(pair.a.submit(must(pair.a.prepare(mine, there, Direction::write, pieces))));
  ASSERT_TRUE(succeeds(transfer.wait(soon())));
  EXPECT_TRUE(
      same_bytes(contents_of(path + "2"),
                 expected_after(pattern(bytes, 2), pattern(bytes, 1), Direction::write, pieces)));
  transfer = must(pair.a.submit(must(pair.a.prepare(mine, there, Direction::read, back))));
  ASSERT_TRUE(succeeds(transfer.wait(soon())));
  EXPECT_TRUE(same_bytes({contents_of(path).data(), 1 << 20}, pattern(1 << 20, 1, 64 << 10)));
}

/// A byte of the file that is not what was written.
void spoil(const std::string& path, std::uint64_t at) {
  Blob bytes = contents_of(path);
  bytes[at] ^= std::byte{1};
  const core::Descriptor file(open(path.c_str(), O_WRONLY | O_CLOEXEC));
  ASSERT_EQ(pwrite(file.get(), &bytes[at], 1, static_cast<off_t>(at)), 1);
}

/// Whoever has the file, and whoever asks.
TEST_P(FileOver, ABlockThatDoesNotMatchEndsItsTransferAndNoOther) {
  constexpr std::size_t block = 64 << 10, bytes = 16 * block;
  for (const bool local_file : {false, true}) {
    put(path, pattern(bytes, 1));
    Segment of_file = must((local_file ? pair.a : pair.b).add(file(checked(block))));
    Segment of_memory = must((local_file ? pair.b : pair.a).add(Memory::own(bytes)));
    fill(bytes_of(of_memory), 2);
    Segment& mine = local_file ? of_file : of_memory;
    Segment& theirs = local_file ? of_memory : of_file;
    const Grant grant = must(theirs.grant({}, Rights::read_write));
    const Remote there = must(pair.a.import(grant.blob()));
    const Direction in = local_file ? Direction::read : Direction::write;
    const Direction out = local_file ? Direction::write : Direction::read;
    const auto move = [&](Direction direction, std::uint64_t first, std::uint64_t count) {
      const Pair some[] = {{first * block, first * block, count * block}};
      return must(pair.a.submit(must(pair.a.prepare(mine, there, direction, some)))).wait(soon());
    };
    ASSERT_TRUE(succeeds(move(in, 0, 16)));
    spoil(path, 7 * block + 100);
    for (const std::uint64_t first : {7, 0}) {
      const auto failed = move(out, first, 16 - first);
      ASSERT_TRUE(fails_with(failed, Code::corrupt));
      EXPECT_THAT(failed.error().message(), HasSubstr("file '" + path + "': the block"));
      EXPECT_THAT(failed.error().message(), HasSubstr("at " + std::to_string(7 * block)));
    }
    EXPECT_TRUE(succeeds(move(out, 0, 7)));
    EXPECT_TRUE(succeeds(move(out, 8, 8)));
    ASSERT_TRUE(succeeds(move(in, 7, 1)));
    EXPECT_TRUE(succeeds(move(out, 0, 16))) << "it was written anew";
    must(of_file.release(soon()));
    std::filesystem::remove(path + ".xxh3");
  }
}

TEST_P(FileOver, PartsOfCheckedBlocksAreRefused) {
  constexpr std::size_t block = 64 << 10, bytes = 16 * block;
  put(path, pattern(bytes, 1));
  Segment theirs = must(pair.b.add(file(checked(block))));
  Segment mine = must(pair.a.add(Memory::own(bytes)));
  const Grant grant = must(theirs.grant({}, Rights::read_write));
  const Remote there = must(pair.a.import(grant.blob()));
  for (const Pair& piece : {Pair{0, 0, block - 1}, Pair{0, 4096, block}}) {
    const Pair pieces[] = {piece};
    const auto refused = pair.a.prepare(mine, there, Direction::read, pieces);
    ASSERT_TRUE(fails_with(refused, Code::invalid_argument));
    EXPECT_THAT(refused.error().message(),
                HasSubstr("not aligned to the file's 65536-byte checked blocks"));
  }
}

TEST_P(FileOver, SaysThatBlocksAreChecked) {
  put(path, pattern(8192, 1));
  Segment theirs = must(pair.b.add(file(checked(4096))));
  Segment mine = must(pair.a.add(Memory::own(8192)));
  const Grant grant = must(theirs.grant({}, Rights::read));
  const Remote there = must(pair.a.import(grant.blob()));
  const Path way = must(pair.a.explain(mine, there, Direction::read));
  EXPECT_THAT(way.not_used, testing::Contains(HasSubstr("its blocks of 4096 bytes checked")));
}

TEST(CheckedBlocks, AreNotCutByBounceBuffersOfAnySize) {
  constexpr std::size_t block = 64 << 10, bytes = 16 * block;
  const Folder folder;
  const std::string path = folder.at("pages");
  put(path, pattern(bytes, 1));
  Config odd = config_for("tcp");
  odd.bounce_buffer_bytes = 3 * block - 1000;
  Couple pair = couple(odd);
  Segment theirs = must(pair.b.add(Memory::file(path, 0, 0, checked(block))));
  Segment mine = must(pair.a.add(Memory::own(bytes)));
  fill(bytes_of(mine), 2);
  const Grant grant = must(theirs.grant({}, Rights::read_write));
  const Remote there = must(pair.a.import(grant.blob()));
  for (const std::uint64_t count : {16, 5, 3, 1}) {
    const Pair some[] = {{0, 0, count * block}};
    for (const Direction direction : {Direction::write, Direction::read})
      ASSERT_TRUE(succeeds(
          must(pair.a.submit(must(pair.a.prepare(mine, there, direction, some)))).wait(soon())));
  }
  EXPECT_TRUE(holds(bytes_of(mine), 2));
  EXPECT_TRUE(same_bytes(contents_of(path), pattern(bytes, 2)));
}

/// The owner has the file's blocks, which the way between the two can't carry whole.
void expect_too_large(Couple& pair, const std::string& path, std::uint64_t block,
                      const std::string& words) {
  Segment theirs = must(pair.b.add(Memory::file(path, 0, 0, checked(block))));
  Segment mine = must(pair.a.add(Memory::own(1 << 20)));
  const Grant grant = must(theirs.grant({}, Rights::read));
  const Remote there = must(pair.a.import(grant.blob()));
  const Pair all[] = {{0, 0, 1 << 20}};
  const auto cut = pair.a.prepare(mine, there, Direction::read, all);
  ASSERT_TRUE(fails_with(cut, Code::invalid_argument));
  EXPECT_THAT(cut.error().message(), HasSubstr(words));
}

TEST(CheckedBlocks, FitTheBounceBuffersOfBothSides) {
  const Folder folder;
  const std::string path = folder.at("pages");
  put(path, pattern(1 << 20, 1));
  Config small = config_for("tcp");
  small.bounce_buffer_bytes = 16 << 10;
  Couple pair = couple(small, config_for("tcp"));
  const auto refused = pair.a.add(Memory::file(path, 0, 0, checked(32 << 10)));
  ASSERT_TRUE(fails_with(refused, Code::invalid_argument));
  EXPECT_THAT(refused.error().message(), HasSubstr("more than bounce_buffer_bytes (16384)"));
  expect_too_large(pair, path, 32 << 10, "(bounce_buffer_bytes) holds 16384 here");
}

/// A rail's bounce buffers are no larger than its messages, whatever is configured.
TEST(CheckedBlocks, FitTheMessagesOfEachRail) {
  const Folder folder;
  const std::string path = folder.at("pages");
  put(path, pattern(1 << 20, 1));
  Couple pair = wrapped<SmallPackets>([] { return couple(config_for("tcp")); });
  expect_too_large(pair, path, 4096, "in blocks of 4096 bytes");
}

TEST_P(FileOver, SaysHowItGoes) {
  put(path, pattern(file_bytes, 1));
  FileOptions options;
  options.direct = false;
  const Segment theirs = must(pair.b.add(file(options)));
  Segment mine = must(pair.a.add(Memory::own(memory_bytes)));
  EXPECT_EQ(theirs.place().kind, MemoryKind::buffered_file);
  EXPECT_EQ(theirs.data(), nullptr);
  const Grant grant = must(const_cast<Segment&>(theirs).grant({}, Rights::read));
  const Remote there = must(pair.a.import(grant.blob()));
  EXPECT_EQ(there.place().kind, MemoryKind::buffered_file);
  const Path way = must(pair.a.explain(mine, there, Direction::read));
  EXPECT_EQ(way.transport, TransportKind::bounce);
  EXPECT_EQ(way.hops.front().from.kind, Stop::Kind::file);
  EXPECT_EQ(way.hops.front().by, Mover::kernel);
  EXPECT_THAT(way.not_used, testing::Contains(HasSubstr("buffered by the kernel")));
  const Pair piece[] = {{0, 0, 5000}};
  Transfer transfer =
      must(pair.a.submit(must(pair.a.prepare(mine, there, Direction::read, piece))));
  ASSERT_TRUE(succeeds(transfer.wait(soon())));
  EXPECT_THAT(transfer.report().fallback, HasSubstr("the peer's is a file, buffered"));
}

/// What a drive reads for a peer, and what it writes of an answer, nobody copies in between.
TEST_P(FileOver, OnlyRequestsNeedABufferBesideTheDrive) {
  put(path, pattern(file_bytes, 1));
  Segment theirs = must(pair.b.add(file()));
  if (theirs.place().kind != MemoryKind::file) GTEST_SKIP() << "it takes no direct I/O";
  Segment mine = must(pair.a.add(Memory::own(memory_bytes)));
  const Grant grant = must(theirs.grant({}, Rights::read_write));
  const Remote there = must(pair.a.import(grant.blob()));
  const auto buffers = [&](Direction direction) {
    const Path way = must(pair.a.explain(mine, there, direction));
    return std::count_if(way.hops.begin(), way.hops.end(),
                         [](const Hop& hop) { return hop.to.kind == Stop::Kind::file_buffer; });
  };
  EXPECT_EQ(buffers(Direction::read), 0);
  EXPECT_EQ(buffers(Direction::write), 1);
}

TEST_P(FileOver, AFileThatIsCutOffFailsWithItsName) {
  put(path, pattern(file_bytes, 1));
  Segment theirs = must(pair.b.add(file()));
  Segment mine = must(pair.a.add(Memory::own(memory_bytes)));
  const Grant grant = must(theirs.grant({}, Rights::read));
  const Remote there = must(pair.a.import(grant.blob()));
  ASSERT_EQ(truncate(path.c_str(), 5000), 0);
  const Pair gone[] = {{0, 0, 4096}, {8192, 500'000, 4096}};
  Transfer transfer = must(pair.a.submit(must(pair.a.prepare(mine, there, Direction::read, gone))));
  const auto failed = transfer.wait(soon());
  ASSERT_FALSE(failed);
  EXPECT_THAT(failed.error().to_string(), HasSubstr(path));
  EXPECT_THAT(failed.error().to_string(), HasSubstr("cut off"));
  // What is still there can be read.
  const Pair there_still[] = {{0, 0, 5000}};
  transfer = must(pair.a.submit(must(pair.a.prepare(mine, there, Direction::read, there_still))));
  EXPECT_TRUE(succeeds(transfer.wait(soon())));
  EXPECT_TRUE(holds({mine.data(), 5000}, 1));
}

TEST_P(FileOver, ASignalComesBehindWhatWasWritten) {
  put(path, pattern(file_bytes, 1));
  FileOptions options;
  options.durable = true;
  Segment theirs = must(pair.b.add(file(options)));
  Segment mine = must(pair.a.add(Memory::own(memory_bytes)));
  fill(bytes_of(mine), 5);
  const Grant grant = must(theirs.grant({}, Rights::write));
  const Remote there = must(pair.a.import(grant.blob()));
  const Pair piece[] = {{0, 0, 900'000}};
  TransferOptions with_signal;
  with_signal.signal = Signal{7};
  Transfer transfer =
      must(pair.a.submit(must(pair.a.prepare(mine, there, Direction::write, piece)), with_signal));
  ASSERT_TRUE(succeeds(transfer.wait(soon())));
  auto expected = must(pair.to_a.expect(7, 1));
  ASSERT_TRUE(succeeds(expected.wait(soon())));
  const Blob now = contents_of(path);
  EXPECT_TRUE(holds({now.data(), 900'000}, 5));
}

INSTANTIATE_TEST_SUITE_P(Files, FileOver, testing::ValuesIn(all_providers()),
                         [](const auto& each) { return name_of(each.param); });

/// One engine, and a file in a folder.
class FileAlone : public testing::Test {
 protected:
  Segment add(const FileOptions& options = {}, std::size_t bytes = file_bytes) {
    return must(engine.add(Memory::file(path, 0, bytes, options)));
  }

  const Folder folder;
  const std::string path = folder.at("pages");
  Engine engine = must(Engine::open(config_for("tcp")));
};

TEST_F(FileAlone, IsCopiedFromAndToWithoutAPeer) {
  put(path, pattern(file_bytes, 1));
  Segment file = add();
  Segment memory = must(engine.add(Memory::own(memory_bytes)));
  fill(bytes_of(memory), 2);
  const Blob before(memory.data(), memory.data() + memory_bytes);
  ASSERT_TRUE(succeeds(memory.copy_from(file, pieces, soon())));
  EXPECT_TRUE(same_bytes(bytes_of(memory),
                         expected_after(before, pattern(file_bytes, 1), Direction::read, pieces)));
  fill(bytes_of(memory), 3);
  std::vector<Pair> back = pieces;
  for (Pair& each : back) std::swap(each.local, each.remote);
  ASSERT_TRUE(succeeds(file.copy_from(memory, back, soon())));
  EXPECT_TRUE(same_bytes(contents_of(path), expected_after(pattern(file_bytes, 1), bytes_of(memory),
                                                           Direction::write, pieces)));
}

TEST_F(FileAlone, CopiesThatNobodyLooksAtEnd) {
  put(path, pattern(file_bytes, 1));
  FileOptions options;
  options.queue_depth = 1;
  Segment file = add(options);
  Segment memory = must(engine.add(Memory::own(memory_bytes)));
  std::vector<Pair> pages;
  for (std::uint64_t at = 0; at < file_bytes; at += 65'536)
    pages.push_back({at, at, std::min<std::uint64_t>(65'536, file_bytes - at)});
  FileCopy kept = must(memory.begin_copy_from(file, pages));
  EXPECT_TRUE(succeeds(memory.release(soon())));
  EXPECT_TRUE(succeeds(kept.wait(Deadline::now())));
  EXPECT_TRUE(kept.quiescent());
  EXPECT_TRUE(fails_with(memory.begin_copy_from(file, pages), Code::closed));
}

TEST_F(FileAlone, ACopyThatIsForgottenStopsBeforeItsMemoryIsFree) {
  put(path, pattern(file_bytes, 1));
  Segment file = add();
  Segment memory = must(engine.add(Memory::own(memory_bytes)));
  const Pair all[] = {{0, 0, file_bytes}};
  for (int i = 0; i < 20; ++i) must(memory.begin_copy_from(file, all));
  EXPECT_TRUE(succeeds(memory.release(soon())));
  EXPECT_TRUE(succeeds(file.release(soon())));
}

/// Its room is a rail's as soon as the drive has done them.
TEST(FileCopies, ThatNobodyLooksAtHoldUpNoTransfer) {
  const Folder folder;
  put(folder.at("pages"), pattern(file_bytes, 1));
  Couple pair = couple(config_for("tcp"));
  FileOptions options;
  options.queue_depth = 1;
  Segment theirs = must(pair.b.add(Memory::file(folder.at("pages"), 0, 0, options)));
  Segment beside = must(pair.b.add(Memory::own(memory_bytes)));
  Segment mine = must(pair.a.add(Memory::own(memory_bytes)));
  const Grant grant = must(theirs.grant({}, Rights::read));
  const Remote there = must(pair.a.import(grant.blob()));
  const Pair page[] = {{0, 4096, 4096}}, all[] = {{0, 0, file_bytes}};
  for (int round = 0; round < 20; ++round) {
    std::vector<FileCopy> unseen;
    for (int i = 0; i < 4; ++i) unseen.push_back(must(beside.begin_copy_from(theirs, page)));
    fill(bytes_of(mine), 2);
    Transfer read = must(pair.a.read(mine, there, all));
    ASSERT_TRUE(succeeds(read.wait(soon())));
    EXPECT_TRUE(holds({mine.data(), file_bytes}, 1));
  }
}

TEST_F(FileAlone, ACopyOutlivesItsEngineAndHoldsItsMemory) {
  put(path, pattern(file_bytes, 1));
  HungDrive drive;
  std::optional<Engine> own(must(Engine::open(config_for("tcp"))));
  Segment file = must(own->add(Memory::file(path, 0, file_bytes)));
  Segment memory = must(own->add(Memory::own(4096)));
  const Pair piece[] = {{0, 0, 4096}};
  FileCopy copy = must(memory.begin_copy_from(file, piece));
  must(own->close(soon()));
  EXPECT_TRUE(fails_with(memory.begin_copy_from(file, piece), Code::closed));
  own.reset();
  EXPECT_TRUE(fails_with(memory.release(Deadline::in(a_while)), Code::quarantined));
  drive.release();
  EXPECT_TRUE(succeeds(memory.release(soon())));
  EXPECT_TRUE(succeeds(copy.wait(Deadline::now())));
}

/// The child leaves the parent's queue alone, and has its own.
TEST_F(FileAlone, AForkedChildCopiesByItself) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "the thread sanitizer lets no forked child start threads";
#endif
  put(path, pattern(file_bytes, 1));
  Segment file = add();
  Segment memory = must(engine.add(Memory::own(memory_bytes)));
  const Pair all[] = {{0, 0, file_bytes}};
  ASSERT_TRUE(succeeds(memory.copy_from(file, all, soon())));
  FileCopy under_way = must(memory.begin_copy_from(file, all));
  const int wrong = in_forked_child([&] {
    if (under_way.wait(soon()).error().code() != Code::forked) return 1;
    if (memory.begin_copy_from(file, all).error().code() != Code::forked) return 2;
    auto own = Engine::open(config_for("tcp"));
    if (!own) return 3;
    auto to = own->add(Memory::own(file_bytes));
    auto from = own->add(Memory::file(path, 0, file_bytes));
    if (!to || !from || !to->copy_from(*from, all, soon())) return 4;
    return holds(bytes_of(*to), 1) ? 0 : 5;
  });
  EXPECT_EQ(wrong, 0);
  EXPECT_TRUE(succeeds(under_way.wait(soon())));
  ASSERT_TRUE(succeeds(memory.copy_from(file, all, soon())));
  EXPECT_TRUE(holds({memory.data(), file_bytes}, 1));
}

TEST_F(FileAlone, ByThreadsWhereThereIsNoRing) {
  core::make_io_channels_by(core::open_io_threads);
  put(path, pattern(file_bytes, 1));
  Segment file = add();
  Segment memory = must(engine.add(Memory::own(memory_bytes)));
  const Pair all[] = {{0, 0, file_bytes}};
  EXPECT_TRUE(succeeds(memory.copy_from(file, all, soon())));
  core::make_io_channels_by({});
  EXPECT_TRUE(holds({memory.data(), file_bytes}, 1));
}

TEST_F(FileAlone, IsMadeAndMadeLongerOnRequestOnly) {
  EXPECT_TRUE(fails_with(engine.add(Memory::file(path, 0, 4096)), Code::not_found));
  FileOptions create;
  create.create = true;
  const Segment made = add(create, 10'000);
  EXPECT_EQ(std::filesystem::file_size(path), 10'000U);
  EXPECT_TRUE(fails_with(engine.add(Memory::file(path, 0, 10'001)), Code::invalid_argument));
  EXPECT_EQ(must(engine.add(Memory::file(path, 1000, 0))).size(), 9000U) << "up to the end";
}

TEST_F(FileAlone, RefusesWhatIsNoFile) {
  EXPECT_TRUE(fails_with(engine.add(Memory::file(folder.at(""), 0, 1)), Code::invalid_argument));
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  EXPECT_TRUE(fails_with(engine.add(Memory::file(path, 0, 1)), Code::invalid_argument));
}

TEST_F(FileAlone, OpenForReadingOnlyIsASource) {
  put(path, pattern(file_bytes, 1));
  const core::Descriptor fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  Segment file = must(engine.add(Memory::file(fd.get(), 0, file_bytes)));
  Segment memory = must(engine.add(Memory::own(4096)));
  const Pair piece[] = {{0, 0, 4096}};
  EXPECT_TRUE(fails_with(file.copy_from(memory, piece, soon()), Code::permission_denied));
  EXPECT_TRUE(fails_with(file.grant({}, Rights::write), Code::permission_denied));
  EXPECT_TRUE(succeeds(memory.copy_from(file, piece, soon())));
  EXPECT_TRUE(holds(bytes_of(memory), 1));
}

TEST_F(FileAlone, AFullFileSystemFailsWithItsError) {
  Mounted full = Mounted::tmpfs(folder, "1m");
  if (!full.why_not().empty()) GTEST_SKIP() << full.why_not();
  {
    FileOptions create;
    create.create = true;
    Segment file = must(engine.add(Memory::file(full.at("pages"), 0, 4 << 20, create)));
    Segment memory = must(engine.add(Memory::own(4 << 20)));
    const Pair small[] = {{0, 0, 1000}}, all[] = {{0, 0, 4 << 20}};
    EXPECT_TRUE(succeeds(file.copy_from(memory, small, soon())));
    const auto failed = file.copy_from(memory, all, soon());
    ASSERT_FALSE(failed);
    EXPECT_THAT(failed.error().message(), HasSubstr("No space left on device (errno 28)"));
    EXPECT_THAT(failed.error().message(), HasSubstr(full.path()));
    must(file.release(soon()));
  }
  EXPECT_TRUE(full.unmount());
}

/// An ext4 file system in a file.
TEST_F(FileAlone, OnExt4EveryByteByTheDriveItself) {
  Mounted ext4 = Mounted::ext4(folder);
  if (!ext4.why_not().empty()) GTEST_SKIP() << ext4.why_not();
  const std::string on_ext4 = ext4.at("pages");
  {
    put(on_ext4, pattern(file_bytes, 1));
    Segment file = must(engine.add(Memory::file(on_ext4, 0, file_bytes)));
    EXPECT_EQ(file.place().kind, MemoryKind::file);
    Segment memory = must(engine.add(Memory::own(memory_bytes)));
    fill(bytes_of(memory), 2);
    const Blob before(memory.data(), memory.data() + memory_bytes);
    ASSERT_TRUE(succeeds(memory.copy_from(file, pieces, soon())));
    EXPECT_TRUE(same_bytes(
        bytes_of(memory), expected_after(before, pattern(file_bytes, 1), Direction::read, pieces)));
    must(file.release(soon()));
  }
  EXPECT_TRUE(ext4.unmount());
}

TEST_F(FileAlone, ADeviceThatHangsEndsACopyInTimeAndHoldsItsMemory) {
  put(path, pattern(file_bytes, 1));
  std::optional<HungDrive> device(std::in_place);
  FileOptions options;
  options.timeout = 50ms;
  Segment file = add(options);
  Segment memory = must(engine.add(Memory::own(4096)));
  const Pair piece[] = {{0, 0, 4096}};
  const auto silent = memory.copy_from(file, piece, soon());
  ASSERT_TRUE(fails_with(silent, Code::timed_out));
  EXPECT_THAT(silent.error().message(), HasSubstr(path));
  EXPECT_TRUE(fails_with(memory.release(Deadline::in(a_while)), Code::quarantined));
  device->release();
  EXPECT_TRUE(succeeds(memory.release(soon())));
}

TEST_F(FileAlone, TheDeadlineEndsACopyThatTheDeviceDoesNot) {
  put(path, pattern(file_bytes, 1));
  HungDrive device;
  Segment file = add();
  Segment memory = must(engine.add(Memory::own(4096)));
  const Pair piece[] = {{0, 0, 4096}};
  EXPECT_TRUE(fails_with(memory.copy_from(file, piece, Deadline::in(a_while)), Code::timed_out));
}

/// The others go on meanwhile, and the file does once its device answers.
TEST(HungFile, FailsTransfersToItAndNoOthers) {
  const Folder folder;
  const std::string path = folder.at("pages");
  put(path, pattern(file_bytes, 1));
  std::optional<HungDrive> device(std::in_place);
  Couple pair = couple(config_for("tcp"));
  FileOptions options;
  options.timeout = 50ms;
  Segment theirs = must(pair.b.add(Memory::file(path, 0, file_bytes, options)));
  Segment mine = must(pair.a.add(Memory::own(memory_bytes)));
  const Grant grant = must(theirs.grant({}, Rights::read_write));
  const Remote there = must(pair.a.import(grant.blob()));
  const Pair piece[] = {{0, 0, 300'000}};
  const Prepared prepared = must(pair.a.prepare(mine, there, Direction::read, piece));
  Transfer transfer = must(pair.a.submit(prepared));
  const auto failed = transfer.wait(soon());
  ASSERT_FALSE(failed);
  EXPECT_THAT(failed.error().to_string(), HasSubstr("has not answered"));
  EXPECT_THAT(failed.error().to_string(), HasSubstr(path));
  Board others(pair, 100'000, 100'000);
  others.expect_moved(Direction::write, std::array{Pair{0, 0, 100'000}});
  device->release();
  EXPECT_TRUE(comes_to_be([&] { return must(pair.a.submit(prepared)).wait(soon()).has_value(); }));
  EXPECT_TRUE(holds({mine.data(), 300'000}, 1));
}

}  // namespace
}  // namespace weft::test::files_tests
