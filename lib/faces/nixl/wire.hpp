// Reading what comes from outside as a table of nixl.fbs.
#pragma once

#include <flatbuffers/flatbuffers.h>

#include <cstdint>
#include <vector>

#include "nixl_generated.h"

namespace weft::nixl {

/// A copy, since scalars are read in place and the bytes may lie at any address.
template <typename Table>
class Verified {
 public:
  Verified(const void* bytes, std::size_t length)
      : bytes_(static_cast<const std::uint8_t*>(bytes),
               static_cast<const std::uint8_t*>(bytes) + length) {
    flatbuffers::Verifier verifier(bytes_.data(), bytes_.size());
    if (bytes_.size() >= shortest && verifier.VerifyBuffer<Table>(nullptr))
      table_ = flatbuffers::GetRoot<Table>(bytes_.data());
  }
  Verified(const Verified&) = delete;
  Verified& operator=(const Verified&) = delete;

  explicit operator bool() const { return table_ != nullptr; }
  const Table* operator->() const { return table_; }

 private:
  static constexpr std::size_t shortest = 8;
  const std::vector<std::uint8_t> bytes_;
  const Table* table_ = nullptr;
};

}  // namespace weft::nixl
