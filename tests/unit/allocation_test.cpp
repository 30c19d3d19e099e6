// The pages behind segments.
#include "device/allocation.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/descriptor.hpp"
#include "control/same_host.hpp"
#include "providers/shm/region.hpp"
#include "refused_calls.hpp"

namespace weft::core {
namespace {

using testing::HasSubstr;

class MemoryFile {
 public:
  explicit MemoryFile(std::size_t bytes) : fd_(memfd_create("test", MFD_CLOEXEC)) {
    EXPECT_EQ(ftruncate(fd_, static_cast<off_t>(bytes)), 0);
  }
  ~MemoryFile() { close(fd_); }
  int get() const { return fd_; }

 private:
  int fd_;
};

bool is_mapped(const void* address) {
  unsigned char resident = 0;
  return mincore(const_cast<void*>(address), 1, &resident) == 0;
}

Error error_of(const Memory& memory) {
  auto made = Allocation::make(memory);
  return made ? Error(Code::internal, "it was made") : made.error();
}

TEST(Allocation, OwnPagesAreZeroedAndGoWithIt) {
  const std::byte* address = nullptr;
  {
    auto made = Allocation::make(Memory::own(10000));
    ASSERT_TRUE(made);
    address = made->address();
    EXPECT_EQ(made->size(), 10000U);
    EXPECT_EQ(made->fd(), -1);
    EXPECT_TRUE(
        std::all_of(address, address + 10000, [](std::byte b) { return b == std::byte{}; }));
    const Allocation moved(std::move(*made));
    EXPECT_EQ(moved.address(), address);
    EXPECT_TRUE(is_mapped(address));
  }
  EXPECT_FALSE(is_mapped(address));
}

TEST(Allocation, SharedPagesLieBehindTheirDescriptor) {
  int fd = -1;
  {
    auto made = Allocation::make(Memory::shared(8192));
    ASSERT_TRUE(made);
    fd = made->fd();
    made->address()[5000] = std::byte{42};
    char byte = 0;
    ASSERT_EQ(pread(fd, &byte, 1, 5000), 1);
    EXPECT_EQ(byte, 42);
    EXPECT_NE(fcntl(fd, F_GETFD) & FD_CLOEXEC, 0);
  }
  EXPECT_EQ(fcntl(fd, F_GETFD), -1) << "closed with it";
}

TEST(Allocation, MapsAnyDescriptorFromAnOffsetAndKeepsItsOwn) {
  const MemoryFile file(3 * 4096);
  ASSERT_EQ(pwrite(file.get(), "x", 1, 4096), 1);
  auto made = Allocation::make(Memory::map(file.get(), 4096, 5000));
  ASSERT_TRUE(made);
  EXPECT_EQ(made->address()[0], std::byte{'x'});
  EXPECT_EQ(made->size(), 5000U);
  EXPECT_NE(made->fd(), file.get());
  EXPECT_TRUE(Allocation::make(Memory::map(file.get(), 0, 3 * 4096)));
}

TEST(Allocation, RefusesToMapWhatIsNotThere) {
  const MemoryFile file(8192);
  EXPECT_EQ(error_of(Memory::map(file.get(), 0, 8193)).code(), Code::invalid_argument);
  EXPECT_THAT(error_of(Memory::map(file.get(), 4096, 4097)).message(),
              HasSubstr("4097 bytes from 4096 leave the file, which has 8192"));
  EXPECT_EQ(error_of(Memory::map(file.get(), 12288, 1)).code(), Code::invalid_argument);
  EXPECT_EQ(error_of(Memory::map(file.get(), ~std::uint64_t{0} - 4095, 4096)).code(),
            Code::invalid_argument);
  EXPECT_EQ(error_of(Memory::map(-1, 0, 1)).code(), Code::invalid_argument);
}

TEST(Allocation, AnOffsetThatIsNotOfAPageIsTheCallersMistake) {
  const MemoryFile file(8192);
  EXPECT_EQ(error_of(Memory::map(file.get(), 100, 10)).code(), Code::invalid_argument);
  EXPECT_THAT(error_of(Memory::map(file.get(), 100, 10)).message(), HasSubstr("100"));
}

std::size_t free_huge_pages() {
  std::ifstream file("/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages");
  std::size_t count = 0;
  file >> count;
  return count;
}

TEST(Allocation, HugePagesOrAClearError) {
  const std::size_t pages = free_huge_pages();
  const std::size_t bytes = (pages + 1) * (std::size_t{2} << 20);
  const Error error = error_of(Memory::huge(bytes));
  EXPECT_TRUE(error.code() == Code::out_of_memory || error.code() == Code::unavailable);
  EXPECT_THAT(error.message(), HasSubstr("hugepages-2048kB/nr_hugepages"));
  EXPECT_THAT(error.message(), HasSubstr(std::to_string(bytes)));
  if (pages == 0) return;
  auto made = Allocation::make(Memory::huge(1));
  ASSERT_TRUE(made);
  EXPECT_EQ(made->size(), std::size_t{2} << 20) << "rounded up to a page";
}

/// Else the kernel takes its default size, which may be 1 GiB, and munmap of less fails.
TEST(Allocation, HugePagesAreAskedForByTheirSize) {
  constexpr std::uint32_t any_size = std::uint32_t{MAP_HUGE_MASK} << MAP_HUGE_SHIFT;
  const bool tried =
      weft::test::where_refused({SYS_mmap, 3, MAP_HUGETLB | any_size, MAP_HUGETLB, EOWNERDEAD}, [] {
        for (const std::size_t page : {std::size_t{2} << 20, std::size_t{1} << 30}) {
          const auto made = Allocation::make(Memory::huge(1, page));
          if (made)
            EXPECT_EQ(made->size(), page);
          else
            EXPECT_THAT(made.error().message(), testing::Not(HasSubstr(std::strerror(EOWNERDEAD))));
        }
      });
  if (!tried) GTEST_SKIP() << "no system call can be refused here";
}

TEST(Allocation, HugePagesOfASizeThatThereIsNot) {
  for (const std::size_t page : {0, 1, 3, 5000}) {
    const Error error = error_of(Memory::huge(1, page));
    EXPECT_EQ(error.code(), Code::invalid_argument) << page;
    EXPECT_THAT(error.message(), HasSubstr(std::to_string(page)));
  }
  const Error error = error_of(Memory::huge(1, 8192));
  EXPECT_EQ(error.code(), Code::unsupported);
  EXPECT_THAT(error.message(), HasSubstr("hugepages-8kB"));
}

/// As under vm.memfd_noexec=2, and on Linux before 6.3, which knows no such flag.
TEST(FilesInMemory, AreNotToBeExecutedWhereTheKernelKnowsThat) {
  constexpr std::uint32_t noexec_seal = 8;
  const auto make_all = [] {
    EXPECT_TRUE(Allocation::make(Memory::shared(4096)));
    EXPECT_TRUE(providers::shm::create_region());
    EXPECT_NE(ProofPage(1).claim().pid, 0U);
  };
  const bool hardened =
      weft::test::where_refused({SYS_memfd_create, 1, noexec_seal, 0, EACCES}, make_all);
  const bool older =
      weft::test::where_refused({SYS_memfd_create, 1, noexec_seal, noexec_seal, EINVAL}, make_all);
  if (!hardened || !older) GTEST_SKIP() << "no system call can be refused here";
}

TEST(Allocation, MapsPartsOfHugePagesAndUnmapsThem) {
  constexpr std::size_t page = std::size_t{2} << 20;
  constexpr unsigned two_mebibytes = 21U << MAP_HUGE_SHIFT;
  const Descriptor file(memfd_create("test", MFD_CLOEXEC | MFD_HUGETLB | two_mebibytes));
  if (free_huge_pages() == 0 || file.get() < 0 || ftruncate(file.get(), page) != 0)
    GTEST_SKIP() << "there are no free huge pages of 2 MiB";
  const std::byte* address = nullptr;
  {
    const auto made = Allocation::make(Memory::map(file.get(), 0, 5000));
    ASSERT_TRUE(made) << made.error().to_string();
    address = made->address();
    EXPECT_EQ(made->size(), 5000U);
  }
  EXPECT_FALSE(is_mapped(address));
}

TEST(Allocation, AdoptedMemoryStaysTheCallers) {
  std::vector<std::byte> mine(100);
  {
    auto made = Allocation::make(Memory::adopt(mine.data(), mine.size()));
    ASSERT_TRUE(made);
    EXPECT_EQ(made->address(), mine.data());
    made->address()[3] = std::byte{7};
  }
  EXPECT_EQ(mine[3], std::byte{7});
}

TEST(Allocation, KeepsTheOwnerOfAdoptedMemory) {
  auto owner = std::make_shared<std::vector<std::byte>>(100);
  const std::weak_ptr<void> alive = owner;
  {
    auto made = Allocation::make(Memory::adopt(owner->data(), owner->size(), owner).read_only());
    ASSERT_TRUE(made);
    owner.reset();
    const Allocation moved = std::move(*made);
    EXPECT_FALSE(alive.expired());
  }
  EXPECT_TRUE(alive.expired());
}

TEST(Allocation, RefusesToAdoptNothing) {
  std::byte byte{};
  EXPECT_EQ(error_of(Memory::adopt(nullptr, 10)).code(), Code::invalid_argument);
  EXPECT_EQ(error_of(Memory::adopt(&byte, 0)).code(), Code::invalid_argument);
  EXPECT_EQ(error_of(Memory::adopt(&byte, ~std::size_t{0})).code(), Code::out_of_memory);
  auto* last = reinterpret_cast<void*>(~std::uintptr_t{0} - 10);
  EXPECT_EQ(error_of(Memory::adopt(last, 100)).code(), Code::invalid_argument);
}

TEST(Allocation, MoreThanTheMachineHasIsRefusedWithTheNumbers) {
  for (const Memory& memory :
       {Memory::own(std::size_t{1} << 50), Memory::shared(std::size_t{1} << 50)}) {
    const Error error = error_of(memory);
    EXPECT_EQ(error.code(), Code::out_of_memory);
    EXPECT_THAT(error.message(), HasSubstr(std::to_string(std::size_t{1} << 50)));
  }
  EXPECT_EQ(error_of(Memory::own(~std::size_t{0})).code(), Code::out_of_memory);
  EXPECT_EQ(error_of(Memory::huge(~std::size_t{0})).code(), Code::out_of_memory);
  EXPECT_EQ(error_of(Memory::own(0)).code(), Code::invalid_argument);
}

}  // namespace
}  // namespace weft::core
