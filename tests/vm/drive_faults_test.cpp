// In a virtual machine with a drive to spare (run_drive_faults.py): transfers to the drive, and to
// files in ext4 and xfs on it, while the kernel's device mapper has it fail, or the file system is
// full. What is on it fails with its path and the system's error, nothing else does, and it serves
// again when the fault is over.
#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <sys/mount.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <optional>
#include <stdexcept>

#include "base/descriptor.hpp"
#include "engines.hpp"
#include "files.hpp"

namespace weft::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr std::size_t file_bytes = (4 << 20) + 777;

/// Whole pages, edges, pieces within a page; pieces over several requests.
const std::vector<Pair> pieces = {{0, 4096, 8192},
                                  {9000, 1, 4000},
                                  {20'000, 12'288, 300'000},
                                  {500'000, 400'000, 1'500'001},
                                  {file_bytes - 100, file_bytes - 100, 100}};

void shell(const std::string& command) {
  if (std::system(command.c_str()) != 0) throw std::runtime_error("this failed: " + command);
}

/// The whole spare drive behind the device mapper, which does as it is told.
class Drive {
 public:
  Drive() { shell(fmt::format("dmsetup create {} --table '{}'", options, linear(0, sectors_))); }
  ~Drive() { static_cast<void>(std::system(fmt::format("dmsetup remove {}", options).c_str())); }
  Drive(const Drive&) = delete;
  Drive& operator=(const Drive&) = delete;

  /// The kernel's own name of the only one.
  static std::string path() { return "/dev/dm-0"; }
  void work() { become(linear(0, sectors_)); }
  void fail() { become(fmt::format("0 {} error", sectors_)); }
  void fail_writes() { become(flakey("0 1 1 error_writes")); }
  /// Works for a second, fails for a second.
  void flap() { become(flakey("1 1")); }
  /// From the second MiB to the third.
  void fail_in_part() {
    constexpr std::uint64_t mib = (1 << 20) / 512;
    become(fmt::format("{}\n{} {} error\n{}", linear(0, mib), mib, mib,
                       linear(2 * mib, sectors_ - 2 * mib)));
  }

 private:
  static constexpr const char* options = "--noudevsync --noudevrules weft";
  static std::string spare() { return std::getenv("WEFT_TEST_DRIVE"); }
  static std::uint64_t size() {
    const core::Descriptor fd(open(spare().c_str(), O_RDONLY | O_CLOEXEC));
    return static_cast<std::uint64_t>(lseek(fd.get(), 0, SEEK_END)) / 512;
  }
  static std::string linear(std::uint64_t from, std::uint64_t count) {
    return fmt::format("{} {} linear {} {}", from, count, spare(), from);
  }
  std::string flakey(const std::string& how) const {
    return fmt::format("0 {} flakey {} 0 {}", sectors_, spare(), how);
  }
  /// Without a word to the file system on it, as a drive does.
  void become(const std::string& table) {
    shell(
        fmt::format("dmsetup suspend --nolockfs {0} && echo '{1}' | dmsetup load {0} && "
                    "dmsetup resume {0}",
                    options, table));
  }
  const std::uint64_t sectors_ = size();
};

/// Memory of the second engine, and the first one's way to it.
struct Loan {
  Loan(Couple& pair, const Memory& memory)
      : segment(must(pair.b.add(memory))),
        grant(must(segment.grant({}, Rights::read_write))),
        there(must(pair.a.import(grant.blob()))) {}
  /// A file is closed with the handle, but only if nothing uses it any more.
  void end() { must(segment.release(soon())); }

  Segment segment;
  Grant grant;
  Remote there;
};

/// "raw", "ext4" or "xfs", and a provider.
using Way = std::tuple<std::string, std::string>;

/// A peer has a file on the drive, or the drive itself; host memory is here.
class DriveOver : public testing::TestWithParam<Way> {
 protected:
  DriveOver() {
    if (!raw()) {
      shell(fmt::format("mkfs.{} -q {} {}", kind(), kind() == "ext4" ? "-F" : "-f", Drive::path()));
      mount_it();
    }
    put(path, pattern(file_bytes, 1));
    sync();
    offer();
  }
  ~DriveOver() override { withdraw(); }

  static std::string kind() { return std::get<0>(GetParam()); }
  static bool raw() { return kind() == "raw"; }

  /// Files of the file system are in the folder. Journals are written out seldom: a journal that
  /// fails makes the file system read-only, and then it would be luck which error comes first.
  void mount_it() {
    const char* how = kind() == "ext4" ? "commit=600" : "";
    if (mount(Drive::path().c_str(), folder.at("").c_str(), kind().c_str(), 0, how) != 0)
      throw std::runtime_error("it can't be mounted");
  }
  void offer() {
    file.emplace(pair, Memory::file(path, 0, file_bytes));
    EXPECT_EQ(file->segment.place().kind, MemoryKind::file);
  }
  /// Nothing of the file system is used any more.
  void withdraw() {
    if (file) file->end();
    file.reset();
    if (raw()) return;
    // The kernel lets go of a file a little after its last request of io_uring has ended.
    EXPECT_TRUE(comes_to_be([&] { return umount2(folder.at("").c_str(), 0) == 0; }));
  }
  /// A file system that has seen its drive fail may have given up: it is mounted anew.
  void recover() {
    drive.work();
    if (raw()) return;
    withdraw();
    mount_it();
    offer();
  }

  Result<void> move(Direction direction, std::span<const Pair> pairs) {
    return move(direction, pairs, *file);
  }
  Result<void> move(Direction direction, std::span<const Pair> pairs, const Loan& to) {
    return must(pair.a.submit(must(pair.a.prepare(mine, to.there, direction, pairs)))).wait(soon());
  }
  /// Within the time, with the path and the system's number.
  static void expect_named(const Result<void>& failed, const std::string& path, int number) {
    ASSERT_FALSE(failed);
    EXPECT_EQ(failed.error().code(), Code::unavailable) << failed.error().to_string();
    EXPECT_THAT(failed.error().to_string(),
                AllOf(HasSubstr(path), HasSubstr(fmt::format("(errno {})", number))));
  }
  Blob on_the_drive() const {
    std::ifstream file(path, std::ios::binary);
    Blob all(file_bytes);
    file.read(reinterpret_cast<char*>(all.data()), static_cast<std::streamsize>(all.size()));
    return all;
  }
  /// Every byte, there and back.
  void expect_serves(std::uint64_t seed) {
    const Blob before = on_the_drive();
    fill(bytes_of(mine), seed);
    ASSERT_TRUE(succeeds(move(Direction::write, pieces)));
    const Blob after = expected_after(before, bytes_of(mine), Direction::write, pieces);
    EXPECT_TRUE(same_bytes(on_the_drive(), after));
    fill(bytes_of(mine), seed + 1);
    const Blob memory(mine.data(), mine.data() + mine.size());
    ASSERT_TRUE(succeeds(move(Direction::read, pieces)));
    EXPECT_TRUE(same_bytes(bytes_of(mine), expected_after(memory, after, Direction::read, pieces)));
  }
  /// Host memory of the same peers, and a file elsewhere.
  void expect_others_go_on() {
    Board memory(pair, 100'000, 100'000);
    memory.expect_moved(Direction::write, std::array{Pair{0, 0, 100'000}});
    const Folder elsewhere;
    put(elsewhere.at("pages"), pattern(100'000, 1));
    Loan other(pair, Memory::file(elsewhere.at("pages"), 0, 100'000));
    const Pair all[] = {{0, 0, 100'000}};
    ASSERT_TRUE(succeeds(move(Direction::read, all, other)));
    EXPECT_TRUE(holds({mine.data(), 100'000}, 1));
    other.end();
  }

  Drive drive;
  const Folder folder;
  const std::string path = raw() ? Drive::path() : folder.at("pages");
  Couple pair = couple(config_for(std::get<1>(GetParam())));
  Segment mine = must(pair.a.add(Memory::own(8 << 20)));
  std::optional<Loan> file;
};

/// Each byte of the pieces is the one or the other, and all others are old.
testing::AssertionResult old_or_new(const Blob& now, const Blob& old, const Blob& all_new) {
  for (std::size_t at = 0; at < now.size(); ++at)
    if (now[at] != old[at] && now[at] != all_new[at])
      return testing::AssertionFailure() << "byte " << at << " is neither";
  return testing::AssertionSuccess();
}

TEST_P(DriveOver, ThatFailsDoesSoWithItsNameAndServesAgain) {
  expect_serves(2);
  const Blob before = on_the_drive();
  fill(bytes_of(mine), 4);
  drive.fail();
  expect_named(move(Direction::write, pieces), path, EIO);
  expect_named(move(Direction::read, pieces), path, EIO);
  expect_others_go_on();
  fill(bytes_of(mine), 4);
  recover();
  EXPECT_TRUE(old_or_new(on_the_drive(), before,
                         expected_after(before, bytes_of(mine), Direction::write, pieces)));
  expect_serves(6);
}

TEST_P(DriveOver, ThatFailsWritesIsStillRead) {
  drive.fail_writes();
  fill(bytes_of(mine), 4);
  const Pair whole[] = {{0, 0, 1 << 20}};
  expect_named(move(Direction::write, whole), path, EIO);
  ASSERT_TRUE(succeeds(move(Direction::read, whole)));
  EXPECT_TRUE(holds({mine.data(), 1 << 20}, 1));
  expect_others_go_on();
  recover();
  expect_serves(6);
}

/// The drive fails behind the page cache's back, where these bytes go.
TEST_P(DriveOver, ThatFailsTellsADurableWriteOfAFewBytes) {
  FileOptions durable;
  durable.durable = true;
  std::optional<Loan> to(std::in_place, pair, Memory::file(path, 0, file_bytes, durable));
  const Blob before = on_the_drive();
  fill(bytes_of(mine), 4);
  const Pair few[] = {{100, 100, 100}};
  drive.fail_writes();
  expect_named(move(Direction::write, few, *to), path, EIO);
  drive.work();
  ASSERT_TRUE(succeeds(move(Direction::write, few, *to)));
  to->end();
  to.reset();
  recover();
  EXPECT_TRUE(
      same_bytes(on_the_drive(), expected_after(before, bytes_of(mine), Direction::write, few)));
}

/// Each transfer ends well with the right bytes, or badly with the drive's error.
TEST_P(DriveOver, ThatComesAndGoes) {
  const Pair piece[] = {{0, 0, 100 << 10}};
  const Blob old = on_the_drive();
  drive.flap();
  int well = 0, badly = 0, seed = 10;
  for (const Deadline end = soon(); (well < 20 || badly < 20) && !end.passed(); seed += 2) {
    fill(bytes_of(mine), static_cast<std::uint64_t>(seed));
    auto moved = move(Direction::write, piece);
    if (moved) {
      fill(bytes_of(mine), static_cast<std::uint64_t>(seed) + 1);
      moved = move(Direction::read, piece);
    }
    if (moved) {
      ASSERT_TRUE(holds({mine.data(), 100 << 10}, static_cast<std::uint64_t>(seed)));
      ++well;
    } else {
      expect_named(moved, path, EIO);
      ++badly;
    }
  }
  EXPECT_GE(well, 20);
  EXPECT_GE(badly, 20);
  recover();
  const Blob now = on_the_drive();
  EXPECT_TRUE(same_bytes(Bytes(now).subspan(100 << 10), Bytes(old).subspan(100 << 10)));
  expect_serves(6);
}

INSTANTIATE_TEST_SUITE_P(Faults, DriveOver,
                         testing::Combine(testing::Values("raw", "ext4", "xfs"),
                                          testing::Values("tcp", "shm")),
                         [](const auto& each) {
                           return std::get<0>(each.param) + "_" + std::get<1>(each.param);
                         });

class PartOfADrive : public DriveOver {};

TEST_P(PartOfADrive, FailsThePiecesInItAndNoOthers) {
  drive.fail_in_part();
  const Pair before[] = {{0, 0, 1 << 20}};
  const Pair within[] = {{1 << 20, 1 << 20, 1 << 20}};
  const Pair behind[] = {{2 << 20, 2 << 20, 1 << 20}};
  for (int round = 0; round < 5; ++round) {
    fill(bytes_of(mine), 9);
    EXPECT_TRUE(succeeds(move(Direction::read, before)));
    expect_named(move(Direction::read, within), path, EIO);
    EXPECT_TRUE(succeeds(move(Direction::read, behind)));
    EXPECT_TRUE(holds({mine.data(), 1 << 20}, 1));
    EXPECT_TRUE(holds({mine.data() + (2 << 20), 1 << 20}, 1, 2 << 20));
  }
  drive.work();
  expect_serves(6);
}

INSTANTIATE_TEST_SUITE_P(Faults, PartOfADrive,
                         testing::Combine(testing::Values("raw"), testing::Values("tcp", "shm")),
                         [](const auto& each) { return std::get<1>(each.param); });

/// A file that takes what is left of its file system, but for some bytes.
class Filler {
 public:
  Filler(std::string path, off_t left)
      : path_(std::move(path)), fd_(open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600)) {
    off_t size = 0;
    for (off_t step = 16 << 20; step >= 4096; step /= 4)
      while (fallocate(fd_.get(), 0, size, step) == 0) size += step;
    if (ftruncate(fd_.get(), size - left) != 0) throw std::runtime_error("it can't be cut");
  }
  ~Filler() { unlink(path_.c_str()); }

 private:
  const std::string path_;
  const core::Descriptor fd_;
};

class FullFileSystem : public DriveOver {};

TEST_P(FullFileSystem, FailsWithItsErrorAndServesAgain) {
  const std::string sparse = folder.at("sparse");
  FileOptions create;
  create.create = true;
  std::optional<Filler> filler(std::in_place, folder.at("filler"), 2 << 20);
  Loan loan(pair, Memory::file(sparse, 0, mine.size(), create));
  fill(bytes_of(mine), 3);
  const Pair small[] = {{0, 0, 4096}}, all[] = {{0, 0, mine.size()}};
  EXPECT_TRUE(succeeds(move(Direction::write, small, loan)));
  expect_named(move(Direction::write, all, loan), sparse, ENOSPC);
  expect_serves(4);  // a file whose bytes have their places
  expect_others_go_on();
  filler.reset();
  fill(bytes_of(mine), 3);
  ASSERT_TRUE(succeeds(move(Direction::write, all, loan)));
  EXPECT_TRUE(holds(contents_of(sparse), 3));
  loan.end();
}

INSTANTIATE_TEST_SUITE_P(Faults, FullFileSystem,
                         testing::Combine(testing::Values("ext4", "xfs"),
                                          testing::Values("tcp", "shm")),
                         [](const auto& each) {
                           return std::get<0>(each.param) + "_" + std::get<1>(each.param);
                         });

}  // namespace
}  // namespace weft::test
