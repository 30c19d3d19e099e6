// A victim, a rogue, and peers of the victim that keep to the protocol.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engines.hpp"
#include "leftovers.hpp"
#include "process.hpp"
#include "rogue.hpp"
#include "shared_memory.hpp"
#include "wire/grant_codec.hpp"
#include "wire/introduction.hpp"

namespace weft::test {

/// What anybody gets to know who connects to an engine's control address and says nothing.
core::Introduction overhear(const std::string& address);

/// An engine of the test's process that has met the victim.
class Friend {
 public:
  Friend(const Variant& variant, const std::string& victim);

  const std::string& name() const { return engine_.name(); }
  const Capability& capability() const { return capability_; }
  const std::string& fabric() const { return fabric_; }
  /// Moves bytes, signals and messages both ways, and looks at all of them. `there`: the shared
  /// segment, as the victim has it.
  void expect_served(Child& victim, std::span<const std::byte> there);
  void write_one_byte();

 private:
  void expect_moves(Child& victim, std::span<const std::byte> there);
  void expect_messages(Child& victim);

  Engine engine_;
  Capability capability_;
  std::string fabric_;
  Segment segment_;
  Peer to_victim_;
  Remote shared_;
};

class Scene {
 public:
  /// Of each of the victim's segments.
  static constexpr std::size_t segment_bytes = 64 << 10;

  explicit Scene(const std::string& provider);

  const Capability& capability() const { return friends_.front().capability(); }
  const std::string& fabric() const { return friends_.front().fabric(); }
  Child& victim() { return victim_; }

  /// The victim grants ranges of the attacked segment; this is the key and the address of their
  /// hull, as the rogue gets to know them.
  Aim grant(std::span<const Range> ranges, Rights rights);
  std::uint64_t lease() const { return lease_; }

  /// `verb`: write, write_data or read.
  Ending attack(const std::string& verb, const Aim& aim, std::size_t length,
                std::chrono::milliseconds patience);
  Ending send(Class type, Bytes bytes, std::chrono::milliseconds patience = 30s);
  /// Puts bytes into a ring of the victim's, as `count` of them.
  void scribble(Bytes bytes, std::uint64_t count);

  /// Waits until the victim has ended, or has dealt with what the rogue did before: it answers the
  /// rogue.
  void await_dealt_with();

  /// Compares every byte of the attacked segment and of the rogue's memory with what they were.
  void expect_untouched();
  /// The same, after the rogue wrote to (or read from) these bytes of the segment.
  void expect_moved(Direction direction, std::uint64_t offset, std::size_t length);
  /// How many of these bytes, from the first on, are where such an attack would bring them.
  std::size_t count_moved(Direction direction, std::uint64_t offset, std::size_t length) const;
  /// All peers are served as if nothing had been.
  void expect_friends_served();
  /// No signal of that number has come from any of them.
  void expect_no_signal(std::uint64_t number);
  /// Ends both processes in order.
  void end();

 private:
  std::span<std::byte> attacked() const { return victim_memory_.bytes().first(segment_bytes); }
  std::span<std::byte> rogues() const { return rogue_memory_.bytes(); }
  /// New patterns in both, and a picture of them.
  void paint();
  void start_rogue(const std::string& provider);
  void give_rogue(Bytes bytes);
  Aim aim_at(const core::GrantDescription& grant);

  Leftovers leftovers_;  // first, and so the last to go
  SharedMemory victim_memory_, rogue_memory_;
  Child victim_;
  std::string address_;
  Blob shared_grant_;
  std::vector<Friend> friends_;
  std::optional<Child> rogue_;
  bool same_address_space_ = false;  // the rogue sees addresses where others see offsets
  std::uint64_t lease_ = 0;
  Blob victims_picture_, rogues_picture_;
};

}  // namespace weft::test
