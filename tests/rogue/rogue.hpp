// What somebody can do who knows the way to an engine's memory and keeps to no protocol.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <weft/deadline.hpp>

namespace weft::test {

/// How an operation ended, as its initiator sees it.
struct Ending {
  enum How { done, refused, silent };
  How how = done;
  int error = 0;
};

/// The far side of a read or a write.
struct Aim {
  std::uint64_t address = 0, key = 0;
  std::uint64_t length = 0;  // as the initiator says it; its buffer has its own
};

/// Whose messages are received where: those of class 0 nowhere.
enum class Class : std::uint64_t { none = 0, message = 1, bounce = 2 };

/// Its memory is what it writes from, reads into and sends, from the start on. Each call returns
/// when the operation has ended, or when the deadline has passed.
class Rogue {
 public:
  virtual ~Rogue() = default;
  virtual Ending write(const Aim& aim, std::size_t length, Deadline deadline) = 0;
  virtual Ending read(const Aim& aim, std::size_t length, Deadline deadline) = 0;
  virtual Ending send(Class type, std::size_t length, Deadline deadline) = 0;

  /// A write with 4 bytes for the target's completion queue.
  virtual Ending write_data(const Aim&, std::size_t, Deadline) {
    throw std::logic_error("there are no such writes");
  }
  /// Where the memory of a key lies in the victim, where the grant does not tell.
  virtual std::uint64_t base_of(std::uint64_t) const { throw std::logic_error("the grant tells"); }
  /// Fills the victim's ring with its memory, and says that `count` bytes were written to it.
  virtual void scribble(std::uint64_t) { throw std::logic_error("there is no ring"); }
};

}  // namespace weft::test
