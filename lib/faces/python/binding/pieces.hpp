// Lists of pieces and pages from index arrays, without a loop in Python.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>
#include <optional>
#include <span>
#include <variant>
#include <vector>
#include <weft/transfer.hpp>

namespace weft::python {

/// Integers of any type and strides, of one or two dimensions: an array as it lies, or a copy of
/// another iterable.
class Integers {
 public:
  /// `name` is for errors.
  Integers(nanobind::handle object, const char* name);
  /// Nothing if it is no array.
  static std::optional<Integers> of_array(nanobind::handle object, const char* name);

  std::size_t size() const noexcept { return array_.shape(0); }
  std::size_t dimensions() const noexcept { return array_.ndim(); }
  std::size_t columns() const noexcept { return array_.shape(1); }
  bool are_signed() const noexcept { return is_signed_; }
  /// Raises if it is negative.
  std::uint64_t at(std::size_t row, std::size_t column = 0) const;
  /// Null unless they lie one after the other in so many bytes each.
  const void* dense(std::size_t bytes) const noexcept;

 private:
  using Array = nanobind::ndarray<nanobind::ro, nanobind::device::cpu>;
  Integers(Array array, const char* name);
  static Array array_of(nanobind::handle object);

  const char* name_;
  Array array_;
  bool is_signed_ = false;
};

/// 32-bit numbers of pages or blocks.
class PageNumbers {
 public:
  /// `kept`: for longer than a call. Then it has a copy, for the memory of an array can go
  /// elsewhere.
  PageNumbers(nanobind::handle object, const char* name, bool kept);
  PageNumbers(const PageNumbers&) = delete;
  PageNumbers& operator=(const PageNumbers&) = delete;
  std::span<const std::uint32_t> get() const noexcept { return numbers_; }

 private:
  std::optional<Integers> integers_;
  std::vector<std::uint32_t> copy_;
  std::span<const std::uint32_t> numbers_;
};

/// weft.Pieces: a list of its own.
struct Pieces {
  std::vector<Pair> pairs;
};

/// weft.Paged.
struct PagedPieces {
  PageNumbers local_pages, remote_pages;
  std::uint64_t page_bytes, local_base, local_stride, remote_base, remote_stride;
  Paged get() const {
    return {page_bytes,    local_base,        local_stride,      remote_base,
            remote_stride, local_pages.get(), remote_pages.get()};
  }
};

/// The pieces that a call names: an array (n, 3), a list of triples, or one of weft's classes.
class PieceArgument {
 public:
  explicit PieceArgument(nanobind::handle object);
  std::size_t size() const;
  /// Calls `use` with a span of pairs, a Strided or a Paged.
  template <typename Use>
  auto visit(Use&& use) const {
    if (strided_) return use(*strided_);
    if (paged_ != nullptr) return use(paged_->get());
    return use(pairs_);
  }

 private:
  std::optional<Integers> integers_;
  std::vector<Pair> copy_;
  std::span<const Pair> pairs_;
  std::optional<Strided> strided_;
  const PagedPieces* paged_ = nullptr;
};

void bind_pieces(nanobind::module_& module);

}  // namespace weft::python
