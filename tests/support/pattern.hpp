// Bytes that tell where they belong: no two places of a stream, and no two streams, look alike.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>
#include <weft/transfer.hpp>

namespace weft::test {

/// The byte at `offset` of stream `seed`.
std::byte pattern_at(std::uint64_t seed, std::uint64_t offset);
/// Fills `memory` with the bytes of stream `seed` from `offset` on.
void fill(std::span<std::byte> memory, std::uint64_t seed, std::uint64_t offset = 0);
Blob pattern(std::size_t bytes, std::uint64_t seed, std::uint64_t offset = 0);
/// Compares every byte with the stream, and tells the first that differs.
testing::AssertionResult holds(Bytes memory, std::uint64_t seed, std::uint64_t offset = 0);
testing::AssertionResult same_bytes(Bytes actual, Bytes expected);

/// A copy of `before` into which the pieces were copied by plain means: what the written side of a
/// transfer must hold, in and around the pieces.
Blob expected_after(Bytes before, Bytes source, Direction direction, std::span<const Pair> pairs);

/// Whether long forms were asked for with WEFT_LONG=1.
bool long_forms();

}  // namespace weft::test
