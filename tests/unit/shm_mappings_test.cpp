// Memory behind a memfd over the shm provider: it is mapped, where that is safe, and copied through
// the kernel where it is not.
#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "providers/shm/mappings.hpp"
#include "providers/shm/neighbour.hpp"
#include "shm_pair.hpp"
#include "warnings.hpp"

namespace weft::providers::shm {
namespace {

using test::Warnings;
using testing::HasSubstr;

constexpr int sealed = F_SEAL_SHRINK;

/// A memfd, with a window on it as its owner has it.
class File {
 public:
  explicit File(std::size_t bytes, int seals = sealed, std::uint64_t size = 0)
      : File(Descriptor(memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING)), bytes, size) {
    EXPECT_EQ(fcntl(fd(), F_ADD_SEALS, seals), 0);
  }
  File(Descriptor file, std::size_t bytes, std::uint64_t size = 0)
      : file_(std::move(file)), bytes_(bytes) {
    EXPECT_EQ(ftruncate(fd(), static_cast<off_t>(std::max<std::uint64_t>(size, bytes))), 0);
    data_ = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd(), 0);
    EXPECT_NE(data_, MAP_FAILED);
  }
  ~File() { munmap(data_, bytes_); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  int fd() const { return file_.get(); }
  std::byte* data() const { return static_cast<std::byte*>(data_); }
  Blob bytes() const { return {data(), data() + bytes_}; }
  Extent part(std::size_t offset, std::size_t length) const {
    Extent all{data(), bytes_};
    all.file = {fd(), 0};
    return all.part(offset, length);
  }
  /// How often this process has it mapped, with these rights ("rw-s").
  long mappings(const std::string& rights) const {
    struct stat status {};
    fstat(fd(), &status);
    const std::string inode = fmt::format(" {} ", status.st_ino);
    std::ifstream maps("/proc/self/maps");
    long count = 0;
    for (std::string line; std::getline(maps, line);)
      count += line.find(inode) != line.npos && line.find(" " + rights + " ") != line.npos &&
                       line.find("memfd:test") != line.npos
                   ? 1
                   : 0;
    return count;
  }

 private:
  const Descriptor file_;
  const std::size_t bytes_;
  void* data_ = nullptr;
};

class ShmMappings : public ShmPair {
 protected:
  std::unique_ptr<Registration> grant(const Extent& memory,
                                      Access access = Access::remote_read_write) {
    return b->register_memory(memory, access).value();
  }
  Operation read(Blob& into, std::uint64_t offset, std::uint64_t key) {
    Operation operation;
    a->read(operation, {into.data(), into.size(), nullptr}, {to_b, offset, key});
    a->poll();
    return operation;
  }
  std::string why_not(const Registration& granted) {
    const auto mapped = a->check_mapped(to_b, granted.key());
    return mapped ? "" : mapped.error().message();
  }
  /// What b says of a registration, for others to read; and here to be changed.
  Entry& entry_of(const Registration& granted) {
    Address own;
    std::memcpy(&own, b->address().data(), sizeof own);
    if (!head) head = map_head(Descriptor(dup(own.region))).value();
    return head->entries[granted.key() % entry_count];
  }
  /// Bytes come to where they belong, and by the kernel.
  void expect_copied_by_the_kernel(const File& file, const Registration& granted) {
    const Operation written = write(0, 10'000, granted.key());
    EXPECT_TRUE(written.ok);
    EXPECT_FALSE(written.mapped);
    EXPECT_EQ(Blob(file.data(), file.data() + 10'000), here);
  }
  Mapped<Head> head;
};

TEST_F(ShmMappings, CarryEveryByteBothWaysAndNoOther) {
  const File file(40'000);
  const auto part = grant(file.part(5'001, 20'000));  // begins and ends within pages
  const Operation written = write(7'000, 10'000, part->key());
  EXPECT_TRUE(written.ok);
  EXPECT_TRUE(written.mapped);
  Blob expected(40'000);
  std::copy(here.begin(), here.end(), expected.begin() + 12'001);
  EXPECT_EQ(file.bytes(), expected);
  Blob back(20'000);
  const Operation got = read(back, 0, part->key());
  EXPECT_TRUE(got.ok);
  EXPECT_TRUE(got.mapped);
  EXPECT_EQ(back, Blob(expected.begin() + 5'001, expected.begin() + 25'001));
  EXPECT_EQ(why_not(*part), "");
}

TEST_F(ShmMappings, RefuseWhatARegistrationDoesNotLet) {
  const File file(10'000);
  const auto readable = grant(file.part(0, 100), Access::remote_read);
  auto writable = grant(file.part(0, 100), Access::remote_write);
  const std::uint64_t key = writable->key();
  EXPECT_TRUE(write(0, 100, key).mapped);
  const Blob before = file.bytes();
  EXPECT_EQ(write(0, 100, readable->key()).error, EACCES);
  EXPECT_EQ(write(1, 100, key).error, EACCES);
  EXPECT_EQ(write(~std::uint64_t{0}, 2, key).error, EACCES);
  EXPECT_EQ(write(0, 1, key ^ (std::uint64_t{1} << 40)).error, EKEYREJECTED);
  Blob back(100);
  EXPECT_EQ(read(back, 0, key).error, EACCES);
  writable.reset();
  EXPECT_EQ(write(0, 1, key).error, EKEYREJECTED);
  EXPECT_FALSE(a->check_mapped(to_b, key));
  EXPECT_EQ(file.bytes(), before);
}

TEST_F(ShmMappings, AreForReadingOnlyWhereTheKeyIs) {
  const File file(10'000);
  const auto readable = grant(file.part(0, 10'000), Access::remote_read);
  Blob back(10'000);
  EXPECT_TRUE(read(back, 0, readable->key()).mapped);
  EXPECT_EQ(file.mappings("r--s"), 1);
  EXPECT_EQ(file.mappings("rw-s"), 1) << "the owner's own";
}

TEST_F(ShmMappings, AreSharedByAllRegistrationsOfAFile) {
  const File file(40'000);
  std::vector<std::unique_ptr<Registration>> granted;
  for (std::size_t part = 0; part < 4; ++part) {
    granted.push_back(grant(file.part(part * 10'000, 10'000)));
    EXPECT_TRUE(write(0, 10'000, granted.back()->key()).mapped);
    EXPECT_EQ(std::memcmp(file.data() + part * 10'000, here.data(), 10'000), 0);
  }
  // Another endpoint of the process, as another rail has.
  const auto other = open_endpoint().value();
  const FabricAddress way = other->insert(b->address()).value();
  EXPECT_TRUE(other->check_mapped(way, granted.front()->key()));
  EXPECT_EQ(file.mappings("rw-s"), 2) << "the owner's own, and one";
}

TEST_F(ShmMappings, FollowAFileThatHasGrown) {
  const File file(10'000);
  const auto before = grant(file.part(0, 10'000));
  EXPECT_TRUE(write(0, 10'000, before->key()).mapped);
  ASSERT_EQ(ftruncate(file.fd(), 40'960), 0);
  void* rest = mmap(nullptr, 12'288, PROT_READ | PROT_WRITE, MAP_SHARED, file.fd(), 12'288);
  Extent behind{rest, 12'288};
  behind.file = {file.fd(), 12'288};
  const auto after = grant(behind);
  EXPECT_TRUE(write(2'000, 10'000, after->key()).mapped);
  EXPECT_EQ(std::memcmp(static_cast<std::byte*>(rest) + 2'000, here.data(), 10'000), 0);
  EXPECT_TRUE(write(0, 10'000, before->key()).mapped);
  munmap(rest, 12'288);
}

TEST_F(ShmMappings, GoWhenNothingOfTheFileIsGrantedAnyMore) {
  const File file(150 << 20);
  auto first = grant(file.part(0, 10'000)), second = grant(file.part(100 << 20, 10'000));
  EXPECT_TRUE(write(0, 10'000, first->key()).mapped);
  EXPECT_TRUE(write(0, 10'000, second->key()).mapped);
  first.reset();
  const auto mapped_until = [&](Deadline deadline) {
    while (file.mappings("rw-s") == 2 && !deadline.passed()) a->poll();
    return file.mappings("rw-s") == 2;
  };
  EXPECT_TRUE(mapped_until(Deadline::in(std::chrono::milliseconds(1500)))) << "one is left";
  EXPECT_TRUE(write(0, 10'000, second->key()).mapped);
  second.reset();
  EXPECT_FALSE(mapped_until(Deadline::in(std::chrono::seconds(20))));
  const auto again = grant(file.part(0, 10'000));
  EXPECT_TRUE(write(0, 10'000, again->key()).mapped);
}

TEST_F(ShmMappings, SeveralThreadsCopyAtATime) {
  constexpr std::size_t large = 32 << 20, small = 1000;
  const File file(large + small);
  const auto granted = grant(file.part(0, large + small));
  Blob source(large);
  std::atomic<std::uint64_t> begun{0}, ended{0};
  std::atomic<bool> over{false};
  std::thread other([&] {
    while (!over) {
      ++begun;
      EXPECT_TRUE(
          a->copy_inline(true, {source.data(), large}, {to_b, 0, granted->key()}, CopyBy::callers));
      ++ended;
    }
  });
  // While one and the same copy of the other's is under way.
  int within_another = 0;
  const Deadline deadline = Deadline::in(std::chrono::seconds(60));
  while (within_another < 100 && !deadline.passed()) {
    const std::uint64_t which = begun;
    const bool under_way = ended + 1 == which;
    EXPECT_TRUE(
        a->copy_inline(true, {here.data(), small}, {to_b, large, granted->key()}, CopyBy::callers));
    within_another += under_way && ended + 1 == which ? 1 : 0;
  }
  over = true;
  other.join();
  EXPECT_EQ(within_another, 100);
  EXPECT_EQ(std::memcmp(file.data() + large, here.data(), small), 0);
}

TEST_F(ShmMappings, GoWithTheNeighbour) {
  const File file(10'000);
  const auto granted = grant(file.part(0, 10'000));
  EXPECT_TRUE(write(0, 10'000, granted->key()).mapped);
  a->remove(to_b);
  a->poll();
  // By another thread.
  const Deadline deadline = Deadline::in(std::chrono::seconds(20));
  while (file.mappings("rw-s") > 1 && !deadline.passed()) std::this_thread::yield();
  EXPECT_EQ(file.mappings("rw-s"), 1);
}

TEST_F(ShmMappings, GoWithTheNeighbourThoughAThreadCopiesWithIt) {
  constexpr std::size_t large = 32 << 20;
  const File file(large);
  const auto granted = grant(file.part(0, large));
  Blob source(large);
  const Deadline deadline = Deadline::in(std::chrono::seconds(60));
  for (bool within = false; !within && !deadline.passed();) {
    to_b = a->insert(b->address()).value();
    std::atomic<bool> begun{false}, copied{false}, ended{false};
    std::thread other([&] {
      a->copy_inline(true, {source.data(), 1, nullptr}, {to_b, 0, granted->key()}, CopyBy::callers);
      begun = true;
      copied = a->copy_inline(true, {source.data(), large, nullptr}, {to_b, 0, granted->key()},
                              CopyBy::callers);
      ended = true;
    });
    while (!begun) std::this_thread::yield();
    // Both times that it was inserted.
    for (int i = 0; i < 2; ++i) a->remove(to_b);
    a->poll();
    const bool running = !ended;
    other.join();
    within = running && copied;  // it was found before it was removed
    while (file.mappings("rw-s") > 1 && !deadline.passed()) a->poll();
    EXPECT_EQ(file.mappings("rw-s"), 1);
    b->poll();
  }
}

TEST_F(ShmMappings, AFileThatMayShrinkIsCopiedByTheKernelAndTheLogSaysSoOnce) {
  const Warnings log;
  const File file(10'000, 0);
  for (int i = 0; i < 3; ++i) {
    const auto granted = grant(file.part(0, 10'000));
    expect_copied_by_the_kernel(file, *granted);
    EXPECT_THAT(why_not(*granted), HasSubstr("F_SEAL_SHRINK"));
  }
  EXPECT_LE(log.about("F_SEAL_SHRINK"), 1) << "once in the process";
  // Cut off, it is an error and nobody's end.
  const auto granted = grant(file.part(0, 10'000));
  ASSERT_EQ(ftruncate(file.fd(), 0), 0);
  EXPECT_EQ(write(0, 10'000, granted->key()).error, EFAULT);
}

TEST_F(ShmMappings, OtherFilesAreCopiedByTheKernel) {
  std::FILE* stream = std::tmpfile();
  ASSERT_NE(stream, nullptr);
  const File file(Descriptor(dup(fileno(stream))), 10'000);
  const auto granted = grant(file.part(0, 10'000));
  expect_copied_by_the_kernel(file, *granted);
  EXPECT_THAT(why_not(*granted), HasSubstr("no memfd"));
  std::fclose(stream);
  const auto anonymous = grant({there.data(), there.size()});
  EXPECT_FALSE(write(0, 10'000, anonymous->key()).mapped);
  EXPECT_EQ(there, here);
  EXPECT_THAT(why_not(*anonymous), HasSubstr("no memfd"));
}

TEST_F(ShmMappings, WhereThereIsNoRoomTheKernelCopiesAndTheLogSaysSoOnce) {
  const Warnings log;
  const File file(10'000, sealed, std::uint64_t{1} << 50);  // beyond any address space
  for (int i = 0; i < 3; ++i) {
    const auto granted = grant(file.part(0, 10'000));
    expect_copied_by_the_kernel(file, *granted);
    EXPECT_THAT(why_not(*granted), HasSubstr("mmap"));
  }
  EXPECT_EQ(log.about("not mapped"), 1);
}

TEST_F(ShmMappings, AFileThatMayNotBeWrittenToIsCopiedByTheKernel) {
  const File file(10'000, sealed | F_SEAL_FUTURE_WRITE);
  const auto granted = grant(file.part(0, 10'000));
  const Operation written = write(0, 10'000, granted->key());
  EXPECT_FALSE(written.mapped);
  EXPECT_FALSE(why_not(*granted).empty());
  const auto readable = grant(file.part(0, 10'000), Access::remote_read);
  Blob back(10'000);
  EXPECT_TRUE(read(back, 0, readable->key()).mapped);
  EXPECT_EQ(back, file.bytes());
}

TEST_F(ShmMappings, EntriesThatLieAreNotFollowed) {
  const File file(10'000), other(10'000), loose(10'000, 0);
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  const Descriptor reading(ends[0]), writing(ends[1]);
  const auto expect_refused = [&](auto&& change, const char* reason) {
    const auto granted = grant(file.part(0, 10'000));
    change(entry_of(*granted));
    expect_copied_by_the_kernel(file, *granted);
    EXPECT_THAT(why_not(*granted), HasSubstr(reason));
    std::memset(file.data(), 0, 10'000);
  };
  const auto leaves = "leaves the peer's file";
  expect_refused([](Entry& entry) { entry.backing.offset = 1; }, leaves);
  expect_refused([](Entry& entry) { entry.backing.offset = 10'001; }, leaves);
  expect_refused([](Entry& entry) { entry.backing.offset = ~std::uint64_t{0}; }, leaves);
  expect_refused([](Entry& entry) { entry.length = 10'001; }, leaves);
  expect_refused([](Entry& entry) { entry.length = ~std::uint64_t{0}; }, leaves);
  // A number that was used again, for another file.
  expect_refused([&](Entry& entry) { entry.backing.descriptor = other.fd(); }, "another file");
  expect_refused([&](Entry& entry) { entry.backing.descriptor = reading.get(); }, "memfd");
  expect_refused([](Entry& entry) { entry.backing.descriptor = -1; }, "/proc");
  expect_refused([](Entry& entry) { entry.backing.descriptor = 1 << 30; }, "/proc");
  expect_refused(
      [&](Entry& entry) {
        struct stat status {};
        fstat(loose.fd(), &status);
        entry.backing.descriptor = loose.fd();
        entry.backing.inode = status.st_ino;
      },
      "F_SEAL_SHRINK");
  expect_refused([](Entry& entry) { entry.backing.why_not = static_cast<Unmappable>(99); },
                 "not known");
  EXPECT_EQ(other.bytes(), Blob(10'000));
  EXPECT_EQ(loose.bytes(), Blob(10'000));
}

TEST_F(ShmMappings, BoundsStayWhatTheyWereWhenItWasMapped) {
  const File file(10'000);
  const auto granted = grant(file.part(0, 5'000));
  EXPECT_TRUE(write(0, 5'000, granted->key()).mapped);
  entry_of(*granted).length = ~std::uint64_t{0};
  const Operation beyond = write(4'000, 5'000, granted->key());
  EXPECT_FALSE(beyond.mapped) << "the kernel looks after itself";
}

TEST_F(ShmMappings, NoByteChangesOnceTheKeyIsClosed) {
  const File file(1 << 20);
  const Blob ones(1 << 20, std::byte{1});
  for (int round = 0; round < 20; ++round) {
    auto granted = grant(file.part(0, 1 << 20));
    const std::uint64_t key = granted->key();
    std::atomic<int> mapped{0}, refused{0};
    std::thread writer([&] {
      while (refused < 3) {
        Operation operation;
        a->write(operation, {const_cast<std::byte*>(ones.data()), ones.size(), nullptr},
                 {to_b, 0, key});
        a->poll();
        mapped += operation.mapped ? 1 : 0;
        refused += operation.error == EKEYREJECTED ? 1 : 0;
      }
    });
    while (mapped < 3) std::this_thread::yield();
    EXPECT_TRUE(granted->close());
    std::memset(file.data(), 0, 1 << 20);
    writer.join();
    EXPECT_EQ(file.bytes(), Blob(1 << 20)) << round;
  }
}

/// A process that grants a file, and says where.
class Owner {
 public:
  explicit Owner(std::size_t bytes) {
    int ends[2];
    EXPECT_EQ(pipe2(ends, O_CLOEXEC), 0);
    const Descriptor hears(ends[0]), says(ends[1]);
    process_ = fork();
    if (process_ == 0) serve(bytes, says);
    EXPECT_EQ(::read(hears.get(), words_.data(), words_.size()),
              static_cast<ssize_t>(words_.size()));
    std::memcpy(&key_, words_.data() + sizeof(Address), sizeof key_);
  }
  ~Owner() { end(); }
  Owner(const Owner&) = delete;
  Owner& operator=(const Owner&) = delete;

  Bytes address() const { return Bytes(words_).first(sizeof(Address)); }
  std::uint64_t key() const { return key_; }
  void kill() { EXPECT_EQ(::kill(process_, SIGKILL), 0); }
  /// Kills it, and waits until it is gone.
  void end() {
    if (process_ == 0) return;
    kill();
    EXPECT_EQ(waitpid(process_, nullptr, 0), process_);
    process_ = 0;
  }

 private:
  [[noreturn]] static void serve(std::size_t bytes, const Descriptor& says) {
    const File file(bytes);
    const auto endpoint = open_endpoint().value();
    const auto granted =
        endpoint->register_memory(file.part(0, bytes), Access::remote_write).value();
    const std::uint64_t key = granted->key();
    Blob words = endpoint->address();
    words.insert(words.end(), reinterpret_cast<const std::byte*>(&key),
                 reinterpret_cast<const std::byte*>(&key + 1));
    [[maybe_unused]] const auto said = ::write(says.get(), words.data(), words.size());
    for (;;) pause();
  }

  pid_t process_ = 0;
  Blob words_ = Blob(sizeof(Address) + sizeof(std::uint64_t));
  std::uint64_t key_ = 0;
};

class ShmOwner : public ShmMappings {
 protected:
  Operation copy(std::size_t bytes) {
    Operation operation;
    a->write(operation, {source.data(), bytes, nullptr}, {way, 0, owner.key()});
    a->poll();
    return operation;
  }
  Blob source = numbers(8 << 20);
  Owner owner{source.size()};
  FabricAddress way = a->insert(owner.address()).value();
};

TEST_F(ShmOwner, ThatIsKilledEndsCopiesAndNothingElse) {
  const Operation first = copy(source.size());
  EXPECT_TRUE(first.ok && first.mapped);
  std::thread killer([&] { owner.kill(); });
  Operation last;
  for (const auto deadline = Deadline::in(std::chrono::seconds(20));
       !deadline.passed() && (last = copy(source.size())).ok;) {
  }
  killer.join();
  EXPECT_EQ(last.error, ECONNRESET);
  owner.end();
  EXPECT_EQ(copy(1).error, ECONNRESET);
}

TEST_F(ShmOwner, ThatIsKilledIsNoticedWithinAHundredOrSoSmallCopies) {
  EXPECT_TRUE(copy(64).ok);
  owner.end();
  int unaware = 0;
  while (unaware < 1000 && copy(64).ok) ++unaware;
  EXPECT_LE(unaware, 128);
  EXPECT_EQ(copy(64).error, ECONNRESET);
}

}  // namespace
}  // namespace weft::providers::shm
