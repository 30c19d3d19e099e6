// Alignment, which flatbuffers' verifier leaves to its callers.
#pragma once

#include <flatbuffers/flatbuffers.h>

#include <cstdint>

namespace weft::core {

/// Whether the structs lie as they must: the verifier looks where the vector begins, not at that.
template <typename Struct>
bool is_aligned(const flatbuffers::Vector<const Struct*>& structs) {
  return structs.size() == 0 ||
         reinterpret_cast<std::uintptr_t>(structs.Data()) % alignof(Struct) == 0;
}

}  // namespace weft::core
