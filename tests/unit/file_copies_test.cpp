// Copies between files and memory by real channels, and what goes wrong with files.
#include "services/file_copies.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <filesystem>
#include <thread>

#include "base/descriptor.hpp"
#include "device/file/io_channel.hpp"
#include "file_segments.hpp"
#include "files.hpp"
#include "folder.hpp"
#include "forked.hpp"
#include "hung_drive.hpp"
#include "pattern.hpp"
#include "refused_calls.hpp"

namespace weft::core::test::file_copies_tests {
namespace {

using testing::HasSubstr;
using weft::test::contents_of;
using weft::test::expected_after;
using weft::test::fill;
using weft::test::Folder;
using weft::test::HungDrive;
using weft::test::Mounted;
using weft::test::pattern;
using weft::test::put;
using weft::test::same_bytes;
using weft::test::where_refused;

constexpr std::size_t file_bytes = (3 << 20) + 777, memory_bytes = 4 << 20;

Deadline soon() {
  return Deadline::in(std::chrono::seconds(60));
}

/// Whole pages, edges, pieces within a page, and more than one read or write takes. `local` is in
/// memory, `remote` in the file.
const std::vector<Pair> pieces = {{0, 4096, 8192},
                                  {9000, 1, 4094},
                                  {20'480, 12'288, 1'300'000},
                                  {1'400'001, 1'350'003, 1},
                                  {1'500'001, 1'400'000, 1'500'000},
                                  {3'100'000, file_bytes - 100, 100}};

std::vector<Pair> other_way(std::vector<Pair> pairs) {
  for (Pair& each : pairs) std::swap(each.local, each.remote);
  return pairs;
}

/// Every byte of both sides after copies both ways.
void expect_copies(const std::string& path, const FileOptions& options = {}) {
  put(path, pattern(file_bytes, 1));
  const SegmentPtr file = segment_of(must_open(Memory::file(path, 0, file_bytes, options)));
  const SegmentPtr memory = segment_of(Memory::own(memory_bytes));
  fill({memory->address(), memory_bytes}, 2);
  const Blob memory_before(memory->address(), memory->address() + memory_bytes);
  auto copied = copy_by_file(memory, file, pieces, soon());
  ASSERT_TRUE(copied) << copied.error().to_string();
  EXPECT_TRUE(same_bytes(bytes_of(memory), expected_after(memory_before, pattern(file_bytes, 1),
                                                          Direction::read, pieces)));
  fill({memory->address(), memory_bytes}, 3);
  copied = copy_by_file(file, memory, other_way(pieces), soon());
  ASSERT_TRUE(copied) << copied.error().to_string();
  EXPECT_TRUE(same_bytes(contents_of(path), expected_after(pattern(file_bytes, 1), bytes_of(memory),
                                                           Direction::write, pieces)));
}

/// By io_uring where it is permitted, and by threads.
class FileCopies : public testing::TestWithParam<bool> {
 protected:
  FileCopies() {
    if (GetParam()) make_io_channels_by(open_io_threads);
  }
  ~FileCopies() override { make_io_channels_by({}); }

  const Folder folder;
  const std::string path = folder.at("pages");
};

TEST_P(FileCopies, EveryByte) {
  expect_copies(path);
}

TEST_P(FileCopies, EveryByteBuffered) {
  FileOptions options;
  options.direct = false;
  expect_copies(path, options);
}

TEST_P(FileCopies, EveryByteDurably) {
  FileOptions options;
  options.durable = true;
  expect_copies(path, options);
}

TEST_P(FileCopies, AFileOfADescriptorGrowsAsItIsWritten) {
  FileOptions options;
  options.create = true;
  const Descriptor fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  const auto code_of = [](const auto& result) { return result ? Code{} : result.error().code(); };
  const SegmentPtr memory = segment_of(Memory::own(memory_bytes));
  fill({memory->address(), memory_bytes}, 1);
  const SegmentPtr file = segment_of(must_open(Memory::file(fd.get(), 0, memory_bytes, options)));
  EXPECT_EQ(std::filesystem::file_size(path), 0U);
  const Pair all[] = {{0, 0, memory_bytes}}, some[] = {{8192, 8192, 5000}};
  EXPECT_EQ(code_of(copy_by_file(memory, file, all, soon())), Code::unavailable);
  EXPECT_TRUE(copy_by_file(file, memory, some, soon()));
  EXPECT_EQ(std::filesystem::file_size(path), 13'192U);
  EXPECT_EQ(code_of(copy_by_file(memory, file, all, soon())), Code::unavailable);
  fill({memory->address(), memory_bytes}, 1);
  EXPECT_TRUE(copy_by_file(file, memory, all, soon()));
  EXPECT_TRUE(same_bytes(contents_of(path), pattern(memory_bytes, 1)));
  options.read_only = true;
  EXPECT_EQ(code_of(OpenFile::open(Memory::file(fd.get(), 1, memory_bytes, options))),
            Code::invalid_argument);
}

TEST_P(FileCopies, EveryByteOnATmpfsAndNoMoreThanItHolds) {
  Mounted full = Mounted::tmpfs(folder, "5m");
  if (!full.why_not().empty()) GTEST_SKIP() << full.why_not();
  expect_copies(full.at("pages"));
  {
    FileOptions create;
    create.create = true;
    const SegmentPtr file =
        segment_of(must_open(Memory::file(full.at("more"), 0, 4 << 20, create)));
    const SegmentPtr memory = segment_of(Memory::own(4 << 20));
    const Pair small[] = {{0, 0, 1000}}, all[] = {{0, 0, 4 << 20}};
    EXPECT_TRUE(copy_by_file(file, memory, small, soon()));
    const auto failed = copy_by_file(file, memory, all, soon());
    ASSERT_FALSE(failed);
    EXPECT_THAT(failed.error().message(), HasSubstr("No space left on device (errno 28)"));
    EXPECT_THAT(failed.error().message(), HasSubstr(full.path()));
  }
  EXPECT_TRUE(full.unmount());
}

TEST_P(FileCopies, EveryByteOnExt4) {
  Mounted ext4 = Mounted::ext4(folder);
  if (!ext4.why_not().empty()) GTEST_SKIP() << ext4.why_not();
  expect_copies(ext4.at("pages"));
  EXPECT_TRUE(must_open(Memory::file(ext4.at("pages"), 0, file_bytes))->direct());
  EXPECT_TRUE(ext4.unmount());
}

TEST_P(FileCopies, AFileThatIsCutOffIsAnError) {
  put(path, pattern(file_bytes, 1));
  const SegmentPtr file = segment_of(must_open(Memory::file(path, 0, file_bytes)));
  const SegmentPtr memory = segment_of(Memory::own(memory_bytes));
  ASSERT_EQ(truncate(path.c_str(), 5000), 0);
  const Pair gone[] = {{0, 0, 4096}, {8192, 500'000, 4096}}, within[] = {{0, 2000, 500'000}},
             left[] = {{0, 0, 5000}};
  for (const std::span<const Pair> pairs :
       {std::span<const Pair>(gone), std::span<const Pair>(within)}) {
    const auto failed = copy_by_file(memory, file, pairs, soon());
    ASSERT_FALSE(failed);
    EXPECT_EQ(failed.error().code(), Code::unavailable);
    EXPECT_THAT(failed.error().message(), HasSubstr("'" + path + "' ends at byte 5000: "));
  }
  EXPECT_TRUE(copy_by_file(memory, file, left, soon()));
  EXPECT_TRUE(same_bytes({memory->address(), 5000}, pattern(5000, 1)));
}

TEST_P(FileCopies, ManyAtATime) {
  const Blob content = pattern(file_bytes, 1);
  put(path, content);
  const SegmentPtr file = segment_of(must_open(Memory::file(path, 0, file_bytes)));
  const SegmentPtr memory = segment_of(Memory::own(memory_bytes));
  constexpr std::size_t page = 4096, copies = 500;
  for (const std::uint64_t round : {0U, 1U}) {
    std::vector<std::unique_ptr<FileCopyState>> under_way;
    for (std::size_t i = 0; i < copies; ++i) {
      const Pair piece[] = {{i * page, (copies - i) * page + round, page}};
      auto copy = FileCopyState::begin(memory, file, piece);
      ASSERT_TRUE(copy);
      under_way.push_back(std::move(*copy));
    }
    for (std::size_t i = copies; i-- > 0;) ASSERT_TRUE(under_way[i]->wait(soon()));
    for (std::size_t i = 0; i < copies; ++i)
      ASSERT_TRUE(same_bytes({memory->address() + i * page, page},
                             std::span(content).subspan((copies - i) * page + round, page)));
  }
}

/// One of them learns the ends of all, and hands that on when it goes.
TEST_P(FileCopies, ManyThreadsWait) {
  const Blob content = pattern(file_bytes, 1);
  put(path, content);
  FileOptions options;
  options.queue_depth = 2;
  const SegmentPtr file = segment_of(must_open(Memory::file(path, 0, file_bytes, options)));
  const SegmentPtr memory = segment_of(Memory::own(memory_bytes));
  constexpr std::size_t page = 16'384, threads = 6, rounds = 50;
  std::atomic<std::size_t> failed = 0;
  std::vector<std::thread> all;
  for (std::size_t i = 0; i < threads; ++i)
    all.emplace_back([&, i] {
      for (std::size_t round = 0; round < rounds; ++round) {
        const Pair piece[] = {{i * page, (i + round) * page, page}};
        const bool right = copy_by_file(memory, file, piece, soon()) &&
                           same_bytes({memory->address() + i * page, page},
                                      std::span(content).subspan((i + round) * page, page));
        if (!right) ++failed;
      }
    });
  for (auto& each : all) each.join();
  EXPECT_EQ(failed, 0U);
}

INSTANTIATE_TEST_SUITE_P(Files, FileCopies, testing::Bool(), [](const auto& by_threads) {
  return by_threads.param ? "threads" : "ring";
});

TEST(OpenFile, RefusesWhatIsNoFileAndWhatIsTooShort) {
  const Folder folder;
  const auto code_of = [](const Memory& memory) {
    const auto opened = OpenFile::open(memory);
    return opened ? Code{} : opened.error().code();
  };
  EXPECT_EQ(code_of(Memory::file(folder.at("none"), 0, 1)), Code::not_found);
  EXPECT_EQ(code_of(Memory::file(folder.at(""), 0, 1)), Code::invalid_argument);
  const std::string pipe = folder.at("pipe");
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(code_of(Memory::file(pipe, 0, 1)), Code::invalid_argument);
  const std::string file = folder.write("file", "0123456789");
  EXPECT_EQ(code_of(Memory::file(file, 0, 11)), Code::invalid_argument);
  EXPECT_EQ(code_of(Memory::file(file, 10, 0)), Code::invalid_argument);
  EXPECT_EQ(must_open(Memory::file(file, 4, 0))->size(), 6U) << "up to the end";
  FileOptions create;
  create.create = true;
  EXPECT_EQ(must_open(Memory::file(file, 0, 20, create))->size(), 20U);
  EXPECT_EQ(std::filesystem::file_size(file), 20U);
}

FileOptions reserving() {
  FileOptions options;
  options.create = true;
  options.reserve = true;
  return options;
}

TEST(OpenFile, ReservesRoomOrSaysHowMuchThereIs) {
  const Folder folder;
  Mounted small = Mounted::tmpfs(folder, "5m");
  if (!small.why_not().empty()) GTEST_SKIP() << small.why_not();
  const auto blocks_of = [](const std::string& path) {
    struct stat status {};
    return stat(path.c_str(), &status) == 0 ? static_cast<std::size_t>(status.st_blocks) : 0;
  };
  FileOptions checked = reserving();
  checked.checked_block = 4096;
  const std::string one = small.at("one"), two = small.at("two");
  ASSERT_TRUE(OpenFile::open(Memory::file(one, 0, 3 << 20, checked)));
  EXPECT_EQ(blocks_of(one) * 512, 3U << 20);
  EXPECT_GE(blocks_of(one + ".xxh3") * 512, std::filesystem::file_size(one + ".xxh3"));
  ASSERT_TRUE(OpenFile::open(Memory::file(two, 0, 100, reserving())));
  const auto opened = OpenFile::open(Memory::file(two, 0, 4 << 20, reserving()));
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code(), Code::unavailable);
  EXPECT_THAT(opened.error().message(), HasSubstr("'" + two + "': no room for 4194304 bytes"));
  EXPECT_THAT(opened.error().message(), testing::ContainsRegex("has [0-9]+ free"));
  EXPECT_EQ(std::filesystem::file_size(two), 100U) << "as it was";
  EXPECT_LE(blocks_of(two) * 512, 4096U);
  EXPECT_TRUE(small.unmount());
}

TEST(OpenFile, RoomThatCantBeReservedIsAnError) {
  const Folder folder;
  const auto file = [&](const FileOptions& options) {
    return OpenFile::open(Memory::file(folder.at("file"), 0, 8192, options));
  };
  const bool tried = where_refused({SYS_fallocate, 1, ~0U, 0, EOPNOTSUPP}, [&] {
    const auto refused = file(reserving());
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code(), Code::unsupported);
    EXPECT_THAT(refused.error().message(), HasSubstr("can't reserve room"));
  });
  FileOptions reads = reserving();
  ASSERT_TRUE(file(reserving()));
  reads.read_only = true;
  const auto refused = file(reads);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Code::invalid_argument);
  if (!tried) GTEST_SKIP() << "no system call can be refused here";
}

TEST(OpenFile, TheLimitOfOpenFilesIsNamed) {
  const Folder folder;
  const std::string path = folder.write("file", "0123456789");
  EXPECT_EQ(weft::test::in_forked_child([&] {
              const Descriptor next(dup(0));
              const auto most = static_cast<rlim_t>(next.get());
              const rlimit limit{most, most};
              if (setrlimit(RLIMIT_NOFILE, &limit) != 0) return 1;
              const auto opened = OpenFile::open(Memory::file(path, 0, 0));
              if (opened) return 2;
              const std::string words =
                  "(the process may have " + std::to_string(most) + ": RLIMIT_NOFILE";
              return opened.error().message().find(words) == std::string::npos ? 3 : 0;
            }),
            0);
}

TEST(OpenFile, HasASecondDescriptorForDirectIoAlone) {
  const Folder folder;
  const std::string path = folder.write("file", std::string(8192, 'x'));
  const auto open_files = [] {
    const std::filesystem::directory_iterator all("/proc/self/fd");
    return std::distance(begin(all), end(all));
  };
  const auto before = open_files();
  FileOptions buffered;
  buffered.direct = false;
  for (const auto& [bytes, options] :
       {std::pair(8192U, buffered), std::pair(4095U, FileOptions())}) {
    const auto file = must_open(Memory::file(path, 0, bytes, options));
    EXPECT_FALSE(file->direct());
    EXPECT_EQ(open_files(), before + 1) << file->how();
  }
  const auto file = must_open(Memory::file(path, 0, 8192));
  EXPECT_EQ(open_files(), before + (file->direct() ? 2 : 1)) << file->how();
}

/// A file whose device hangs, and memory.
struct Hung {
  explicit Hung(const FileOptions& options, std::size_t bytes = 4096)
      : memory(segment_of(Memory::own(bytes))) {
    put(path, pattern(file_bytes, 1));
    file = segment_of(must_open(Memory::file(path, 0, file_bytes, options)));
  }
  const Folder folder;
  const std::string path = folder.at("pages");
  HungDrive device;
  SegmentPtr file;
  const SegmentPtr memory;
};

/// The error says why, and the memory stays in use until the device answers.
TEST(HungFile, EndsACopyInTimeAndHoldsItsMemory) {
  for (const bool by_deadline : {false, true}) {
    FileOptions options;
    if (!by_deadline) options.timeout = std::chrono::milliseconds(50);
    Hung hung(options);
    const SegmentPtr &file = hung.file, &memory = hung.memory;
    const Pair piece[] = {{0, 0, 4096}};
    const auto failed = copy_by_file(
        memory, file, piece, by_deadline ? Deadline::in(std::chrono::milliseconds(50)) : soon());
    ASSERT_FALSE(failed);
    EXPECT_EQ(failed.error().code(), Code::timed_out);
    EXPECT_THAT(failed.error().message(), HasSubstr("'" + hung.path + "': "));
    const auto in_use = wait_for_copies(*memory, Deadline::in(std::chrono::milliseconds(20)));
    ASSERT_FALSE(in_use);
    EXPECT_EQ(in_use.error().code(), Code::quarantined);
    hung.device.release();
    EXPECT_TRUE(wait_for_copies(*memory, soon()));
    EXPECT_TRUE(memory->users().idle());
    EXPECT_TRUE(same_bytes(bytes_of(memory), pattern(4096, 1)));
  }
}

/// What of a copy the drive has not taken can be called off; the rest is waited for.
TEST(HungFile, LetsACopyBeCancelled) {
  FileOptions options;
  options.queue_depth = 1;
  Hung hung(options, 3 * 4096);
  const SegmentPtr &file = hung.file, &memory = hung.memory;
  fill({memory->address(), memory->size()}, 2);
  const Blob before(memory->address(), memory->address() + memory->size());
  const Pair pages[] = {{0, 0, 4096}, {4096, 8192, 4096}, {8192, 4096, 4096}};
  auto copy = FileCopyState::begin(memory, file, pages);
  ASSERT_TRUE(copy);
  EXPECT_FALSE((*copy)->ended());
  EXPECT_EQ((*copy)->wait(Deadline::in(std::chrono::milliseconds(20))).error().code(),
            Code::timed_out);
  (*copy)->cancel();
  EXPECT_FALSE((*copy)->ended()) << "a page is on its way";
  EXPECT_FALSE((*copy)->quiescent());
  hung.device.release();
  EXPECT_EQ((*copy)->wait_quiescent(soon()).error().code(), Code::cancelled);
  EXPECT_TRUE((*copy)->ended());
  EXPECT_TRUE(same_bytes(bytes_of(memory), expected_after(before, pattern(file_bytes, 1),
                                                          Direction::read, {pages, 1})));
  // The queue serves the next one.
  copy = FileCopyState::begin(memory, file, pages);
  ASSERT_TRUE(copy);
  EXPECT_TRUE((*copy)->wait(soon()));
  EXPECT_TRUE(same_bytes(bytes_of(memory),
                         expected_after(before, pattern(file_bytes, 1), Direction::read, pages)));
}

/// It has failed, and still has its memory.
TEST(HungFile, TellsWhenTheMemoryIsFree) {
  FileOptions options;
  options.timeout = std::chrono::milliseconds(30);
  Hung hung(options);
  const std::string named = "'" + hung.path + "': ";
  const Pair piece[] = {{0, 0, 4096}};
  auto copy = FileCopyState::begin(hung.memory, hung.file, piece);
  ASSERT_TRUE(copy);
  EXPECT_THAT((*copy)->wait(soon()).error().message(), HasSubstr(named));
  EXPECT_TRUE((*copy)->ended());
  EXPECT_FALSE((*copy)->quiescent());
  EXPECT_EQ((*copy)->wait_quiescent(Deadline::in(std::chrono::milliseconds(20))).error().code(),
            Code::timed_out);
  hung.device.release();
  const auto ended = (*copy)->wait_quiescent(soon());
  ASSERT_FALSE(ended) << "how it ended stays";
  EXPECT_THAT(ended.error().message(), HasSubstr(named));
  EXPECT_TRUE((*copy)->quiescent());
}

TEST(CopyByFile, RefusesWhatIsNotAFileAndMemory) {
  const Folder folder;
  const std::string path = folder.at("pages");
  put(path, pattern(4096, 1));
  FileOptions read_only;
  read_only.read_only = true;
  const SegmentPtr file = segment_of(must_open(Memory::file(path, 0, 4096, read_only)));
  const SegmentPtr memory = segment_of(Memory::own(4096));
  const Pair piece[] = {{0, 0, 4096}}, outside[] = {{1, 0, 4096}};
  const auto code_of = [](const Result<void>& result) {
    return result ? Code{} : result.error().code();
  };
  EXPECT_EQ(code_of(copy_by_file(memory, memory, piece, soon())), Code::unsupported);
  EXPECT_EQ(code_of(copy_by_file(file, file, piece, soon())), Code::unsupported);
  EXPECT_EQ(code_of(copy_by_file(file, memory, piece, soon())), Code::permission_denied);
  EXPECT_EQ(code_of(copy_by_file(memory, file, outside, soon())), Code::invalid_argument);
}

}  // namespace
}  // namespace weft::core::test::file_copies_tests
