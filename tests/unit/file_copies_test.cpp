// Copies between files and memory by real channels, and what goes wrong with files.
#include "engine/file_copies.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>

#include "device/file/io_channel.hpp"
#include "file_segments.hpp"
#include "files.hpp"
#include "folder.hpp"
#include "pattern.hpp"

namespace weft::core::test::file_copies_tests {
namespace {

using testing::HasSubstr;
using weft::test::contents_of;
using weft::test::expected_after;
using weft::test::fill;
using weft::test::Folder;
using weft::test::Mounted;
using weft::test::pattern;
using weft::test::put;
using weft::test::same_bytes;

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
    EXPECT_THAT(failed.error().message(), HasSubstr("'" + path + "' ends at byte"));
  }
  EXPECT_TRUE(copy_by_file(memory, file, left, soon()));
  EXPECT_TRUE(same_bytes({memory->address(), 5000}, pattern(5000, 1)));
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

/// Takes reads and writes, and ends them only when it is told to.
class Hung {
 public:
  Hung() {
    make_io_channels_by([hung = hung_] { return std::make_unique<Channel>(hung); });
  }
  ~Hung() {
    release();
    make_io_channels_by({});
  }
  void release() { *hung_ = false; }

 private:
  using Flag = std::shared_ptr<std::atomic<bool>>;
  class Channel final : public IoChannel {
   public:
    explicit Channel(Flag hung) : hung_(std::move(hung)) {}
    bool begin(Io& io) override {
      waiting_.push_back(&io);
      return true;
    }
    std::size_t ended(std::span<Io*> into) override {
      if (!*hung_) {
        for (Io* io : std::exchange(waiting_, {})) real_->begin(*io);
        real_->flush();
      }
      return real_->ended(into);
    }

   private:
    const Flag hung_;
    const std::unique_ptr<IoChannel> real_ = open_io_threads();
    std::vector<Io*> waiting_;
  };
  const Flag hung_ = std::make_shared<std::atomic<bool>>(true);
};

/// The error says why, and the memory stays in use until the device answers.
TEST(HungFile, EndsACopyInTimeAndHoldsItsMemory) {
  for (const bool by_deadline : {false, true}) {
    const Folder folder;
    const std::string path = folder.at("pages");
    put(path, pattern(file_bytes, 1));
    Hung device;
    FileOptions options;
    if (!by_deadline) options.timeout = std::chrono::milliseconds(50);
    const SegmentPtr file = segment_of(must_open(Memory::file(path, 0, file_bytes, options)));
    const SegmentPtr memory = segment_of(Memory::own(4096));
    const Pair piece[] = {{0, 0, 4096}};
    const auto failed = copy_by_file(
        memory, file, piece, by_deadline ? Deadline::in(std::chrono::milliseconds(50)) : soon());
    ASSERT_FALSE(failed);
    EXPECT_EQ(failed.error().code(), Code::timed_out);
    EXPECT_THAT(failed.error().message(), HasSubstr("'" + path + "': "));
    memory->users().close();
    EXPECT_FALSE(memory->users().wait_idle(Deadline::in(std::chrono::milliseconds(20))));
    device.release();
    EXPECT_TRUE(memory->users().wait_idle(soon()));
    EXPECT_TRUE(same_bytes(bytes_of(memory), pattern(4096, 1)));
  }
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
