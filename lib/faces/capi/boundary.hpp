// The border of every C function: it checks pointers, keeps exceptions in, turns results into
// statuses and values into handles.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <span>
#include <utility>
#include <weft/deadline.hpp>

#include "capi/handles.hpp"

namespace weft::capi {

/// A pointer that must not be NULL.
struct Argument {
  const char* name;
  const void* value;
  bool needed = true;
};

/// A list, which may be NULL where it is empty.
inline Argument list(const char* name, const void* first, std::size_t count) {
  return {name, first, count > 0};
}

Result<void> check(std::initializer_list<Argument> arguments);

/// Never fails: where memory is lacking it returns an error that says so. For weft_error_free().
weft_error* make_error(const Error& error) noexcept;

/// As make_error(), for as long as a callback runs; null for null.
struct ErrorDeleter {
  void operator()(weft_error* error) const noexcept { weft_error_free(error); }
};
using OwnedError = std::unique_ptr<weft_error, ErrorDeleter>;
inline OwnedError make_error(const Error* error) noexcept {
  return OwnedError(error != nullptr ? make_error(*error) : nullptr);
}

/// Hands an error to the caller, if it wants it.
weft_code failed(weft_error** out, const Error& error) noexcept;
/// The same with the exception that is being handled.
weft_code caught(weft_error** out) noexcept;

/// Runs `body`, which returns Result<void>, if all arguments are there.
template <typename Body>
weft_code call(weft_error** error, std::initializer_list<Argument> arguments,
               Body&& body) noexcept {
  try {
    const Result<void> result = check(arguments).and_then(std::forward<Body>(body));
    if (!result) return failed(error, result.error());
  } catch (...) {
    return caught(error);
  }
  if (error != nullptr) *error = nullptr;
  return WEFT_OK;
}

/// Makes a handle of a value.
template <typename Handle, typename Value>
Result<void> give(Handle** out, Result<Value>&& made) {
  if (!made) return fail(std::move(made.error()));
  *out = new Handle{std::move(*made)};
  return {};
}

inline Deadline in(std::int64_t timeout_ns) {
  return Deadline::in(Nanoseconds(timeout_ns));
}

inline Bytes bytes_of(const void* data, std::size_t bytes) {
  return {static_cast<const std::byte*>(data), bytes};
}

/// An enumerator between `first` and `last` with the value that the caller gave.
template <typename Enum>
Result<Enum> enumerator(const char* name, std::int32_t value, Enum first, Enum last) {
  if (value >= static_cast<std::int32_t>(first) && value <= static_cast<std::int32_t>(last))
    return static_cast<Enum>(value);
  return fail(Code::invalid_argument,
              fmt::format("{} is {}, and must be from {} to {}", name, value,
                          static_cast<std::int32_t>(first), static_cast<std::int32_t>(last)));
}

template <typename Range>
auto at(const char* what, const Range& range, std::size_t index)
    -> Result<decltype(std::data(range))> {
  if (index < std::size(range)) return std::data(range) + index;
  return fail(Code::invalid_argument,
              fmt::format("there is no {} {}: there are {}", what, index, std::size(range)));
}

/// The size that a growing struct had in the first release with it. A change that adds a member
/// specialises it with the offset of the first one added.
template <typename Struct>
constexpr std::size_t oldest_size = sizeof(Struct);
template <>
inline constexpr std::size_t oldest_size<weft_transfer_options> = offsetof(weft_transfer_options,
                                                                           wait_for_room_ns);

/// Refuses what is not the size of any version's struct, such as a member never set.
Result<void> check_size(const char* name, std::size_t size, std::size_t oldest);
/// Whether a newer caller has set something here that this library does not know.
Result<void> check_unknown(const char* name, std::span<const std::byte> unknown);

/// A growing struct of the caller's, with zeros for what its version does not have.
template <typename Struct>
Result<Struct> read(const char* name, const Struct* given) {
  if (auto checked = check_size(name, given->size, oldest_size<Struct>); !checked)
    return fail(std::move(checked.error()));
  const Bytes bytes = bytes_of(given, given->size);
  const std::size_t known = std::min(sizeof(Struct), bytes.size());
  if (auto checked = check_unknown(name, bytes.subspan(known)); !checked)
    return fail(std::move(checked.error()));
  Struct read{};
  std::memcpy(&read, bytes.data(), known);
  return read;
}

/// The same where NULL stands for zeros.
template <typename Struct>
Result<Struct> read_optional(const char* name, const Struct* given) {
  return given != nullptr ? read(name, given) : Struct{};
}

/// Fills in a growing struct of the caller's, as far as its version goes.
template <typename Struct>
Result<void> fill(const char* name, Struct* out, Struct value) {
  const std::size_t size = out->size;
  if (auto checked = check_size(name, size, oldest_size<Struct>); !checked) return checked;
  value.size = size;
  std::memset(static_cast<void*>(out), 0, size);
  std::memcpy(out, &value, std::min(size, sizeof value));
  return {};
}

/// A policy as text; NULL for none.
Result<Policy> policy_of(const char* name, const char* text);
/// As the caller sees them in both structs with options.
Result<TransferOptions> from_c(const weft_transfer_options& options);

inline weft_place to_c(const Place& place) {
  return {static_cast<std::int32_t>(place.kind), place.numa_node, place.device, place.drive};
}

}  // namespace weft::capi
