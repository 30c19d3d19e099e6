// Queues of files over a channel that ends reads and writes as the test says.
#include "device/file/file_queue.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/syscall.h>

#include <array>
#include <cerrno>
#include <deque>
#include <filesystem>
#include <fstream>
#include <thread>

#include "device/file/io_ring.hpp"
#include "folder.hpp"
#include "pattern.hpp"
#include "refused_calls.hpp"

namespace weft::core::test::file_queue_tests {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using weft::test::Folder;
using weft::test::pattern;
using weft::test::same_bytes;

constexpr std::size_t file_bytes = 8 << 20, page = file_page;

/// What was begun, and what is to be told of it.
struct Script {
  bool full = false;  // it takes nothing
  std::vector<Io*> begun;
  std::deque<Io*> over;

  /// As pread or pwrite does it, but at most so many bytes.
  void carry_out(Io& io, std::size_t most = SIZE_MAX) {
    const std::size_t bytes = std::min(io.bytes, most);
    const auto at = static_cast<off_t>(io.at);
    const ssize_t done =
        io.write ? pwrite(io.fd, io.memory, bytes, at) : pread(io.fd, io.memory, bytes, at);
    end(io, done < 0 ? -errno : done);
  }
  void end(Io& io, std::int64_t result) {
    std::erase(begun, &io);
    io.result = result;
    over.push_back(&io);
  }
  void carry_out_all() {
    while (!begun.empty()) carry_out(*begun.front());
  }
};

class Scripted final : public IoChannel {
 public:
  explicit Scripted(Script& script) : script_(script) {}
  bool begin(Io& io) override {
    if (!script_.full) script_.begun.push_back(&io);
    return !script_.full;
  }
  std::size_t ended(std::span<Io*> into) override {
    std::size_t count = 0;
    for (; count < into.size() && !script_.over.empty(); script_.over.pop_front())
      into[count++] = script_.over.front();
    return count;
  }
  void wait(Deadline) override {}

 private:
  Script& script_;
};

class FileQueueTest : public testing::Test {
 protected:
  std::shared_ptr<OpenFile> open(const FileOptions& options = {}) {
    if (!std::filesystem::exists(path)) {
      const Blob bytes = pattern(file_bytes, 1);
      std::ofstream(path, std::ios::binary)
          .write(reinterpret_cast<const char*>(bytes.data()), file_bytes);
    }
    auto opened = OpenFile::open(Memory::file(path, 0, file_bytes, options));
    EXPECT_TRUE(opened) << opened.error().to_string();
    return *opened;
  }
  static FileQueue queue_of(const OpenFile& file, Script& script) {
    return FileQueue(file.disk(), std::make_unique<Scripted>(script));
  }
  Copy out(const OpenFile& file, std::size_t at, std::size_t bytes) {
    return {memory.data() + at, file.address() + at, bytes};
  }
  static std::uint64_t begin(FileQueue& queue, const Copy& copy,
                             Priority priority = Priority::normal) {
    const auto begun = queue.copy({&copy, 1}, priority);
    EXPECT_FALSE(begun.error) << begun.error->to_string();
    return begun.number;
  }

  const Folder folder;
  const std::string path = folder.at("file");
  Blob memory = Blob(file_bytes);
  Script script;
};

TEST_F(FileQueueTest, CutsWholePagesFromTheirEdges) {
  const auto file = open();
  FileQueue queue = queue_of(*file, script);
  begin(queue, out(*file, 100, 3 * page));
  if (!file->direct()) {
    ASSERT_THAT(script.begun, SizeIs(1)) << file->how();
  } else {
    ASSERT_THAT(script.begun, SizeIs(3));
    EXPECT_EQ(script.begun[0]->at, 100U);
    EXPECT_EQ(script.begun[1]->at, page);
    EXPECT_EQ(script.begun[1]->bytes, 2 * page);
    EXPECT_EQ(script.begun[1]->fd, file->fd(true));
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(script.begun[1]->memory) % page, 0U);
    EXPECT_EQ(script.begun[2]->fd, file->fd(false));
  }
  script.carry_out_all();
  const auto news = queue.news();
  ASSERT_THAT(news, SizeIs(1));
  EXPECT_FALSE(news.front().error);
  EXPECT_TRUE(same_bytes({memory.data() + 100, 3 * page}, pattern(3 * page, 1, 100)));
}

TEST_F(FileQueueTest, GoesOnWhereTheKernelStops) {
  const auto file = open();
  FileQueue queue = queue_of(*file, script);
  begin(queue, out(*file, 0, 4 * page));
  while (script.over.empty() && !script.begun.empty()) {
    script.carry_out(*script.begun.front(), page);
    if (const auto news = queue.news(); !news.empty()) {
      EXPECT_FALSE(news.front().error);
      break;
    }
  }
  EXPECT_TRUE(same_bytes({memory.data(), 4 * page}, pattern(4 * page, 1)));
}

TEST_F(FileQueueTest, EndsInAnyOrder) {
  const auto file = open();
  FileQueue queue = queue_of(*file, script);
  begin(queue, out(*file, 0, page));
  const std::uint64_t second = begin(queue, out(*file, 8 * page, page));
  script.carry_out(*script.begun[1]);
  const auto news = queue.news();
  ASSERT_THAT(news, SizeIs(1));
  EXPECT_EQ(news.front().number, second);
  script.carry_out_all();
  EXPECT_THAT(queue.news(), SizeIs(1));
}

TEST_F(FileQueueTest, AnErrorIsThatCopysAlone) {
  const auto file = open();
  FileQueue queue = queue_of(*file, script);
  const std::uint64_t failing = begin(queue, out(*file, 0, page));
  begin(queue, out(*file, page, page));
  script.end(*script.begun.front(), -EIO);
  script.carry_out_all();
  for (const auto& each : queue.news()) {
    EXPECT_EQ(each.error.has_value(), each.number == failing);
    if (each.error) {
      EXPECT_THAT(each.error->message(), HasSubstr("'" + path + "' failed: Input/output error"));
    }
  }
}

TEST_F(FileQueueTest, TheDepthIsKeptAndUrgentClassesGoFirst) {
  FileOptions options;
  options.queue_depth = 4;
  const auto file = open(options);
  FileQueue queue = queue_of(*file, script);
  for (std::size_t i = 0; i < 8; ++i) begin(queue, out(*file, i * page, page), Priority::bulk);
  EXPECT_THAT(script.begun, SizeIs(1)) << "a quarter";
  for (std::size_t i = 8; i < 16; ++i) begin(queue, out(*file, i * page, page), Priority::latency);
  ASSERT_THAT(script.begun, SizeIs(4));
  std::size_t latency_left = 8 - 3;
  while (!script.begun.empty()) {
    script.carry_out(*script.begun.front());
    queue.news();
    ASSERT_LE(script.begun.size(), 4U);
    for (const Io* io : script.begun)
      if (latency_left > 3 && io != script.begun.front()) {
        EXPECT_GE(io->at, 8 * page) << "a prefetch goes before what a token waits for";
      }
    if (latency_left > 0) --latency_left;
  }
  EXPECT_THAT(queue.news(), IsEmpty());
}

TEST_F(FileQueueTest, BytesUnderWayAreBounded) {
  FileOptions options;
  options.bytes_in_flight = 4 << 20;
  const auto file = open(options);
  FileQueue queue = queue_of(*file, script);
  begin(queue, out(*file, 0, file_bytes));
  EXPECT_THAT(script.begun, SizeIs(3)) << "three quarters, in parts of 1 MiB";
  while (!script.begun.empty()) {
    script.carry_out(*script.begun.front());
    if (!queue.news().empty()) break;
    std::uint64_t bytes = 0;
    for (const Io* io : script.begun) bytes += io->bytes;
    EXPECT_LE(bytes, 3U << 20);
  }
  EXPECT_TRUE(same_bytes(memory, pattern(file_bytes, 1)));
}

/// A kernel that is short of memory, or a channel of room, is no fault of the file's.
TEST_F(FileQueueTest, WhatIsRefusedForNowIsBegunAgain) {
  for (const std::size_t block : {std::size_t{0}, std::size_t{4096}}) {
    FileOptions options;
    options.checked_block = block;
    const auto file = open(options);
    FileQueue queue = queue_of(*file, script);
    begin(queue, out(*file, 0, 2 * page));
    begin(queue, out(*file, 4 * page, page));
    const Deadline deadline = Deadline::in(std::chrono::seconds(60));
    std::size_t over = 0;
    for (int round = 0; over < 2 && !deadline.passed(); ++round) {
      script.full = round % 5 == 1;
      if (!script.begun.empty() && round < 20)
        script.end(*script.begun.front(), round % 2 == 0 ? -ENOMEM : -EAGAIN);
      else
        script.carry_out_all();
      for (const auto& each : queue.news()) {
        EXPECT_FALSE(each.error) << each.error->to_string();
        ++over;
      }
    }
    EXPECT_EQ(over, 2U);
    EXPECT_TRUE(same_bytes({memory.data(), 2 * page}, pattern(2 * page, 1)));
    EXPECT_TRUE(same_bytes({memory.data() + 4 * page, page}, pattern(page, 1, 4 * page)));
  }
}

TEST_F(FileQueueTest, WhatIsRefusedAllTheTimeEndsWithTheReason) {
  FileOptions options;
  options.timeout = std::chrono::milliseconds(500);
  const auto file = open(options);
  FileQueue queue = queue_of(*file, script);
  begin(queue, out(*file, 0, page));
  std::vector<CopyQueue::News> news;
  const Deadline deadline = Deadline::in(std::chrono::seconds(60));
  while (news.empty() && !deadline.passed()) {
    if (!script.begun.empty()) script.end(*script.begun.front(), -ENOMEM);
    news = queue.news();
  }
  ASSERT_THAT(news, SizeIs(1));
  EXPECT_TRUE(news.front().over);
  EXPECT_EQ(news.front().error->code(), Code::out_of_memory);
  EXPECT_THAT(news.front().error->message(), HasSubstr("'" + path + "' failed: Cannot allocate"));
  begin(queue, out(*file, page, page));
  script.carry_out_all();
  EXPECT_THAT(queue.news(), SizeIs(1)) << "others are served";
}

/// It need not wait for a kernel that takes nothing.
TEST_F(FileQueueTest, WhatIsPutOffCanBeGivenUp) {
  const auto file = open();
  FileQueue queue = queue_of(*file, script);
  const std::uint64_t number = begin(queue, out(*file, 0, page));
  script.end(*script.begun.front(), -ENOMEM);
  script.full = true;
  EXPECT_THAT(queue.news(), IsEmpty());
  queue.give_up(number);
  const auto news = queue.news();
  ASSERT_THAT(news, SizeIs(1));
  EXPECT_TRUE(news.front().over);
  EXPECT_EQ(news.front().error->code(), Code::cancelled);
}

TEST_F(FileQueueTest, ADeviceThatDoesNotAnswerIsSaidOnceAndItsEndLater) {
  FileOptions options;
  options.timeout = std::chrono::milliseconds(20);
  const auto file = open(options);
  FileQueue queue = queue_of(*file, script);
  const std::uint64_t number = begin(queue, out(*file, 0, page));
  std::vector<CopyQueue::News> news;
  const Deadline deadline = Deadline::in(std::chrono::seconds(60));
  while (news.empty() && !deadline.passed()) news = queue.news();
  ASSERT_THAT(news, SizeIs(1));
  EXPECT_FALSE(news.front().over);
  EXPECT_THAT(news.front().error->message(), HasSubstr("has not answered"));
  const Copy another = out(*file, page, page);
  EXPECT_TRUE(queue.copy({&another, 1}, Priority::normal).error) << "nothing new begins";
  script.carry_out_all();
  news = queue.news();
  ASSERT_THAT(news, SizeIs(1));
  EXPECT_TRUE(news.front().over);
  EXPECT_EQ(news.front().number, number);
  EXPECT_FALSE(queue.copy({&another, 1}, Priority::normal).error);
  script.carry_out_all();
  EXPECT_THAT(queue.news(), SizeIs(1));
}

TEST_F(FileQueueTest, DurableWritesSaySoToTheKernel) {
  FileOptions options;
  options.durable = true;
  const auto file = open(options);
  FileQueue queue = queue_of(*file, script);
  const Copy in{file->address() + 10, memory.data(), 2 * page};
  begin(queue, in);
  for (const Io* io : script.begun) EXPECT_TRUE(io->write && io->durable);
  script.carry_out_all();
  EXPECT_THAT(queue.news(), SizeIs(1));
}

/// Sums go before their blocks, so that what is torn never matches.
TEST_F(FileQueueTest, SumsAreWrittenBeforeTheirBlocks) {
  FileOptions options;
  options.durable = true;
  options.checked_block = 64 << 10;
  const auto file = open(options);
  FileQueue queue = queue_of(*file, script);
  begin(queue, {file->address(), memory.data(), 4 << 20});
  ASSERT_THAT(script.begun, SizeIs(4)) << "in parts of 1 MiB";
  for (const Io* io : script.begun) {
    EXPECT_EQ(io->bytes, 16 * sizeof(std::uint64_t));
    EXPECT_TRUE(io->write && io->durable);
  }
  script.carry_out(*script.begun[2]);
  EXPECT_THAT(queue.news(), IsEmpty());
  ASSERT_THAT(script.begun, SizeIs(4));
  EXPECT_EQ(script.begun[3]->at, 2U << 20);
  EXPECT_EQ(script.begun[3]->bytes, 1U << 20);
  EXPECT_TRUE(script.begun[3]->durable);
  while (!script.begun.empty()) {
    script.carry_out(*script.begun.front(), 100'000);  // and goes on
    if (const auto news = queue.news(); !news.empty()) {
      EXPECT_FALSE(news.front().error);
    }
  }
  Blob read(file_bytes);
  ASSERT_EQ(pread(file->fd(false), read.data(), file_bytes, 0), std::int64_t{file_bytes});
  EXPECT_TRUE(same_bytes({read.data(), 4 << 20}, {memory.data(), 4 << 20}));
}

/// A block is not read while it is written, or it would be taken for a torn one.
TEST_F(FileQueueTest, CheckedBlocksAreWrittenByOneAtATime) {
  FileOptions options;
  options.checked_block = 64 << 10;
  const auto file = open(options);
  Script other;
  FileQueue writes = queue_of(*file, script), reads = queue_of(*file, other);
  const std::size_t some = 256 << 10;
  begin(writes, {file->address(), memory.data(), some});
  begin(reads, out(*file, some, some));
  EXPECT_THAT(other.begun, SizeIs(1)) << "others are read meanwhile";
  begin(reads, out(*file, some - options.checked_block, options.checked_block));
  begin(writes, {file->address(), memory.data(), some});
  EXPECT_THAT(script.begun, SizeIs(1));
  EXPECT_THAT(other.begun, SizeIs(1));
  script.carry_out_all();
  EXPECT_THAT(writes.news(), IsEmpty()) << "the sums are written";
  reads.news();
  EXPECT_THAT(other.begun, SizeIs(1));
  script.carry_out_all();
  EXPECT_THAT(writes.news(), SizeIs(1));
  EXPECT_THAT(script.begun, SizeIs(1)) << "the second write";
  const Deadline deadline = Deadline::in(std::chrono::seconds(60));
  for (std::size_t ended = 0; ended < 3 && !deadline.passed();) {
    script.carry_out_all();
    other.carry_out_all();
    for (FileQueue* queue : {&writes, &reads})
      for (const auto& each : queue->news()) {
        EXPECT_FALSE(each.error) << each.error->to_string();
        ++ended;
      }
  }
  EXPECT_THAT(script.begun, IsEmpty());
  EXPECT_THAT(other.begun, IsEmpty());
}

/// What waits for a block that others write keeps nothing back but what wants the same block.
TEST_F(FileQueueTest, BlocksOfOthersAreWaitedForAlone) {
  FileOptions options;
  options.checked_block = 64 << 10;
  const auto file = open(options);
  Script other;
  FileQueue one = queue_of(*file, script), two = queue_of(*file, other);
  memory = pattern(file_bytes, 2);
  const auto write = [&](FileQueue& queue, std::size_t index) {
    const std::size_t at = index * options.checked_block;
    begin(queue, {file->address() + at, memory.data() + at, options.checked_block});
    return script.begun.size() + other.begun.size();
  };
  EXPECT_EQ(write(one, 0), 1U);
  EXPECT_EQ(write(two, 0), 1U);
  EXPECT_EQ(write(two, 0), 1U) << "one after the other";
  EXPECT_EQ(write(two, 1), 2U);
  std::size_t over = 0;
  for (const Deadline deadline = Deadline::in(std::chrono::seconds(60));
       over < 4 && !deadline.passed();) {
    script.carry_out_all();
    other.carry_out_all();
    for (FileQueue* queue : {&one, &two})
      for (const auto& each : queue->news()) {
        EXPECT_TRUE(each.over && !each.error);
        ++over;
      }
  }
  EXPECT_EQ(over, 4U);
  const std::size_t both = 2 * options.checked_block;
  Blob read(both);
  ASSERT_EQ(pread(file->fd(false), read.data(), both, 0), static_cast<ssize_t>(both));
  EXPECT_TRUE(same_bytes({read.data(), both}, {memory.data(), both}));
}

TEST_F(FileQueueTest, ASumThatCantBeWrittenKeepsItsBlocks) {
  FileOptions options;
  options.checked_block = 64 << 10;
  const auto file = open(options);
  FileQueue queue = queue_of(*file, script);
  begin(queue, {file->address(), memory.data(), 64 << 10});
  script.end(*script.begun.front(), -ENOSPC);
  const auto news = queue.news();
  ASSERT_THAT(news, SizeIs(1));
  EXPECT_THAT(news.front().error->message(),
              HasSubstr("writing to file '" + path + ".xxh3' failed: No space left on device"));
  EXPECT_THAT(script.begun, IsEmpty());
}

TEST(IoChannels, CarryOutWhatIsBegun) {
  for (const auto& channel : {open_io_channel(), open_io_threads()}) {
    const Folder folder;
    const int fd = ::open(folder.write("file", "0123456789").c_str(), O_RDWR | O_CLOEXEC);
    std::array<std::byte, 4> bytes{};
    Io io{fd, false, false, bytes.data(), bytes.size(), 3};
    ASSERT_TRUE(channel->begin(io));
    channel->flush();
    std::array<Io*, 2> over{};
    std::size_t count = 0;
    const Deadline deadline = Deadline::in(std::chrono::seconds(60));
    while (count == 0 && !deadline.passed()) count = channel->ended(over);
    ASSERT_EQ(count, 1U);
    EXPECT_EQ(over[0], &io);
    EXPECT_EQ(io.result, 4);
    EXPECT_EQ(bytes[0], std::byte{'3'});
    close(fd);
  }
}

/// As in Linux 5.1 to 5.5.
TEST(IoChannels, ARingThatCantReadIsNotUsed) {
  if (const auto ring = open_io_ring(); !ring) GTEST_SKIP() << ring.error().message();
  const bool tried = weft::test::where_refused({SYS_io_uring_register, 0, 0, 0, EINVAL}, [] {
    const auto ring = open_io_ring();
    ASSERT_FALSE(ring);
    EXPECT_THAT(ring.error().message(), HasSubstr("can't read and write files"));
  });
  if (!tried) GTEST_SKIP() << "no system call can be refused here";
}

/// However long all of it takes.
TEST_F(FileQueueTest, ADriveThatGoesOnIsNotSilent) {
  FileOptions options;
  options.timeout = std::chrono::milliseconds(100);
  options.queue_depth = 1;
  const auto file = open(options);
  FileQueue queue = queue_of(*file, script);
  const std::array<Copy, 4> pages = {out(*file, 0, page), out(*file, page, page),
                                     out(*file, 2 * page, page), out(*file, 3 * page, page)};
  ASSERT_FALSE(queue.copy(pages, Priority::normal).error);
  const std::uint64_t behind = begin(queue, out(*file, 8 * page, page));
  for (std::size_t i = 0; i < pages.size(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(60));
    EXPECT_THAT(queue.news(), SizeIs(0)) << i;
    script.carry_out_all();
    EXPECT_THAT(queue.news(), SizeIs(i + 1 < pages.size() ? 0 : 1)) << i;
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_THAT(queue.news(), SizeIs(0)) << "it waited its turn, and has just begun";
  script.carry_out_all();
  const auto news = queue.news();
  ASSERT_THAT(news, SizeIs(1));
  EXPECT_EQ(news[0].number, behind);
  EXPECT_FALSE(news[0].error);
}

}  // namespace
}  // namespace weft::core::test::file_queue_tests
