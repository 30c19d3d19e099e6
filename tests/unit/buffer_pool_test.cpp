// Buffers of equal size, and where they lie.
#include "message/buffer_pool.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <set>

#include "scripted_endpoint.hpp"

namespace weft::core {
namespace {

TEST(BufferPool, WhatIsBehindTheHeadBeginsAtAPage) {
  constexpr std::size_t head = 48, bytes = 5000, count = 7;
  test::ScriptedEndpoint endpoint;
  BufferPool pool(endpoint, bytes, 3, head);
  ASSERT_TRUE(pool.grow_to(count, count));
  std::set<std::byte*> begins;
  for (std::size_t i = 0; i < count; ++i) {
    Buffer* const buffer = pool.take();
    ASSERT_NE(buffer, nullptr);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer->data + head) % 4096, 0U);
    std::fill_n(buffer->data, bytes, std::byte{7});  // the address sanitizer knows the end
    begins.insert(buffer->data);
  }
  EXPECT_EQ(begins.size(), count);
  for (auto next = begins.begin(); std::next(next) != begins.end(); ++next)
    EXPECT_LE(*next + bytes, *std::next(next));
}

}  // namespace
}  // namespace weft::core
