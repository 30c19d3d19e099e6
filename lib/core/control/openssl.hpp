// Owners of what OpenSSL hands out.
#pragma once

#include <memory>

namespace weft::core {

template <auto Function>
struct FreeWith {
  template <typename Object>
  void operator()(Object* object) const noexcept {
    Function(object);
  }
};

/// Owned<BIO, BIO_free_all>.
template <typename Object, auto Function>
using Owned = std::unique_ptr<Object, FreeWith<Function>>;

}  // namespace weft::core
