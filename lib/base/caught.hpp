// Keeps the exceptions of libraries in.
#pragma once

#include <exception>
#include <new>
#include <system_error>
#include <weft/error.hpp>

#include "base/system_error.hpp"

namespace weft::core {

/// Runs `body`, which returns a Result: what it throws becomes its error.
template <typename Body>
auto caught(Body&& body) -> decltype(body()) {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return fail(Code::out_of_memory, "there is no memory left");
  } catch (const std::system_error& error) {
    return fail(system_error(error));
  } catch (const std::exception& error) {
    return fail(Code::internal, error.what());
  }
}

}  // namespace weft::core
