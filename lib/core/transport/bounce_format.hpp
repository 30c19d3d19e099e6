// What travels through bounce buffers: a head, the list of pieces that a request is for, and their
// bytes one after the other. See message.fbs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>
#include <weft/place.hpp>
#include <weft/transfer.hpp>

#include "message_generated.h"

namespace weft::core {

/// A request's class, in its head's status; 0 is what engines say that tell of none.
std::uint8_t code_of(Priority priority);
Priority priority_from(std::uint8_t code);

enum class BounceKind : std::uint8_t { write = 1, read, answer, proof };

/// Most payload that fits a message of so many bytes, behind a list of pieces.
std::uint64_t bounce_payload(std::uint64_t message_bytes);
/// Most pieces that a request of so much payload may have.
std::size_t bounce_pieces(std::uint64_t payload_bytes);
constexpr std::size_t list_bytes(std::size_t pieces) {
  return pieces * sizeof(wire::BouncePiece);
}
/// Of an answer, before its payload. That begins at a page: drives read and write it by themselves.
inline constexpr std::size_t answer_head = sizeof(wire::BounceHead);
/// The size of the largest message with so much payload.
std::uint64_t bounce_message(std::uint64_t payload_bytes);

/// A message as it lies in its receive buffer.
struct BounceMessage {
  /// Nothing if it is too short for a head.
  static std::optional<BounceMessage> read(std::byte* data, std::size_t length);
  BounceKind kind() const { return static_cast<BounceKind>(head.kind()); }
  /// Takes the pieces that a request is for. False unless they are as the head says: one at least,
  /// none of them empty, `length` bytes in all, which are there if they are to be written; and
  /// nothing else.
  bool read_pieces(std::vector<Range>& pieces) const;
  /// Behind the list.
  std::byte* payload() const { return behind.data() + list_bytes(head.pieces()); }

  wire::BounceHead head;
  std::span<std::byte> behind;  // the head
};

/// What an answer that refuses says; empty if it says nothing. Only printable characters: it comes
/// from outside.
std::string text_of(const BounceMessage& message);
/// Most of it, in bytes.
inline constexpr std::size_t longest_refusal = 512;

}  // namespace weft::core
