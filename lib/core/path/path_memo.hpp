// The paths of a list of pieces, made on request.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <weft/path.hpp>

#include "base/sync.hpp"

namespace weft::core {

/// The path that submitting the list would take.
struct KnownPath {
  Result<Path> path;
  std::uint64_t smallest_piece = 0;  // in bytes
};

/// One for each transport that may be asked for; from any thread.
class PathMemo {
 public:
  /// `make` is called the first time. The reference stays valid.
  template <typename Make>
  const KnownPath& of(TransportKind asked, Make&& make) {
    const Lock lock(mutex_);
    auto& known = known_[static_cast<std::size_t>(asked)];
    if (!known) known = std::make_unique<KnownPath>(make());
    return *known;
  }

 private:
  Mutex mutex_;
  std::array<std::unique_ptr<KnownPath>, 4> known_ WEFT_GUARDED_BY(mutex_);  // by transport
};

}  // namespace weft::core
