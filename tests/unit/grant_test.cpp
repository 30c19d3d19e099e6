// Grants: ranges, rights, and the wire form.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <random>

#include "lease/grant_state.hpp"
#include "parts.hpp"
#include "wire/sentence.hpp"

namespace weft::core::test {
namespace {

using testing::HasSubstr;

constexpr std::uint64_t most = std::numeric_limits<std::uint64_t>::max();

std::vector<std::pair<std::uint64_t, std::uint64_t>> flat(const std::vector<Range>& ranges) {
  std::vector<std::pair<std::uint64_t, std::uint64_t>> all;
  for (const Range& range : ranges) all.emplace_back(range.offset, range.length);
  return all;
}
using Flat = std::vector<std::pair<std::uint64_t, std::uint64_t>>;

Flat normal(const std::vector<Range>& ranges, std::uint64_t size = 1000) {
  auto result = normalise(ranges, size);
  EXPECT_TRUE(result.has_value());
  return result ? flat(*result) : Flat{};
}

TEST(Normalise, NoRangesMeanEverything) {
  EXPECT_EQ(normal({}), (Flat{{0, 1000}}));
}

TEST(Normalise, SortsAndMergesWhatTouchesOrOverlaps) {
  EXPECT_EQ(normal({{50, 10}, {0, 10}}), (Flat{{0, 10}, {50, 10}}));
  EXPECT_EQ(normal({{10, 10}, {0, 10}}), (Flat{{0, 20}}));
  EXPECT_EQ(normal({{0, 100}, {20, 10}}), (Flat{{0, 100}}));
  EXPECT_EQ(normal({{0, 30}, {20, 30}, {51, 1}}), (Flat{{0, 50}, {51, 1}}));
  EXPECT_EQ(normal({{5, 5}, {5, 5}, {5, 1}}), (Flat{{5, 5}}));
  EXPECT_EQ(normal({{0, most}}, most), (Flat{{0, most}}));
}

TEST(Normalise, RefusesWhatLeavesTheSegmentOrIsEmpty) {
  for (const Range& bad : std::vector<Range>{
           {0, 1001}, {1000, 1}, {1001, 0}, {most, 2}, {2, most}, {999, 2}, {5, 0}, {1000, 0}}) {
    const std::vector<Range> ranges = {{0, 1}, bad};
    const auto result = normalise(ranges, 1000);
    ASSERT_FALSE(result) << bad.offset << "+" << bad.length;
    EXPECT_EQ(result.error().code(), Code::invalid_argument);
  }
}

TEST(Normalise, CoversTheSameBytesAsWhatItWasGiven) {
  for (std::uint32_t seed = 0; seed < 500; ++seed) {
    std::mt19937 random(seed);
    std::vector<Range> ranges;
    std::vector<bool> wanted(200), got(200);
    const std::size_t count = 1 + random() % 12;
    for (std::size_t i = 0; i < count; ++i) {
      const std::uint64_t offset = random() % 199;
      const std::uint64_t length = 1 + random() % std::min<std::uint64_t>(40, 200 - offset);
      ranges.push_back({offset, length});
      for (std::uint64_t at = offset; at < offset + length; ++at) wanted[at] = true;
    }
    const auto merged = normalise(ranges, 200);
    ASSERT_TRUE(merged);
    std::uint64_t end = 0;
    for (std::size_t i = 0; i < merged->size(); ++i) {
      const Range& range = (*merged)[i];
      ASSERT_TRUE(i == 0 || range.offset > end) << "sorted, and apart";
      end = range.offset + range.length;
      for (std::uint64_t at = range.offset; at < end; ++at) got[at] = true;
    }
    ASSERT_EQ(got, wanted) << "seed " << seed;
  }
}

TEST(GrantState, AllowsItsRightsInItsRangesOnly) {
  const auto grant = make_grant(make_segment(), 1, Rights::read, {{100, 100}, {300, 100}});
  EXPECT_TRUE(grant->allows(Rights::read, 100, 100));
  EXPECT_TRUE(grant->allows(Rights::read, 399, 1));
  EXPECT_TRUE(grant->allows(Rights::read, 150, 0));
  EXPECT_FALSE(grant->allows(Rights::write, 100, 1));
  EXPECT_FALSE(grant->allows(Rights::read_write, 100, 1));
  EXPECT_FALSE(grant->allows(Rights::read, 99, 1));
  EXPECT_FALSE(grant->allows(Rights::read, 199, 2));
  EXPECT_FALSE(grant->allows(Rights::read, 150, 200)) << "across the gap";
  EXPECT_FALSE(grant->allows(Rights::read, 400, 1));
  EXPECT_FALSE(grant->allows(Rights::read, 150, most));
  EXPECT_FALSE(grant->allows(Rights::read, most, 1));
  const auto both = make_grant(make_segment(), 1, Rights::read_write);
  EXPECT_TRUE(both->allows(Rights::read, 0, 1));
  EXPECT_TRUE(both->allows(Rights::write, 0, 1));
  EXPECT_TRUE(both->allows(Rights::read_write, 0, 4096));
}

GrantDescription description() {
  GrantDescription grant;
  grant.engine = "some engine";
  grant.incarnation = 0x1234567890abcdef;
  grant.address = "[::1]:7000";
  grant.segment = 17;
  grant.segment_size = std::uint64_t{1} << 40;
  grant.place = {MemoryKind::device, 1, 3, 5};
  grant.rights = Rights::read_write;
  grant.lease = most;
  grant.ttl = 5s;
  grant.epoch = 4711;
  grant.ranges = {{0, 4096}, {8192, 1}, {std::uint64_t{1} << 39, std::uint64_t{1} << 39}};
  grant.extent_bytes = std::uint64_t{1} << 39;
  grant.keys = {{0, 0, 42, {0, std::uint64_t{1} << 39}},
                {0, 0, 45, {std::uint64_t{1} << 39, std::uint64_t{1} << 39}},
                {3, 0x7fff00000000, most, {0, 8193}}};
  grant.epoch_keys = {{0, 8, 43}, {3, 0x7ffe00000000, 44}};
  grant.bounced = {{1, "the NIC is full"}, {7}};
  grant.block_bytes = 65536;
  return grant;
}

TEST(GrantCodec, RoundTrip) {
  const GrantDescription grant = description();
  const auto decoded = decode_grant(encode_grant(grant));
  ASSERT_TRUE(decoded);
  EXPECT_EQ(decoded->engine, grant.engine);
  EXPECT_EQ(decoded->incarnation, grant.incarnation);
  EXPECT_EQ(decoded->address, grant.address);
  EXPECT_EQ(decoded->segment, grant.segment);
  EXPECT_EQ(decoded->segment_size, grant.segment_size);
  EXPECT_EQ(decoded->place.kind, grant.place.kind);
  EXPECT_EQ(decoded->place.numa_node, 1);
  EXPECT_EQ(decoded->place.device, 3);
  EXPECT_EQ(decoded->place.drive, 5);
  EXPECT_EQ(decoded->rights, grant.rights);
  EXPECT_EQ(decoded->lease, grant.lease);
  EXPECT_EQ(flat(decoded->ranges), flat(grant.ranges));
  EXPECT_EQ(decoded->extent_bytes, grant.extent_bytes);
  EXPECT_EQ(decoded->block_bytes, 65536U);
  ASSERT_EQ(decoded->keys.size(), 3U);
  EXPECT_EQ(decoded->keys[1].part.offset, std::uint64_t{1} << 39);
  EXPECT_EQ(decoded->keys[1].part.length, std::uint64_t{1} << 39);
  EXPECT_EQ(decoded->keys[2].rail, 3U);
  EXPECT_EQ(decoded->keys[2].base, 0x7fff00000000U);
  EXPECT_EQ(decoded->keys[2].key, most);
  EXPECT_EQ(decoded->keys[2].part.length, 8193U);
  EXPECT_EQ(decoded->ttl, 5s);
  EXPECT_EQ(decoded->epoch, 4711U);
  ASSERT_EQ(decoded->epoch_keys.size(), 2U);
  EXPECT_EQ(decoded->epoch_keys[1].base, 0x7ffe00000000U);
  EXPECT_EQ(decoded->epoch_keys[1].key, 44U);
  ASSERT_EQ(decoded->bounced.size(), 2U);
  EXPECT_EQ(decoded->bounced[0].rail, 1U);
  EXPECT_EQ(decoded->bounced[0].why, "the NIC is full");
  EXPECT_EQ(decoded->bounced[1].rail, 7U);
  EXPECT_EQ(decoded->bounced[1].why, "");
}

TEST(GrantCodec, ReasonsFromOutsideAreCutAndCantPlayTricks) {
  GrantDescription grant = description();
  grant.bounced = {{0, std::string(2000, 'x')}, {1, "a\x1b[2J\nb"}};
  const auto decoded = decode_grant(encode_grant(grant));
  ASSERT_TRUE(decoded);
  EXPECT_EQ(decoded->bounced[0].why, std::string(limits::sentence, 'x'));
  EXPECT_EQ(decoded->bounced[1].why, "a?[2J?b");
}

TEST(GrantCodec, EqualReasonsTravelOnce) {
  const auto bytes_for = [](std::uint32_t rails) {
    GrantDescription grant = description();
    grant.bounced.clear();
    for (std::uint32_t rail = 0; rail < rails; ++rail)
      grant.bounced.push_back({rail, std::string(500, 'x')});
    return encode_grant(grant).size();
  };
  EXPECT_LT(bytes_for(8), bytes_for(1) + 100);
}

TEST(GrantCodec, ALeaseWithoutEndStaysOne) {
  GrantDescription grant = description();
  grant.ttl = unlimited;
  EXPECT_EQ(decode_grant(encode_grant(grant)).value().ttl, unlimited);
  grant.ttl = unlimited - 1ns;
  EXPECT_EQ(decode_grant(encode_grant(grant)).value().ttl, grant.ttl);
}

TEST(GrantCodec, ABlobMayLieAtAnyAddress) {
  const Blob blob = encode_grant(description());
  for (std::size_t shift = 0; shift < 8; ++shift) {
    Blob shifted(shift);
    shifted.insert(shifted.end(), blob.begin(), blob.end());
    EXPECT_TRUE(decode_grant(Bytes(shifted).subspan(shift))) << shift;
  }
}

TEST(GrantCodec, RefusesWhatIsNoGrant) {
  for (const Blob& bad : {Blob{}, Blob(7), Blob(8), Blob(1000), Blob(1000, std::byte{0xff})}) {
    const auto decoded = decode_grant(bad);
    ASSERT_FALSE(decoded);
    EXPECT_EQ(decoded.error().code(), Code::invalid_argument);
    EXPECT_THAT(decoded.error().message(), HasSubstr("not a grant"));
  }
  const Blob whole = encode_grant(description());
  for (std::size_t length = 0; length < whole.size(); ++length)
    EXPECT_FALSE(decode_grant(Bytes(whole).first(length))) << length;
}

TEST(GrantCodec, RefusesContentsThatDoNotHold) {
  const auto refused = [](auto change) {
    GrantDescription grant = description();
    change(grant);
    return !decode_grant(encode_grant(grant));
  };
  EXPECT_TRUE(refused([](auto& grant) { grant.ranges = {}; }));
  EXPECT_TRUE(refused([](auto& grant) { grant.ranges = {{0, 0}}; }));
  EXPECT_TRUE(refused([](auto& grant) { grant.ranges = {{10, 10}, {19, 1}}; }));
  EXPECT_TRUE(refused([](auto& grant) { grant.ranges = {{10, 10}, {0, 1}}; }));
  EXPECT_TRUE(refused([](auto& grant) { grant.segment_size = 4096; }));
  EXPECT_TRUE(refused([](auto& grant) { grant.ranges = {{most, 2}}; }));
  EXPECT_TRUE(refused([](auto& grant) { grant.engine = ""; }));
  EXPECT_TRUE(refused([](auto& grant) { grant.engine = std::string(256, 'x'); }));
  EXPECT_TRUE(refused([](auto& grant) { grant.rights = Rights{0}; }));
  EXPECT_TRUE(refused([](auto& grant) { grant.rights = Rights{4}; }));
  EXPECT_TRUE(refused([](auto& grant) { grant.place.kind = MemoryKind{4}; }));
  EXPECT_TRUE(refused([](auto& grant) { grant.keys.assign(max_granted_keys + 1, {}); }));
  // A rail's number becomes an index on the importing side, and so does an extent's.
  static constexpr Range first{0, std::uint64_t{1} << 39};
  EXPECT_TRUE(refused([](auto& grant) { grant.keys = {{0xffffffff, 0, 1, first}}; }));
  EXPECT_TRUE(refused([](auto& grant) { grant.keys = {{256, 0, 1, first}}; }));
  EXPECT_FALSE(refused([](auto& grant) { grant.keys = {{255, 0, 1, first}}; }));
  EXPECT_TRUE(refused([](auto& grant) { grant.keys = {{0, 0, 1, first}, {0, 0, 2, first}}; }));
  EXPECT_TRUE(refused([](auto& grant) { grant.keys = {{0, 0, 1, {0, 0}}}; }));
  EXPECT_TRUE(refused([](auto& grant) {
    grant.keys = {{0, 0, 1, {0, 4096}}};
  })) << "it does not reach all that is granted";
  EXPECT_TRUE(refused([](auto& grant) { grant.keys = {{0, 0, 1, {1, first.length - 1}}}; }));
  EXPECT_TRUE(refused([](auto& grant) {
    grant.keys = {{0, 0, 1, {0, first.length + 1}}};
  })) << "over a seam";
  EXPECT_TRUE(refused([](auto& grant) { grant.keys = {{0, 0, 1, {most, 2}}}; }));
  EXPECT_TRUE(refused([](auto& grant) { grant.extent_bytes = 0; }));
  EXPECT_TRUE(refused([](auto& grant) {
    grant.segment_size = most;
    grant.extent_bytes = std::uint64_t{1} << 63;
    grant.keys = {{0, 0, 1, {0, std::uint64_t{1} << 63}}};
  })) << "a segment of two extents of which the importer sees one";
  EXPECT_TRUE(refused([](auto& grant) { grant.extent_bytes = 3 * (first.length / 4); }));
  EXPECT_TRUE(refused([](auto& grant) {
    grant.keys = {};
    grant.extent_bytes = 1;
  })) << "more extents than anybody registers";
  EXPECT_TRUE(refused([](auto& grant) { grant.block_bytes = 0; }));
  EXPECT_TRUE(refused([](auto& grant) { grant.block_bytes = 3 << 12; }));
  EXPECT_TRUE(refused([](auto& grant) { grant.epoch_keys = {{256, 0, 1}}; }));
  EXPECT_TRUE(refused([](auto& grant) { grant.epoch_keys.assign(257, {}); }));
  EXPECT_TRUE(refused([](auto& grant) { grant.bounced = {{256}}; }));
  EXPECT_TRUE(refused([](auto& grant) { grant.bounced.assign(257, {0}); }));
}

/// Whatever a decoded grant says must hold, and it must be safe to use.
void expect_sound(const GrantDescription& grant, const std::shared_ptr<PeerState>& peer) {
  ASSERT_FALSE(grant.ranges.empty());
  std::uint64_t end = 0;
  for (const Range& range : grant.ranges) {
    ASSERT_GT(range.length, 0U);
    ASSERT_GE(range.offset, end);
    ASSERT_LE(range.offset, grant.segment_size);
    ASSERT_LE(range.length, grant.segment_size - range.offset);
    end = range.offset + range.length;
  }
  const auto rights = static_cast<unsigned>(grant.rights);
  ASSERT_TRUE(rights >= 1 && rights <= 3);
  const RemoteState remote(peer, grant);
  for (std::uint32_t rail = 0; rail < 256; ++rail)
    if (remote.reachable_on(rail)) {
      for (const Range& range : grant.ranges)
        for (const std::uint64_t at : {range.offset, range.offset + range.length - 1})
          if (remote.reachable_on(rail, at)) {
            remote.key(rail, at);
            remote.rma_address(rail, at);
          }
      remote.lease_word(rail);
    }
}

TEST(GrantCodec, MutatedBlobsAreRefusedOrSound) {
  const Blob whole = encode_grant(description());
  const auto peer = make_peer(1);
  std::size_t accepted = 0;
  for (std::uint32_t seed = 0; seed < 60000; ++seed) {
    std::mt19937 random(seed);
    Blob blob = whole;
    const std::size_t count = 1 + random() % 4;
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t at = random() % blob.size();
      switch (random() % 5) {
        case 0:
          blob[at] ^= std::byte{1} << (random() % 8);
          break;
        case 1:
          blob[at] = static_cast<std::byte>(random());
          break;
        case 2:
          blob[at] = random() % 2 == 0 ? std::byte{0} : std::byte{0xff};
          break;
        case 3:
          if (blob.size() > 16) blob.resize(blob.size() - 1 - random() % 8);
          break;
        case 4:
          blob.insert(blob.begin() + static_cast<std::ptrdiff_t>(at),
                      static_cast<std::byte>(random()));
          break;
      }
    }
    const auto decoded = decode_grant(blob);
    if (!decoded) continue;
    ++accepted;
    expect_sound(*decoded, peer);
    if (testing::Test::HasFatalFailure()) FAIL() << "seed " << seed;
  }
  EXPECT_GT(accepted, 0U) << "the mutations reach what lies behind the verifier";
}

}  // namespace
}  // namespace weft::core::test
