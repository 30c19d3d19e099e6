#include "transport/device_copies.hpp"

#include <algorithm>

#include "transfer/transfer_state.hpp"

namespace weft::core {
namespace {

// Not measured on a GPU. Large beside what it takes to begin a copy (some microseconds), small
// enough that a transfer which is cancelled or revoked is soon over.
constexpr std::uint64_t largest_copy = std::uint64_t{8} << 20;
// Enough to keep a copy engine busy with the smallest pages of a block table.
constexpr std::size_t most_copies = 128;

}  // namespace

std::uint64_t DeviceCopies::chunk_limit(const Route&) const {
  return largest_copy;
}

std::size_t DeviceCopies::room(const Route&) const {
  return most_copies - std::min(most_copies, staging_.under_way());
}

/// Whatever comes of it, the chunk's end is told.
providers::Post DeviceCopies::post(Op& op) {
  const PreparedState& prepared = op.transfer->prepared();
  const Device& device = prepared.local->device();
  std::byte* const own = prepared.local->address() + op.chunk.local;
  std::byte* const theirs = prepared.lent + op.chunk.remote;
  const bool write = prepared.direction == Direction::write;
  const Copy copy{write ? theirs : own, write ? own : theirs, op.chunk.length};
  const auto begun = write ? staging_.copy_out(device, {&copy, 1}, &op)
                           : staging_.copy_in(device, {&copy, 1}, &op);
  if (begun)
    op.transfer->count_copied(op.chunk.length);
  else
    failed(op, begun.error());
  return {providers::PostStatus::posted, 0};
}

std::size_t DeviceCopies::progress() {
  return staging_.progress(
      [this](Op* op, const auto&) { sink().chunk_ended(*op, {}); },
      // Its memory is held from here on: nobody knows whether it has ended.
      [](Op* op, const Error& error) { op->transfer->end_early(State::failed, error); });
}

void DeviceCopies::failed(Op& op, const Error& error) {
  providers::Completion refused;
  refused.ok = false;
  refused.refusal = error.code();
  refused.text = error.message();
  sink().chunk_ended(op, refused);
}

}  // namespace weft::core
