// Files whose blocks are checked: the file of sums, what is found, and what a crash leaves.
#include "device/file/block_sums.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <barrier>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <optional>
#include <random>
#include <thread>
#include <vector>

#include "base/xxh3.hpp"
#include "device/file/file_page.hpp"
#include "device/file/io_channel.hpp"
#include "file_segments.hpp"
#include "files.hpp"
#include "folder.hpp"
#include "pattern.hpp"
#include "refused_calls.hpp"
#include "services/file_copies.hpp"
#include "warnings.hpp"

namespace weft::core::test::block_sums_tests {
namespace {

using testing::HasSubstr;
using weft::test::contents_of;
using weft::test::fill;
using weft::test::Folder;
using weft::test::holds;
using weft::test::pattern;
using weft::test::put;
using weft::test::RefusedCall;
using weft::test::same_bytes;
using weft::test::Warnings;
using weft::test::where_refused;

constexpr std::size_t block = 64 << 10, blocks = 40, file_bytes = block * blocks;
constexpr std::size_t head = 4096;

Deadline soon() {
  return Deadline::in(std::chrono::seconds(60));
}

FileOptions checked(std::uint64_t bytes = block) {
  FileOptions options;
  options.create = true;
  options.checked_block = bytes;
  return options;
}

void change(const std::string& path, std::uint64_t at, const void* bytes, std::size_t count) {
  const Descriptor file(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  ASSERT_EQ(pwrite(file.get(), bytes, count, static_cast<off_t>(at)), static_cast<ssize_t>(count));
}

void flip_a_bit(const std::string& path, std::uint64_t at) {
  const Blob now = contents_of(path);
  const std::byte other = now[at] ^ std::byte{4};
  change(path, at, &other, 1);
}

template <typename T>
testing::AssertionResult fails(const Result<T>& result, Code code, const std::string& words) {
  if (result) return testing::AssertionFailure() << "it succeeded";
  if (result.error().code() == code && result.error().message().find(words) != std::string::npos)
    return testing::AssertionSuccess();
  return testing::AssertionFailure() << result.error().to_string();
}

/// By io_uring where it is permitted, and by threads.
class CheckedFile : public testing::TestWithParam<bool> {
 protected:
  CheckedFile() {
    if (GetParam()) make_io_channels_by(open_io_threads);
  }
  ~CheckedFile() override { make_io_channels_by({}); }

  SegmentPtr open(const FileOptions& options = checked()) const {
    return segment_of(must_open(Memory::file(path, 0, file_bytes, options)));
  }
  Result<void> write(const SegmentPtr& file, std::uint64_t seed) {
    fill({memory->address(), file_bytes}, seed);
    return copy_by_file(file, memory, all, soon());
  }
  Result<void> read_block(const SegmentPtr& file, std::size_t index) {
    const Pair one[] = {{index * block, index * block, block}};
    return copy_by_file(memory, file, one, soon());
  }
  /// That block is found out, with its place, and no other.
  void expect_found(const SegmentPtr& file, std::size_t index) {
    const std::uint64_t before = file_disk(file).counters().corrupt_blocks;
    EXPECT_TRUE(fails(copy_by_file(memory, file, all, soon()), Code::corrupt, path));
    for (std::size_t each = 0; each < blocks; ++each) {
      const auto read = read_block(file, each);
      EXPECT_EQ(read.has_value(), each != index) << each;
      if (!read) {
        EXPECT_EQ(read.error().code(), Code::corrupt);
        EXPECT_THAT(read.error().message(), HasSubstr("'" + path + "'"));
        EXPECT_THAT(read.error().message(), HasSubstr("'" + path + ".xxh3'"));
        EXPECT_THAT(read.error().message(), HasSubstr("at " + std::to_string(index * block)));
      }
    }
    EXPECT_EQ(file_disk(file).counters().corrupt_blocks - before, 2U);
  }
  static const Disk& file_disk(const SegmentPtr& file) {
    return static_cast<const Disk&>(file->device());
  }

  const Folder folder;
  const std::string path = folder.at("pages"), sums = path + ".xxh3";
  const SegmentPtr memory = segment_of(Memory::own(file_bytes));
  const std::array<Pair, 1> all{Pair{0, 0, file_bytes}};
};

TEST_P(CheckedFile, EveryByteAndTheSumOfEachBlock) {
  for (const bool direct : {true, false})
    for (const bool durable : {true, false})
      for (const std::size_t size : {std::size_t{4096}, block, std::size_t{2} << 20}) {
        std::filesystem::remove(path);
        std::filesystem::remove(sums);
        FileOptions options = checked(size);
        options.direct = direct;
        options.durable = durable;
        const std::size_t bytes = file_bytes / size * size;
        const SegmentPtr file = segment_of(must_open(Memory::file(path, 0, bytes, options)));
        fill({memory->address(), file_bytes}, 7);
        const Pair pieces[] = {{0, 0, size}, {size, size, bytes - size}};
        ASSERT_TRUE(copy_by_file(file, memory, pieces, soon()));
        EXPECT_TRUE(same_bytes(contents_of(path), pattern(bytes, 7)));
        const Blob stored = contents_of(sums);
        ASSERT_EQ(stored.size(), head + bytes / size * 8);
        for (std::size_t i = 0; i < bytes / size; ++i) {
          std::uint64_t sum = 0;
          std::memcpy(&sum, stored.data() + head + i * 8, 8);
          EXPECT_EQ(sum, XXH3_64bits(memory->address() + i * size, size)) << i;
        }
        fill({memory->address(), file_bytes}, 8);
        ASSERT_TRUE(copy_by_file(memory, file, pieces, soon()));
        EXPECT_TRUE(holds({memory->address(), bytes}, 7));
      }
}

TEST_P(CheckedFile, TheUmaskSaysWhoMayReadNewFiles) {
  const mode_t before = umask(027);
  const SegmentPtr file = open();
  umask(before);
  for (const std::string& made : {path, sums}) {
    struct stat status {};
    ASSERT_EQ(stat(made.c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 07777, 0640U) << made;
  }
}

/// Memory that the drive does not take: through a buffer.
TEST_P(CheckedFile, MemoryThatBeginsAnywhere) {
  const SegmentPtr file = open(), odd = segment_of(Memory::own(file_bytes + 4096));
  fill({odd->address() + 5, file_bytes}, 9);
  const Pair in[] = {{0, 5, file_bytes}}, out[] = {{7, 0, file_bytes}};
  ASSERT_TRUE(copy_by_file(file, odd, in, soon()));
  ASSERT_TRUE(copy_by_file(odd, file, out, soon()));
  EXPECT_TRUE(holds({odd->address() + 7, file_bytes}, 9));
  flip_a_bit(path, 11 * block + 3);
  EXPECT_TRUE(fails(copy_by_file(odd, file, out, soon()), Code::corrupt, path));
}

TEST_P(CheckedFile, ABitOfItThatChangedIsFound) {
  const SegmentPtr file = open();
  ASSERT_TRUE(write(file, 1));
  flip_a_bit(path, 17 * block + 12'345);
  expect_found(file, 17);
  ASSERT_TRUE(write(file, 2)) << "what is written anew is good again";
  EXPECT_TRUE(copy_by_file(memory, file, all, soon()));
}

TEST_P(CheckedFile, ASumThatChangedIsFound) {
  const SegmentPtr file = open();
  ASSERT_TRUE(write(file, 1));
  flip_a_bit(sums, head + 23 * 8);
  expect_found(file, 23);
}

TEST_P(CheckedFile, OldBytesUnderANewSumAndNewBytesUnderAnOldOneAreFound) {
  const SegmentPtr file = open();
  ASSERT_TRUE(write(file, 1));
  const Blob old_bytes = contents_of(path), old_sums = contents_of(sums);
  ASSERT_TRUE(write(file, 2));
  change(path, 5 * block, old_bytes.data() + 5 * block, block);
  expect_found(file, 5);
  ASSERT_TRUE(write(file, 2));
  change(sums, head + 6 * 8, old_sums.data() + head + 6 * 8, 8);
  expect_found(file, 6);
}

TEST_P(CheckedFile, ABlockThatIsHalfNewIsFound) {
  const SegmentPtr file = open();
  ASSERT_TRUE(write(file, 1));
  const Blob newer = pattern(file_bytes, 2);
  change(path, 30 * block, newer.data() + 30 * block, block / 2);
  expect_found(file, 30);
}

TEST_P(CheckedFile, WhatWasThereBeforeHasNoSum) {
  put(path, pattern(file_bytes, 1));
  const SegmentPtr file = open();
  flip_a_bit(path, 3 * block);
  EXPECT_TRUE(copy_by_file(memory, file, all, soon())) << "nobody knows what it was";
  const Pair one[] = {{3 * block, 3 * block, block}};
  ASSERT_TRUE(copy_by_file(file, memory, one, soon()));
  EXPECT_TRUE(read_block(file, 3));
  flip_a_bit(path, 3 * block);
  expect_found(file, 3);
}

TEST_P(CheckedFile, OnlyWholeBlocksAreMoved) {
  const SegmentPtr file = open();
  ASSERT_TRUE(write(file, 1));
  for (const Pair piece : {Pair{0, 0, block - 1}, Pair{0, 4096, block}, Pair{0, 0, block + 4096}}) {
    const Pair pieces[] = {piece};
    EXPECT_TRUE(fails(copy_by_file(memory, file, pieces, soon()), Code::invalid_argument,
                      "blocks of 65536 bytes"));
    const Pair back[] = {{piece.remote, piece.local, piece.length}};
    EXPECT_TRUE(
        fails(copy_by_file(file, memory, back, soon()), Code::invalid_argument, "no whole blocks"));
  }
  EXPECT_TRUE(same_bytes(contents_of(path), pattern(file_bytes, 1)));
}

/// Sums that are gone are an error, and not a block without one.
TEST_P(CheckedFile, SumsThatAreCutOffAreAnError) {
  const SegmentPtr file = open();
  ASSERT_TRUE(write(file, 1));
  ASSERT_EQ(truncate(sums.c_str(), head + 10 * 8), 0);
  EXPECT_TRUE(read_block(file, 9));
  EXPECT_TRUE(fails(read_block(file, 10), Code::unavailable,
                    "'" + sums + "' ends at byte " + std::to_string(head + 10 * 8) + ": "));
}

/// Parts of one file, which each opener makes as long as its part needs.
TEST_P(CheckedFile, PartsThatAreOpenedAtTheSameTimeLoseNothing) {
  constexpr std::size_t parts = 8, part = file_bytes / parts;
  for (int round = 0; round < 20; ++round) {
    std::filesystem::remove(path);
    std::filesystem::remove(sums);
    fill({memory->address(), file_bytes}, round);
    std::barrier together(parts);
    std::array<SegmentPtr, parts> files;
    std::array<std::thread, parts> openers;
    for (std::size_t i = 0; i < parts; ++i)
      openers[i] = std::thread([&, i] {
        together.arrive_and_wait();
        files[i] = segment_of(must_open(Memory::file(path, i * part, part, checked())));
        const Pair all_of_it[] = {{0, i * part, part}};
        EXPECT_TRUE(copy_by_file(files[i], memory, all_of_it, soon()));
      });
    for (std::thread& each : openers) each.join();
    ASSERT_TRUE(same_bytes(contents_of(path), pattern(file_bytes, round)));
    for (std::size_t i = 0; i < blocks; ++i) {
      std::uint64_t sum = 0;
      std::memcpy(&sum, contents_of(sums).data() + head + i * sizeof sum, sizeof sum);
      ASSERT_EQ(sum, BlockSums::of(memory->address() + i * block, block)) << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Files, CheckedFile, testing::Bool(), [](const auto& by_threads) {
  return by_threads.param ? "threads" : "ring";
});

/// As a drive may, of which a write is not whole: a page after the other, the last one first.
class PageByPage final : public IoChannel {
 public:
  bool begin(Io& io) override {
    for (std::size_t end = io.bytes; end > 0;) {
      const std::size_t from = (end - 1) / file_page * file_page;
      const auto at = static_cast<off_t>(io.at + from);
      const ssize_t done = io.write ? pwrite(io.fd, io.memory + from, end - from, at)
                                    : pread(io.fd, io.memory + from, end - from, at);
      if (done != static_cast<ssize_t>(end - from)) _exit(4);
      end = from;
    }
    io.result = static_cast<std::int64_t>(io.bytes);
    over_.push_back(&io);
    return true;
  }
  std::size_t ended(std::span<Io*> into) override {
    std::size_t count = 0;
    for (; count < into.size() && !over_.empty(); over_.pop_back()) into[count++] = over_.back();
    return count;
  }
  void wait(Deadline) override {}

 private:
  std::vector<Io*> over_;
};

/// Rounds after another differ.
std::uint64_t seed_of(std::uint64_t round) {
  return round % 4;
}

/// Writes round after round from the first on, and says when one has ended. Ends only by being
/// killed, or with a failure.
[[noreturn]] void write_for_ever(const std::string& path, const FileOptions& options,
                                 int to_parent) {
  auto opened = OpenFile::open(Memory::file(path, 0, file_bytes, options));
  if (!opened) _exit(1);
  const SegmentPtr file = segment_of(*opened), memory = segment_of(Memory::own(4 * file_bytes));
  for (std::uint64_t seed = 0; seed < 4; ++seed)
    fill({memory->address() + seed * file_bytes, file_bytes}, seed);
  for (std::uint64_t ended = 0;; ++ended) {
    if (::write(to_parent, &ended, sizeof ended) != sizeof ended) _exit(2);
    const Pair all[] = {{0, seed_of(ended + 1) * file_bytes, file_bytes}};
    if (!copy_by_file(file, memory, all, soon())) _exit(3);
  }
}

/// Is killed so long after it began. The last round that it ended.
std::optional<std::uint64_t> killed_while_writing(const std::string& how, const std::string& path,
                                                  const FileOptions& options,
                                                  std::chrono::microseconds later) {
  int pipe[2];
  if (pipe2(pipe, O_CLOEXEC) != 0) return std::nullopt;
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);
    if (how == "threads") make_io_channels_by(open_io_threads);
    if (how == "pages") make_io_channels_by([] { return std::make_unique<PageByPage>(); });
    write_for_ever(path, options, pipe[1]);
  }
  close(pipe[1]);
  std::uint64_t ended = 0;
  const bool began = ::read(pipe[0], &ended, sizeof ended) == sizeof ended;
  for (const auto until = Clock::now() + later; Clock::now() < until;) {
  }
  kill(child, SIGKILL);
  int status = 0;
  waitpid(child, &status, 0);
  while (::read(pipe[0], &ended, sizeof ended) == sizeof ended) {
  }
  close(pipe[0]);
  const bool killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
  return began && killed ? std::optional(ended) : std::nullopt;
}

/// The kernel may have kept the child's files for a moment.
SegmentPtr open_after(const std::string& path, const FileOptions& options) {
  for (const Deadline deadline = soon(); !deadline.passed();) {
    auto opened = OpenFile::open(Memory::file(path, 0, file_bytes, options));
    if (opened) return segment_of(*opened);
    if (opened.error().code() != Code::unavailable) break;
  }
  return nullptr;
}

class KilledWriter : public testing::TestWithParam<std::string> {
 protected:
  const Folder folder;
  const std::string path = folder.at("pages");
};

/// Blocks that had sums, and blocks that had none.
TEST_P(KilledWriter, LeavesEachBlockOldOrNewOrFoundOut) {
  const SegmentPtr memory = segment_of(Memory::own(file_bytes));
  const Pair all[] = {{0, 0, file_bytes}};
  std::mt19937 random(12);
  std::array<std::size_t, 3> seen{};  // old, new, found out
  const int kills = weft::test::long_forms() ? 200 : 16;
  for (int kill = 0; kill < kills; ++kill) {
    FileOptions options = checked();
    options.direct = kill % 2 == 0;
    put(path, pattern(file_bytes, seed_of(0)));
    std::filesystem::remove(path + ".xxh3");
    fill({memory->address(), file_bytes}, seed_of(0));
    if (kill % 4 < 2) {
      ASSERT_TRUE(copy_by_file(open_after(path, options), memory, all, soon()));
    }
    const auto ended =
        killed_while_writing(GetParam(), path, options, std::chrono::microseconds(random() % 4000));
    ASSERT_TRUE(ended);
    const SegmentPtr file = open_after(path, options);
    ASSERT_NE(file, nullptr);
    for (std::size_t i = 0; i < blocks; ++i) {
      const Pair one[] = {{i * block, i * block, block}};
      const auto read = copy_by_file(memory, file, one, soon());
      const Bytes bytes{memory->address() + i * block, block};
      if (!read) {
        ASSERT_EQ(read.error().code(), Code::corrupt) << read.error().to_string();
        ++seen[2];
      } else if (holds(bytes, seed_of(*ended), i * block)) {
        ++seen[0];
      } else {
        ASSERT_TRUE(holds(bytes, seed_of(*ended + 1), i * block))
            << "kill " << kill << ", block " << i;
        ++seen[1];
      }
    }
  }
  EXPECT_GT(seen[0] + seen[1], 0U);
  std::cout << "blocks: " << seen[0] << " old, " << seen[1] << " new, " << seen[2]
            << " found out\n";
}

INSTANTIATE_TEST_SUITE_P(Files, KilledWriter, testing::Values("ring", "threads", "pages"),
                         [](const auto& how) { return how.param; });

/// How files of sums are opened.
class SumsOf : public testing::Test {
 protected:
  static Result<std::shared_ptr<OpenFile>> open(const Memory& memory) {
    return OpenFile::open(memory);
  }
  Result<std::shared_ptr<OpenFile>> open(const FileOptions& options) const {
    return OpenFile::open(Memory::file(path, 0, file_bytes, options));
  }

  const Folder folder;
  const std::string path = folder.at("pages"), sums = path + ".xxh3";
};

TEST_F(SumsOf, AFileThatDoesNotFitIsRefused) {
  must_open(Memory::file(path, 0, file_bytes, checked()));
  EXPECT_TRUE(
      fails(open(checked(4096)), Code::invalid_argument, "blocks of 65536 bytes, not 4096"));
  EXPECT_TRUE(open(checked()));
  const Blob good = contents_of(sums);
  flip_a_bit(sums, 8);
  EXPECT_TRUE(fails(open(checked()), Code::invalid_argument, "version"));
  put(sums, good);
  flip_a_bit(sums, 3);
  EXPECT_TRUE(fails(open(checked()), Code::invalid_argument, "'" + sums + "' is no file of sums"));
  put(sums, Blob(7));
  EXPECT_TRUE(fails(open(checked()), Code::invalid_argument, "is no file of sums"));
}

TEST_F(SumsOf, BlocksHaveASizeAndTheFileIsMadeOfThem) {
  const auto refuses = [&](std::uint64_t offset, std::size_t bytes, std::uint64_t size) {
    return fails(open(Memory::file(path, offset, bytes, checked(size))), Code::invalid_argument,
                 "");
  };
  EXPECT_TRUE(refuses(0, 1 << 20, 2048));
  EXPECT_TRUE(refuses(0, 3 << 20, 3 << 12));
  EXPECT_TRUE(refuses(0, block + 1, block));
  EXPECT_TRUE(refuses(4096, block, block));
  EXPECT_TRUE(open(Memory::file(path, block, block, checked())));
}

TEST_F(SumsOf, WhereTheyLieIsSaidForADescriptor) {
  put(path, pattern(file_bytes, 1));
  const Descriptor fd(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  FileOptions options = checked();
  EXPECT_TRUE(fails(open(Memory::file(fd.get(), 0, 0, options)), Code::invalid_argument,
                    "FileOptions::sums"));
  options.sums = folder.at("elsewhere");
  EXPECT_TRUE(open(Memory::file(fd.get(), 0, 0, options)));
  EXPECT_TRUE(std::filesystem::exists(options.sums));
  EXPECT_FALSE(std::filesystem::exists(sums));
}

/// A file as a block device, for as long as this is.
class Loop {
 public:
  explicit Loop(const Folder& folder) {
    const std::string image = folder.write("image", ""), said = folder.at("said");
    std::filesystem::resize_file(image, file_bytes);
    made_ = std::system(("losetup -f --show " + image + " >" + said + " 2>/dev/null").c_str()) == 0;
    std::getline(std::ifstream(said), path_);
  }
  ~Loop() {
    if (!made_) return;
    EXPECT_EQ(std::system(("losetup -d " + path_).c_str()), 0);
  }
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;
  bool made() const { return made_; }
  const std::string& path() const { return path_; }

 private:
  bool made_ = false;
  std::string path_;
};

TEST_F(SumsOf, WhereTheyLieIsSaidForABlockDevice) {
  const Loop device(folder);
  if (!device.made()) GTEST_SKIP() << "it takes root and a loop device";
  FileOptions options = checked();
  EXPECT_TRUE(fails(open(Memory::file(device.path(), 0, 0, options)), Code::invalid_argument,
                    "FileOptions::sums"));
  options.sums = sums;
  const SegmentPtr file = segment_of(must_open(Memory::file(device.path(), 0, 0, options)));
  const SegmentPtr memory = segment_of(Memory::own(file_bytes));
  const Pair all[] = {{0, 0, file_bytes}};
  fill({memory->address(), file_bytes}, 1);
  ASSERT_TRUE(copy_by_file(file, memory, all, soon()));
  fill({memory->address(), file_bytes}, 2);
  ASSERT_TRUE(copy_by_file(memory, file, all, soon()));
  EXPECT_TRUE(holds({memory->address(), file_bytes}, 1));
  flip_a_bit(sums, head + 12 * 8);
  EXPECT_TRUE(fails(copy_by_file(memory, file, all, soon()), Code::corrupt, device.path()));
}

TEST_F(SumsOf, AReaderMakesNone) {
  put(path, pattern(file_bytes, 1));
  FileOptions options = checked();
  options.read_only = true;
  EXPECT_TRUE(fails(open(options), Code::not_found, sums));
  must_open(Memory::file(path, 0, block, checked()));
  EXPECT_TRUE(fails(open(options), Code::unavailable, "ends before the sums of byte"));
  EXPECT_TRUE(open(Memory::file(path, 0, block, options)));
}

TEST_F(SumsOf, OneMayWriteABlockOrSeveralMayReadIt) {
  FileOptions reads = checked();
  reads.read_only = true;
  {
    const auto writer = must_open(Memory::file(path, 0, file_bytes, checked()));
    EXPECT_TRUE(fails(open(checked()), Code::unavailable, "is in use"));
    EXPECT_TRUE(fails(open(reads), Code::unavailable, "is in use"));
    EXPECT_TRUE(open(Memory::file(path, file_bytes, block, checked()))) << "of other blocks";
  }
  const auto one = must_open(Memory::file(path, 0, file_bytes, reads));
  EXPECT_TRUE(open(reads));
  EXPECT_TRUE(fails(open(checked()), Code::unavailable, "is in use"));
}

/// Such as those of a file that was removed and made anew.
/// Nobody could be kept off then. A file that is not checked can be used all the same.
TEST_F(SumsOf, WhereThereAreNoLocksNothingIsChecked) {
  put(path, pattern(file_bytes, 1));
  must_open(Memory::file(path, 0, file_bytes, checked()));
  FileOptions reads = checked(), unchecked;
  reads.read_only = true;
  unchecked.create = true;
  const Warnings warnings;
  for (const int error : {ENOLCK, ENOSYS, EOPNOTSUPP}) {
    const RefusedCall no_locks{SYS_fcntl, 1, ~0U, F_OFD_SETLK, static_cast<std::uint32_t>(error)};
    const bool tried = where_refused(no_locks, [&] {
      for (const FileOptions& options : {checked(), reads})
        EXPECT_TRUE(fails(open(options), Code::unsupported, "'" + sums + "': ") &&
                    fails(open(options), Code::unsupported, "the file system has no locks"));
      EXPECT_TRUE(open(unchecked));
    });
    if (!tried) GTEST_SKIP() << "no system call can be refused here";
  }
  EXPECT_GT(warnings.about("'" + path + "': its file system has no locks"), 0);
}

/// As some network file systems give them to everybody.
TEST_F(SumsOf, LocksThatKeepNobodyOffAreFoundOut) {
  put(path, pattern(file_bytes, 1));
  must_open(Memory::file(path, 0, file_bytes, checked()));
  FileOptions reads = checked();
  reads.read_only = true;
  const bool tried = where_refused({SYS_fcntl, 1, ~0U, F_OFD_SETLK, 0}, [&] {
    for (const FileOptions& options : {checked(), reads})
      EXPECT_TRUE(fails(open(options), Code::unsupported, "gives one lock to several"));
  });
  if (!tried) GTEST_SKIP() << "no system call can be refused here";
  EXPECT_TRUE(open(reads));
  EXPECT_TRUE(open(checked()));
}

TEST_F(SumsOf, WhatAFileDidNotHaveIsForgotten) {
  const auto write_all = [&] {
    const SegmentPtr file = segment_of(must_open(Memory::file(path, 0, file_bytes, checked())));
    const SegmentPtr memory = segment_of(Memory::own(file_bytes));
    const Pair all[] = {{0, 0, file_bytes}};
    fill({memory->address(), file_bytes}, 1);
    EXPECT_TRUE(copy_by_file(file, memory, all, soon()));
  };
  write_all();
  ASSERT_EQ(truncate(path.c_str(), 10 * block), 0);
  const SegmentPtr memory = segment_of(Memory::own(file_bytes));
  const Pair all[] = {{0, 0, file_bytes}};
  {
    const SegmentPtr grown = segment_of(must_open(Memory::file(path, 0, file_bytes, checked())));
    EXPECT_TRUE(copy_by_file(memory, grown, all, soon()));
    flip_a_bit(path, 9 * block);
    EXPECT_FALSE(copy_by_file(memory, grown, all, soon())) << "those that it had are known";
  }
  std::filesystem::remove(path);
  const SegmentPtr anew = segment_of(must_open(Memory::file(path, 0, file_bytes, checked())));
  EXPECT_TRUE(copy_by_file(memory, anew, all, soon()));
}

TEST_F(SumsOf, HowAFileIsUsedSaysThatItIsChecked) {
  const auto file = must_open(Memory::file(path, 0, file_bytes, checked()));
  EXPECT_THAT(file->how(), HasSubstr("its blocks of 65536 bytes checked"));
}

}  // namespace
}  // namespace weft::core::test::block_sums_tests
