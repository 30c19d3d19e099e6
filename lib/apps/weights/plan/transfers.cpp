#include "weights/plan/transfers.hpp"

#include <algorithm>
#include <tuple>

namespace weft::weights {

namespace {

/// Lengthens a piece by the next one where that goes on on both sides.
bool join(Piece& piece, const Piece& next) noexcept {
  if (piece.src_segment != next.src_segment || piece.dst_segment != next.dst_segment) return false;
  const auto follows = [&](std::uint64_t src, std::uint64_t dst) {
    return next.src_offset == piece.src_offset + src && next.dst_offset == piece.dst_offset + dst;
  };
  if (piece.count == 1 && next.count == 1) {
    if (!follows(piece.length, piece.length)) return false;
    piece.length += next.length;
    return true;
  }
  const bool alike = piece.length == next.length && piece.count > 1 &&
                     (next.count == 1 ||
                      (piece.src_stride == next.src_stride && piece.dst_stride == next.dst_stride));
  if (!alike || !follows(piece.count * piece.src_stride, piece.count * piece.dst_stride))
    return false;
  piece.count += next.count;
  return true;
}

bool before(const Piece& a, const Piece& b) noexcept {
  return std::tie(a.src_segment, a.dst_segment, a.src_offset, a.dst_offset) <
         std::tie(b.src_segment, b.dst_segment, b.src_offset, b.dst_offset);
}

void sort_and_join(std::vector<Piece>& pieces) {
  if (!std::is_sorted(pieces.begin(), pieces.end(), before))
    std::sort(pieces.begin(), pieces.end(), before);
  auto last = pieces.begin();
  for (auto next = pieces.begin() + 1; next < pieces.end(); ++next)
    if (!join(*last, *next)) *++last = *next;
  pieces.erase(last + 1, pieces.end());
}

constexpr std::uint32_t free_slot = 0xffff'ffff;

TransferTable::Key key_of(const Transfer& transfer) noexcept {
  return {transfer.chunk, transfer.hop, transfer.from, transfer.to};
}

std::uint64_t hash_of(const TransferTable::Key& key) noexcept {
  // Fibonacci hashing: 2^64 divided by the golden ratio spreads neighbours.
  constexpr std::uint64_t golden = 0x9e3779b97f4a7c15;
  const auto from = std::uint64_t{key.from.rank} << 1 | (key.from.side == Side::subscriber ? 1 : 0);
  std::uint64_t mixed = (from << 32 | key.to) * golden;
  mixed = (mixed ^ (mixed >> 32) ^ (std::uint64_t{key.chunk} << 32 | key.hop)) * golden;
  return mixed ^ (mixed >> 32);
}

/// The slot of the transfer with this key, or the free one where it belongs.
std::size_t slot_of(const TransferTable::Key& key, const std::vector<Transfer>& transfers,
                    const std::vector<std::uint32_t>& slots) noexcept {
  std::size_t slot = hash_of(key) & (slots.size() - 1);
  while (slots[slot] != free_slot && key_of(transfers[slots[slot]]) != key)
    slot = (slot + 1) & (slots.size() - 1);
  return slot;
}

}  // namespace

Transfer& TransferTable::transfer_of(const Key& key) {
  if (slots_.size() <= transfers_.size() * 2) grow();
  const std::size_t slot = slot_of(key, transfers_, slots_);
  if (slots_[slot] == free_slot) {
    slots_[slot] = static_cast<std::uint32_t>(transfers_.size());
    transfers_.push_back({key.from, key.to, key.chunk, key.hop, 0, {}});
  }
  return transfers_[slots_[slot]];
}

void TransferTable::grow() {
  constexpr std::size_t least = 64;
  slots_.assign(std::max(least, slots_.size() * 2), free_slot);
  for (std::uint32_t i = 0; i < transfers_.size(); ++i)
    slots_[slot_of(key_of(transfers_[i]), transfers_, slots_)] = i;
}

void TransferTable::add(const Key& key, std::span<const Piece> pieces, std::uint64_t bytes) {
  Transfer& transfer = transfer_of(key);
  transfer.bytes += bytes;
  for (const Piece& piece : pieces)
    if (transfer.pieces.empty() || !join(transfer.pieces.back(), piece))
      transfer.pieces.push_back(piece);
}

std::vector<Transfer> TransferTable::take() && {
  for (Transfer& transfer : transfers_) sort_and_join(transfer.pieces);
  std::sort(transfers_.begin(), transfers_.end(), [](const Transfer& a, const Transfer& b) {
    return std::tie(a.chunk, a.hop, a.from, a.to) < std::tie(b.chunk, b.hop, b.from, b.to);
  });
  return std::move(transfers_);
}

}  // namespace weft::weights
