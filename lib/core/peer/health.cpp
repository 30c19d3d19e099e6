#include "peer/health.hpp"

namespace weft {

std::string_view to_string(Health health) noexcept {
  switch (health) {
    case Health::down:
      return "down";
    case Health::up:
      return "up";
    case Health::slow:
      return "slow";
    case Health::silent:
      return "silent";
  }
  return "?";
}

namespace core {

std::string_view words_of(Health health) noexcept {
  switch (health) {
    case Health::down:
      return "it is down";
    case Health::up:
      return "it is well again";
    case Health::slow:
      return "its progress threads are late, though its process lives";
    case Health::silent:
      return "nothing was heard from it for suspect_after: it is frozen, or the network stalls";
  }
  return "?";
}

std::string_view excuse_of(Health health) noexcept {
  switch (health) {
    case Health::slow:
      return "; the peer's progress threads are late, though its process lives";
    case Health::silent:
      return "; nothing has been heard from the peer lately: it is frozen, or the network stalls";
    default:
      return "";
  }
}

}  // namespace core
}  // namespace weft
