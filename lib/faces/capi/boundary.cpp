#include "capi/boundary.hpp"

#include <new>
#include <stdexcept>

namespace weft::capi {
namespace {

// More than any version's struct will have: a larger size is no size.
constexpr std::size_t largest_struct = 4096;

// Made when the library is loaded, for when there is no memory to say that there is none.
weft_error* const exhausted =
    new weft_error{Error(Code::out_of_memory, "memory for the call's own needs ran out")};

}  // namespace

Result<void> check(std::initializer_list<Argument> arguments) {
  for (const Argument& argument : arguments)
    if (argument.needed && argument.value == nullptr)
      return fail(Code::invalid_argument, fmt::format("{} is NULL", argument.name));
  return {};
}

weft_error* make_error(const Error& error) noexcept {
  try {
    return new weft_error{error};
  } catch (...) {
    return exhausted;
  }
}

weft_code failed(weft_error** out, const Error& error) noexcept {
  if (out != nullptr) *out = make_error(error);
  return static_cast<weft_code>(error.code());
}

weft_code caught(weft_error** out) noexcept {
  try {
    throw;
  } catch (const std::bad_alloc&) {
  } catch (const std::length_error&) {
    // A list too long for any memory.
  } catch (const std::exception& unexpected) {
    try {
      return failed(out, Error(Code::internal, unexpected.what()));
    } catch (...) {
      // No memory for the sentence.
    }
  } catch (...) {
    if (out != nullptr) *out = nullptr;
    return WEFT_INTERNAL;
  }
  if (out != nullptr) *out = exhausted;
  return WEFT_OUT_OF_MEMORY;
}

Result<void> check_size(const char* name, std::size_t size, std::size_t oldest) {
  if (size >= oldest && size <= largest_struct) return {};
  return fail(Code::invalid_argument,
              fmt::format("{}->size is {}, and must be the size of the struct, at least {}", name,
                          size, oldest));
}

Result<void> check_unknown(const char* name, std::span<const std::byte> unknown) {
  if (std::all_of(unknown.begin(), unknown.end(),
                  [](std::byte each) { return each == std::byte{}; }))
    return {};
  return fail(
      Code::unsupported,
      fmt::format("{} sets something that this version of the library does not know", name));
}

Result<Policy> policy_of(const char* name, const char* text) {
  if (text == nullptr) return Policy{};
  return parse_policy(text).map_error([&](const Error& error) {
    return Error(error.code(), fmt::format("{}: {}", name, error.message()));
  });
}

}  // namespace weft::capi

using weft::capi::exhausted;

void weft_error_free(weft_error* error) {
  if (error != exhausted) delete error;
}
weft_code weft_error_code(const weft_error* error) {
  return error != nullptr ? static_cast<weft_code>(error->value.code()) : WEFT_OK;
}
const char* weft_error_message(const weft_error* error) {
  return error != nullptr ? error->value.message().c_str() : nullptr;
}
const char* weft_error_peer(const weft_error* error) {
  return error != nullptr ? error->value.peer().c_str() : nullptr;
}
const char* weft_error_rail(const weft_error* error) {
  return error != nullptr ? error->value.rail().c_str() : nullptr;
}
const char* weft_error_operation(const weft_error* error) {
  return error != nullptr ? error->value.operation().c_str() : nullptr;
}
int weft_error_fabric_code(const weft_error* error) {
  return error != nullptr ? error->value.fabric_code() : 0;
}
const char* weft_error_string(const weft_error* error) {
  return error != nullptr ? error->text.c_str() : nullptr;
}
