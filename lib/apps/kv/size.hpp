// Byte counts that remember an overflow.
#pragma once

#include <cstdint>

namespace weft::kv {

/// A byte count under construction that remembers whether 64 bits were ever too few for it.
class Size {
 public:
  constexpr Size(std::uint64_t value) noexcept : value_(value) {}  // NOLINT: converts by intent

  friend constexpr Size operator+(Size a, Size b) noexcept {
    Size sum(0);
    const bool over = __builtin_add_overflow(a.value_, b.value_, &sum.value_);
    sum.fits_ = a.fits_ && b.fits_ && !over;
    return sum;
  }

  friend constexpr Size operator*(Size a, Size b) noexcept {
    Size product(0);
    const bool over = __builtin_mul_overflow(a.value_, b.value_, &product.value_);
    product.fits_ = a.fits_ && b.fits_ && !over;
    return product;
  }

  /// The next multiple of `step`, which must not be 0.
  constexpr Size rounded_up(std::uint64_t step) const noexcept {
    const std::uint64_t rest = value_ % step;
    return rest == 0 ? *this : *this + Size(step - rest);
  }

  constexpr bool fits() const noexcept { return fits_; }
  /// Meaningless unless fits().
  constexpr std::uint64_t value() const noexcept { return value_; }

 private:
  std::uint64_t value_;
  bool fits_ = true;
};

}  // namespace weft::kv
