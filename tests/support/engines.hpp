// Engines in pairs, with segments on both sides whose every byte is checked.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>
#include <weft/weft.hpp>

#include "pattern.hpp"
#include "rail/hooks.hpp"

namespace weft::test {

using namespace std::chrono_literals;

/// Long enough for anything that has to happen, on any loaded machine.
inline Deadline soon() {
  return Deadline::in(60s);
}

/// In which something does not happen that is not meant to.
constexpr auto a_while = 100ms;

/// The value, or an exception that fails the test (or the role) with the error's sentence.
template <typename T>
T must(Result<T> result) {
  if (!result) throw std::runtime_error(result.error().to_string());
  if constexpr (!std::is_void_v<T>) return std::move(*result);
}

/// Looks again and again; some things are told a little after the transfers that they belong to.
template <typename Condition>
bool comes_to_be(Condition&& condition) {
  const Deadline deadline = soon();
  while (!condition()) {
    if (deadline.passed()) return false;
    std::this_thread::yield();
  }
  return true;
}

/// Whether the result is an error with that code.
template <typename T>
testing::AssertionResult fails_with(const Result<T>& result, Code code) {
  if (result) return testing::AssertionFailure() << "it succeeded";
  if (result.error().code() == code) return testing::AssertionSuccess();
  return testing::AssertionFailure() << result.error().to_string();
}

template <typename T>
testing::AssertionResult succeeds(const Result<T>& result) {
  if (result) return testing::AssertionSuccess();
  return testing::AssertionFailure() << result.error().to_string();
}

/// What tests of the data path run over.
struct Variant {
  std::string provider;
  TransportKind transport = TransportKind::one_sided;
};
/// Those of the environment variable WEFT_TEST_PROVIDERS (names with commas between them), else tcp
/// and shm; each with both transports.
std::vector<Variant> all_variants();
std::vector<std::string> all_providers();
/// "tcp_bounce" and the like, for the names of tests, which may have letters, digits and "_".
std::string name_of(const Variant& variant);
std::string name_of(const std::string& provider);

/// Whether closing a grant's keys keeps out whatever peers have posted, on all of its rails.
bool keys_fence(const Engine& engine);

/// An engine on loopback that nothing but a test's own doing brings down.
Config config_for(const std::string& provider, unsigned rails = 2);
Config config_for(const Variant& variant, unsigned rails = 2);

/// To listen at, on loopback. Whoever leaves it can come back: the system gives such a port to
/// nobody by itself, as it does with those of "127.0.0.1:0".
std::string lasting_address();

/// Two engines that know each other; `a` has connected to `b`.
struct Couple {
  Engine a, b;
  Peer to_b, to_a;
};
Couple couple(const Config& a, const Config& b, const core::EngineHooks& hooks_a = {},
              const core::EngineHooks& hooks_b = {});
Couple couple(const Config& both);
/// Connects two engines of this process.
std::pair<Peer, Peer> acquaint(Engine& a, Engine& b);

/// Hooks of an engine whose word never arrives where it says `Lost`.
template <typename Lost>
core::EngineHooks losing() {
  core::EngineHooks hooks;
  hooks.lose = [](const core::Notice& notice) { return std::holds_alternative<Lost>(notice); };
  return hooks;
}

/// A segment of `a` and a granted one of `b`.
class Board {
 public:
  Board(Couple& pair, std::size_t local_bytes, std::size_t remote_bytes,
        Rights rights = Rights::read_write);
  Board(Couple& pair, const Memory& local, const Memory& remote);

  /// New patterns on both sides, and a picture of them.
  void repaint();
  /// Reads or writes, from the first engine's side.
  Result<Transfer> submit(Direction direction, std::span<const Pair> pairs,
                          const TransferOptions& options = {});
  /// Submits the pieces, waits, and compares every byte of both segments.
  void expect_moved(Direction direction, std::span<const Pair> pairs,
                    const TransferOptions& options = {});
  /// Compares both segments with what the pictures become by `pairs`; these are then the pictures.
  void expect_pieces(Direction direction, std::span<const Pair> pairs);
  /// The other side writes a piece of the remote segment into the local one.
  void expect_written_back(const Pair& piece);
  /// Compares both segments with their pictures.
  void expect_untouched();

  Segment local, remote;
  Grant grant;
  Remote there;

 private:
  Couple& pair_;
  Blob local_picture_, remote_picture_;
};

std::span<std::byte> bytes_of(const Segment& segment);

/// Makes progress of an engine under manual progress until destroyed.
class Pump {
 public:
  explicit Pump(Engine& engine);
  ~Pump();

 private:
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

bool has_ipv6();

}  // namespace weft::test
