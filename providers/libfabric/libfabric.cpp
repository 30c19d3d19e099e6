#include "providers/libfabric/libfabric.hpp"

#include <fmt/format.h>

#include <atomic>
#include <cstdlib>

#include "base/sync.hpp"

namespace weft::providers {
namespace {

constexpr std::uint32_t oldest = FI_VERSION(1, 17);

std::string text_of(std::uint32_t version) {
  return fmt::format("{}.{}", FI_MAJOR(version), FI_MINOR(version));
}

/// Not by those who start a program with more rights than they have.
std::string named_file() {
  const char* const file = secure_getenv(libfabric_variable);
  return file != nullptr ? file : "";
}

/// The EFA installer has "lib64" on Amazon Linux and Red Hat, "lib" on Debian and Ubuntu.
LibfabricPlaces usual_places() {
  return {
      named_file(), {WEFT_LIBFABRIC_PATH "/lib64", WEFT_LIBFABRIC_PATH "/lib"}, "libfabric.so.1"};
}

struct State {
  std::atomic<const Libfabric*> found{nullptr};  // stays to the end of the process
  core::Mutex mutex;
  std::string problem WEFT_GUARDED_BY(mutex);
};

/// Never destroyed: engines may be opened to the end of the process.
State& state() {
  static auto& state = *new State;
  return state;
}

}  // namespace

std::string Libfabric::version_text() const {
  return text_of(version);
}

Result<Libfabric> check_version(Libfabric library) {
  if (FI_VERSION_GE(library.version, oldest)) return library;
  return fail(Code::unavailable,
              fmt::format("{} is libfabric {}, but Weft takes {} or newer", library.file,
                          library.version_text(), text_of(oldest)));
}

bool libfabric_is_named() {
  return !named_file().empty();
}

Result<const Libfabric*> load_libfabric() {
  State& known = state();
  const core::Lock lock(known.mutex);
  if (const Libfabric* const found = known.found) return found;
  auto found = find_libfabric(usual_places());
  if (!found) {
    known.problem = found.error().message();
    return fail(std::move(found.error()));
  }
  known.problem.clear();
  known.found = new Libfabric(std::move(*found));
  return known.found.load();
}

const Libfabric* loaded_libfabric() noexcept {
  return state().found.load(std::memory_order_acquire);
}

std::string libfabric_problem() {
  State& known = state();
  const core::Lock lock(known.mutex);
  return known.problem;
}

}  // namespace weft::providers
