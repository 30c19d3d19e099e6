// Another process with memory of its own, which this one writes and reads: in a GPU, the second one
// where there are two, or in the CPU's memory.
#pragma once

#include <optional>
#include <string>

#include "engines.hpp"
#include "process.hpp"
#include "store.hpp"

namespace weft::test {

/// What the two sides have their memory in, and how it is moved.
struct Sides {
  const char* name;
  bool local_gpu, remote_gpu;
  TransportKind transport = TransportKind::bounce;
};
inline constexpr Sides gpu_to_gpu{"gpu_to_gpu", true, true};
/// The one's GPU copies from and to the other's memory.
inline constexpr Sides gpu_lent{"gpu_lent", true, true, TransportKind::device_copy};
inline constexpr Sides gpu_to_host{"gpu_to_host", true, false};
inline constexpr Sides host_to_gpu{"host_to_gpu", false, true};

/// Of a write that Owner::holds() waits for.
inline constexpr std::uint64_t arrival = 7;

class Owner {
 public:
  /// `namespaces`: those of its own that it has (run_apart()); 0: none.
  Owner(const std::string& provider, bool gpu, std::size_t bytes, int namespaces = 0);
  /// The system gave it what it needs: else it is over.
  bool begins();
  /// Meets it, and gets its memory.
  Remote meet(Engine& engine);
  void fill(std::uint64_t seed);
  /// Store::holds() there, once so many signals of the number `arrival` have come since the last
  /// call.
  testing::AssertionResult holds(std::uint64_t seed, const std::vector<Landed>& pieces,
                                 std::uint64_t signals = 0);
  /// It ends well.
  void end();

 private:
  Child child_;
  std::string address_;
};

}  // namespace weft::test
