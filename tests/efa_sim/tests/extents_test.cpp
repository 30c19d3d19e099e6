// Segments that are larger than a region of a NIC, or than all that one NIC holds.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>

#include "engines.hpp"
#include "support/efa_fabric.hpp"

namespace weft::test {
namespace {

constexpr unsigned nics = 4;

/// Zeroed memory that takes no pages until it is written.
class Untouched {
 public:
  explicit Untouched(std::size_t bytes) : bytes_(bytes) {
    data_ = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (data_ == MAP_FAILED) throw std::runtime_error("there are not as many addresses");
    // The pages around each piece stay what they are.
    madvise(data_, bytes, MADV_NOHUGEPAGE);
  }
  ~Untouched() { munmap(data_, bytes_); }
  Untouched(const Untouched&) = delete;
  Untouched& operator=(const Untouched&) = delete;

  Memory memory() const { return Memory::adopt(data_, bytes_); }

 private:
  const std::size_t bytes_;
  void* data_;
};

class Extents : public testing::Test {
 protected:
  void SetUp() override { device_.set("clear"); }
  void TearDown() override { device_.set("clear"); }

  static Config config() {
    Config config = config_for("efa", nics);
    config.max_nics = nics;
    config.rails = 1;
    return config;
  }

  efa_sim::EfaControl device_ = efa_sim::EfaControl::of_environment();
};

// Its pages are more than three of the four NICs hold.
TEST_F(Extents, OfASegmentThatNoNicHoldsAlone) {
  constexpr std::uint64_t seam = std::uint64_t{4} << 30, size = 75 * seam;
  constexpr std::uint64_t piece = 64 << 10, margin = 4096;
  const Untouched addresses(size);
  Couple pair = couple(config());
  Segment remote = must(pair.b.add(addresses.memory()));
  Grant grant = must(remote.grant({}, Rights::write));
  const Remote there = must(pair.a.import(grant.blob()));

  std::vector<Pair> pieces = {{0, 0, piece}};
  const auto add = [&](std::uint64_t offset) {
    pieces.push_back({pieces.size() * piece, offset, piece});
  };
  for (std::uint64_t at = seam; at < size; at += seam) {
    add(at - seam + seam / 3);
    add(at - piece / 2);
  }
  add(size - piece);
  Segment local = must(pair.a.add(Memory::own(pieces.size() * piece)));
  fill(bytes_of(local), 1);

  Transfer transfer = must(pair.a.write(local, there, pieces));
  ASSERT_TRUE(succeeds(transfer.wait(soon())));
  const std::span<const std::byte> all = bytes_of(remote);
  const auto is_zero = [](std::byte each) { return each == std::byte{0}; };
  for (const Pair& each : pieces) {
    const std::uint64_t begin = each.remote, end = begin + each.length;
    EXPECT_TRUE(holds(all.subspan(begin, piece), 1, each.local)) << "at " << begin;
    EXPECT_TRUE(std::ranges::all_of(
        all.subspan(begin - std::min(begin, margin), std::min(begin, margin)), is_zero));
    EXPECT_TRUE(std::ranges::all_of(all.subspan(end, std::min(size - end, margin)), is_zero));
  }
}

TEST_F(Extents, OfASegmentThatNoRegionHolds) {
  device_.set("write_pages=4096");
  Couple pair = couple(config());
  // Where libfabric makes writes of messages, the device knows of no region that peers write.
  if (pair.a.info().rails.front().capability.write == Origin::emulated)
    device_.set("region_pages=4096");
  constexpr std::uint64_t size = 64 << 20;
  Board board(pair, size, size);
  const Pair all[] = {{0, 0, size}};
  board.expect_moved(Direction::write, all);
  board.repaint();
  board.expect_moved(Direction::read, all);
}

}  // namespace
}  // namespace weft::test
