#include "transport/bounce_format.hpp"

#include <algorithm>
#include <cstring>

namespace weft::core {
namespace {

using wire::BounceHead;
using wire::BouncePiece;

// The list takes a small part of a message, even where all pieces are as short as this. And no
// receiver has to check a list of very many that are shorter still.
constexpr std::uint64_t short_piece = 1024;
constexpr std::size_t longest_list = 1024;

}  // namespace

std::uint8_t code_of(Priority priority) {
  return priority == Priority::normal ? 0 : priority == Priority::latency ? 1 : 2;
}

Priority priority_from(std::uint8_t code) {
  return code == 1 ? Priority::latency : code == 2 ? Priority::bulk : Priority::normal;
}

std::uint64_t bounce_payload(std::uint64_t message_bytes) {
  const std::uint64_t room =
      message_bytes - std::min<std::uint64_t>(message_bytes, sizeof(BounceHead));
  const std::uint64_t list = (room / (short_piece + sizeof(BouncePiece)) + 1) * sizeof(BouncePiece);
  return room - std::min(room, list);
}

std::size_t bounce_pieces(std::uint64_t payload_bytes) {
  return std::clamp<std::size_t>(payload_bytes / short_piece, 1, longest_list);
}

std::uint64_t bounce_message(std::uint64_t payload_bytes) {
  return sizeof(BounceHead) + list_bytes(bounce_pieces(payload_bytes)) + payload_bytes;
}

std::optional<BounceMessage> BounceMessage::read(std::byte* data, std::size_t length) {
  BounceMessage message;
  if (length < sizeof message.head) return std::nullopt;
  std::memcpy(&message.head, data, sizeof message.head);
  message.behind = {data + sizeof message.head, length - sizeof message.head};
  return message;
}

std::string text_of(const BounceMessage& message) {
  const std::size_t length = std::min(message.behind.size(), longest_refusal);
  std::string text(reinterpret_cast<const char*>(message.behind.data()), length);
  std::replace_if(
      text.begin(), text.end(), [](unsigned char each) { return each < ' ' || each == 127; }, '?');
  return text;
}

bool BounceMessage::read_pieces(std::vector<Range>& pieces) const {
  const std::size_t list = list_bytes(head.pieces());
  const std::uint64_t bytes = kind() == BounceKind::write ? head.length() : 0;
  if (behind.size() < list || behind.size() - list != bytes) return false;
  pieces.clear();
  std::uint64_t sum = 0;
  for (std::size_t at = 0; at < list; at += sizeof(BouncePiece)) {
    BouncePiece piece;
    std::memcpy(&piece, behind.data() + at, sizeof piece);
    if (piece.length() == 0 || piece.length() > head.length() - sum) return false;
    sum += piece.length();
    pieces.push_back({piece.offset(), piece.length()});
  }
  return sum == head.length() && !pieces.empty();
}

}  // namespace weft::core
