// Every pair of a generated family of layouts, against the oracle.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <random>

#include "oracle.hpp"
#include "providers/sanitizer.hpp"

namespace weft::kv {
namespace {

constexpr std::array<std::uint32_t, 4> tp_sizes = {1, 2, 4, 8};
constexpr std::uint32_t request_tokens = 40;  // fills 2 1/2 blocks of 16

struct Member {
  Group group;
  bool scattered = false;  ///< Each base in a region of its own.

  std::string to_string() const {
    return fmt::format("placement {} order {} heads {} regions {} tokens {} padding {}/{}",
                       static_cast<int>(group.placement), static_cast<int>(group.order),
                       static_cast<int>(group.head_order), static_cast<int>(group.regions),
                       group.tokens_per_block, group.block_padding, group.block_alignment);
  }
};

/// With padding, and allocated in as many regions as the orders allow.
Member apart(Group group) {
  const bool layers = group.order == Order::layer_major;
  const bool split = group.placement == Placement::split;
  if (layers && split) group.regions = Regions::per_layer_and_field;
  if (layers && !split) group.regions = Regions::per_layer;
  if (!layers && split) group.regions = Regions::per_field;
  group.block_padding = 3;
  group.block_alignment = 16;
  return {group, true};
}

std::vector<Member> family(const Group& model) {
  std::vector<Member> members;
  for (const Placement placement : {Placement::split, Placement::fused}) {
    for (const Order order : {Order::layer_major, Order::block_major}) {
      for (const HeadOrder heads : {HeadOrder::nhd, HeadOrder::hnd}) {
        for (const std::uint32_t tokens : {1u, 8u, 16u, 32u}) {
          Group group = model;
          group.placement = placement;
          group.order = order;
          group.head_order = heads;
          group.tokens_per_block = tokens;
          group.blocks = request_tokens / tokens + 3;
          if (tokens > 1) members.push_back({group, false});
          members.push_back(apart(group));
        }
      }
    }
  }
  return members;
}

/// A request in shuffled blocks, with some that follow one another.
oracle::Request shuffled(const Group& group, std::mt19937& random) {
  std::vector<std::uint32_t> all(group.blocks);
  std::iota(all.begin(), all.end(), 0u);
  const auto middle = all.begin() + group.blocks / 2;
  std::shuffle(all.begin(), middle, random);
  std::rotate(all.begin(), all.begin() + std::uniform_int_distribution<>(0, 2)(random), all.end());
  all.resize((request_tokens + group.tokens_per_block - 1) / group.tokens_per_block);
  return {{{all}}, {0, request_tokens}};
}

/// All members' ranks for one tensor-parallel size, with requests drawn by `seed`.
std::vector<std::vector<oracle::Rank>> sides(const std::vector<Member>& members,
                                             std::uint32_t tp_size, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<std::vector<oracle::Rank>> all;
  for (const Member& member : members) {
    all.push_back(
        oracle::ranks({member.group}, tp_size, shuffled(member.group, random), member.scattered));
  }
  return all;
}

/// Under a sanitizer, which makes them ten times slower, every fifth pair.
void check_all_pairs(const std::vector<Member>& members) {
  constexpr std::size_t every = providers::sanitized ? 5 : 1;
  std::array<std::vector<std::vector<oracle::Rank>>, tp_sizes.size()> src, dst;
  for (std::size_t i = 0; i < tp_sizes.size(); ++i) {
    src[i] = sides(members, tp_sizes[i], 1);
    dst[i] = sides(members, tp_sizes[i], 2);
  }
  for (std::size_t s = 0; s < tp_sizes.size(); ++s) {
    for (std::size_t d = 0; d < tp_sizes.size(); ++d) {
      for (std::size_t i = 0; i < members.size(); ++i) {
        for (std::size_t j = i % every; j < members.size(); j += every) {
          ASSERT_EQ(oracle::check(src[s][i], dst[d][j]), "")
              << "from " << members[i].to_string() << " on " << tp_sizes[s] << " ranks\nto "
              << members[j].to_string() << " on " << tp_sizes[d] << " ranks";
        }
      }
    }
  }
}

Group small_model(std::uint32_t kv_heads) {
  Group group;
  group.layers = {0, 1};
  group.fields = keys_values(kv_heads, 2, DType::fp8);
  return group;
}

TEST(KvFamily, EveryPairOfLayouts) {
  check_all_pairs(family(small_model(8)));
}

TEST(KvFamily, EveryPairOfLatentLayouts) {
  Group group = small_model(1);
  group.fields = latent(3, DType::fp8);
  check_all_pairs(family(group));
}

// With 4 and 2 heads, 8 ranks hold 2 and 4 replicas of each.
TEST(KvFamily, ReplicatedHeads) {
  for (const std::uint32_t heads : {2u, 4u}) {
    auto members = family(small_model(heads));
    std::erase_if(members, [](const Member& m) {
      return m.group.tokens_per_block != 8 && m.group.tokens_per_block != 32;
    });
    std::erase_if(members, [](const Member& m) { return m.group.order == Order::block_major; });
    check_all_pairs(members);
  }
}

/// Whether a plan holds two copies that are adjacent on both sides.
bool could_merge(Plan plan) {
  std::sort(plan.copies.begin(), plan.copies.end(), [](const Copy& a, const Copy& b) {
    return std::pair(a.dst_region, a.dst_offset) < std::pair(b.dst_region, b.dst_offset);
  });
  return std::adjacent_find(plan.copies.begin(), plan.copies.end(),
                            [](const Copy& a, const Copy& b) {
                              return a.dst_region == b.dst_region && a.src_region == b.src_region &&
                                     a.dst_offset + a.length == b.dst_offset &&
                                     a.src_offset + a.length == b.src_offset;
                            }) != plan.copies.end();
}

TEST(KvFamily, NothingIsLeftToMerge) {
  const auto members = family(small_model(8));
  for (const std::uint32_t dst_size : {1u, 8u}) {
    const auto src = sides(members, 8, 1);
    const auto dst = sides(members, dst_size, 2);
    for (std::size_t i = 0; i < members.size(); ++i) {
      for (std::size_t j = 0; j < members.size(); ++j) {
        const auto& from = src[i].front();
        const auto& to = dst[j].front();
        const auto made = oracle::plan_of(from, to);
        ASSERT_TRUE(made) << made.error().to_string();
        ASSERT_FALSE(could_merge(*made))
            << "from " << members[i].to_string() << "\nto " << members[j].to_string();
        ASSERT_GE(made->pieces, made->copies.size());
      }
    }
  }
}

}  // namespace
}  // namespace weft::kv
