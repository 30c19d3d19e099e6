// The libfabric of this process.
#pragma once

#include <rdma/fabric.h>

#include <string>
#include <vector>
#include <weft/error.hpp>

namespace weft::providers {

/// What Weft calls of libfabric's exported functions. The rest of its interface is inline: it goes
/// through the objects that these make. From 1.17 to 2.x the structures that they pass have only
/// grown at the end, and libfabric allocates them all: so the newest form of a function serves.
struct Libfabric {
  std::string file;
  std::string found;          // how, as half a sentence: "the system has it"
  std::string warning;        // a sentence; empty: there is none
  std::uint32_t version = 0;  // as FI_VERSION makes it

  decltype(&fi_getinfo) getinfo = nullptr;
  decltype(&fi_dupinfo) dupinfo = nullptr;
  decltype(&fi_freeinfo) freeinfo = nullptr;
  decltype(&fi_fabric) fabric = nullptr;
  decltype(&fi_strerror) strerror = nullptr;

  /// "1.17"
  std::string version_text() const;
};

/// Where libfabric is looked for, beside this process itself.
struct LibfabricPlaces {
  std::string named;                 // the file that it must be; empty: none is named
  std::vector<std::string> folders;  // before the system's, best first
  std::string system;                // a name that the system's loader knows
};

/// Loads it, without starting it. The first one that is there counts: fails with `unavailable` if
/// Weft can't use it, or if there is none.
Result<Libfabric> find_libfabric(const LibfabricPlaces& places);

/// Whether WEFT_LIBFABRIC names it, so that no other may be used.
bool libfabric_is_named();

/// Finds the one that this process uses from then on: the file that WEFT_LIBFABRIC names, this
/// process's own, the EFA installer's, the system's. After a failure the next call looks again.
/// From any thread.
Result<const Libfabric*> load_libfabric();

/// The one in use; null before it was found. From any thread, never waits.
const Libfabric* loaded_libfabric() noexcept;
/// The same where it is known to be there.
inline const Libfabric& libfabric() noexcept {
  return *loaded_libfabric();
}

/// Why the last look found none; empty if it found one, or there was none yet.
std::string libfabric_problem();

/// For those who implement find_libfabric(): fails if it is too old.
Result<Libfabric> check_version(Libfabric library);
/// The variable that names it.
constexpr const char* libfabric_variable = "WEFT_LIBFABRIC";

}  // namespace weft::providers
