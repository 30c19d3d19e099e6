// How a control connection ended, in a word.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace weft::core {

enum class LinkEnd : std::uint8_t {
  // Of links that were up.
  disconnected,  // by this engine
  silent,        // nothing was heard from the peer any more
  data_path,     // the rails don't reach the peer any more
  restarted,     // a new incarnation of the peer took its place
  replaced,      // another connection of the two took its place
  // Of these, and of connections that came to nothing.
  goodbye,          // the other side ended it
  connection_lost,  // without a word: its process ended, or the network broke
  not_reading,      // the other side takes nothing from its socket
  violation,        // it sent what the protocol does not allow
  // Of the latter alone.
  credentials,  // it has others, or none
  version,      // it speaks another version
  not_weft,     // it speaks another protocol
  crowded,      // there were too many that had not introduced themselves
  late,         // it took too long to introduce itself
  unreachable,  // its rails could not be reached, for example because there are none in common
  itself,       // an engine does not connect to itself
};

inline constexpr std::array<std::string_view, 16> link_ends = {
    "disconnected",    "silent",      "data_path",   "restarted",   "replaced", "goodbye",
    "connection_lost", "not_reading", "violation",   "credentials", "version",  "not_weft",
    "crowded",         "late",        "unreachable", "itself"};

constexpr std::string_view to_string(LinkEnd how) {
  return link_ends[static_cast<std::size_t>(how)];
}
/// Links that were up end so.
constexpr bool ends_links(LinkEnd how) {
  return how <= LinkEnd::violation;
}
/// Connections that came to nothing end so.
constexpr bool ends_meetings(LinkEnd how) {
  return how >= LinkEnd::goodbye;
}

}  // namespace weft::core
