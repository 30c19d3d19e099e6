// Errors of system calls and of libraries.
#pragma once

#include <exception>
#include <new>
#include <string>
#include <string_view>
#include <system_error>
#include <weft/error.hpp>

namespace weft::core {

/// "Permission denied"; of a limit of the process's, with its value and its name.
std::string error_text(int number);
/// Of a call that names a file.
Code code_of_path_error(int number);
/// The error of a call that failed, from `errno`.
Error system_error(std::string_view operation);
/// What a library has thrown for it.
Error system_error(const std::system_error& thrown);

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
