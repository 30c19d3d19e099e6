/// @file
/// State that Weft shares with the whole process: environment variables and the libfabric in use.
#pragma once

#include <cstdint>
#include <string>
#include <vector>
#include <weft/export.hpp>

namespace weft {

/// Sets the environment variables of libfabric and libibverbs that Weft's promises rest on, unless
/// they are set already. Once is enough.
///
/// Call it first in main(), before there are other threads. Otherwise the first Engine::open or
/// discover() sets them, beside threads that may call getenv: with glibc before 2.41 such a process
/// can crash. A launcher may set them instead: process_info() lists them.
WEFT_API void prepare_process();

/// An environment variable that Weft's promises rest on.
struct ProcessVariable {
  enum class SetBy : std::uint8_t {
    application,  ///< It was set before Weft looked, to this or another value.
    prepared,     ///< By prepare_process().
    late          ///< By Weft, as libfabric was first used.
  };
  std::string name;
  std::string value;
  SetBy set_by = SetBy::application;
};

/// The libfabric that Weft calls. It is found when an engine or discover() first looks for
/// providers that take one, and stays to the end of the process. The first of these counts: the
/// file that the environment variable WEFT_LIBFABRIC names, the one that this process has loaded,
/// the EFA installer's (/opt/amazon/efa), the system's (libfabric.so.1).
struct LibfabricInfo {
  std::string version;  ///< "2.1"; empty: none is in use.
  std::string file;     ///< Empty: none is in use.
  std::string found;    ///< How, as half a sentence: "the system has it".
  std::string warning;  ///< What may go wrong with it, as a sentence; empty: nothing is known.
  /// Why Weft found none, as a sentence; empty if it has one, or has not looked.
  std::string problem;
  /// Files of other libfabrics that this process has loaded, which Weft does not use. Both see the
  /// same environment variables. Empty while none is in use.
  std::vector<std::string> others;
};

struct ProcessInfo {
  LibfabricInfo libfabric;
  /// Empty before prepare_process() and the first use of libfabric.
  std::vector<ProcessVariable> variables;
};
/// The present state. From any thread.
WEFT_API ProcessInfo process_info();

}  // namespace weft
