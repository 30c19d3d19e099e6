#include "queue_pair.hpp"

#include <algorithm>
#include <cstring>

namespace weft::efa_sim {
namespace {

LocalPiece local_piece(const BufferEntry& buffer) {
  return {buffer.key & local_key_mask, {buffer.address(), buffer.length}};
}

/// The entry's data: in the entry itself, or where it says.
void take_data(const SendEntry& entry, Operation& operation) {
  if (operation.opcode != Opcode::send) {
    operation.remote_address = entry.rdma.remote.address();
    operation.remote_key = entry.rdma.remote.key;
    operation.local.push_back(local_piece(entry.rdma.local));
  } else if (operation.is_inline) {
    const std::size_t bytes = std::min<std::size_t>(entry.length, sizeof entry.inlined);
    const auto* const data = reinterpret_cast<const std::byte*>(entry.inlined);
    operation.inlined.assign(data, data + bytes);
    operation.length = bytes;
  } else {
    const std::size_t count = std::min<std::size_t>(entry.length, std::size(entry.buffers));
    for (std::size_t i = 0; i < count; ++i)
      operation.local.push_back(local_piece(entry.buffers[i]));
  }
  for (const LocalPiece& each : operation.local) operation.length += each.piece.length;
}

}  // namespace

QueuePair::QueuePair(Nic& nic, std::uint16_t number, const Attributes& attributes)
    : nic(nic),
      number(number),
      attributes(attributes),
      queues_(SharedMemory::create(QueuePairQueues::bytes_for(attributes.sizes)),
              attributes.sizes) {}

std::shared_ptr<Operation> QueuePair::take_operation() {
  const auto posted =
      static_cast<std::uint16_t>(queues_.send_doorbell().load(std::memory_order_acquire));
  if (posted == next_send_) return nullptr;
  // A copy: what a process does to its ring meanwhile must not matter.
  SendEntry entry;
  std::memcpy(&entry, &queues_.send.at(next_send_++), sizeof entry);
  auto operation = std::make_shared<Operation>();
  operation->id = entry.request_id;
  operation->opcode = entry.opcode();
  operation->has_immediate = (entry.control1 & send_has_immediate) != 0;
  operation->is_inline = (entry.control1 & send_is_inline) != 0;
  operation->immediate = entry.immediate;
  operation->queue_key = entry.queue_key;
  operation->address_handle = entry.address_handle;
  operation->destination.queue_pair = entry.destination_queue_pair;
  take_data(entry, *operation);
  operation->owner = this;
  return operation;
}

bool QueuePair::has_receive() const {
  const std::uint32_t posted = queues_.receive_doorbell().load(std::memory_order_acquire);
  return static_cast<std::uint16_t>(posted) != next_receive_;
}

Receive QueuePair::take_receive() {
  Receive receive{};
  // At most one turn of the ring, in case that none of its entries is marked as the last.
  for (std::uint32_t i = 0; i < queues_.receive.size && has_receive(); ++i) {
    ReceiveEntry entry;
    std::memcpy(&entry, &queues_.receive.at(next_receive_++), sizeof entry);
    receive.id = entry.request_id;
    receive.pieces.push_back(
        {entry.key_and_flags & local_key_mask, {entry.address(), entry.length}});
    if ((entry.key_and_flags & receive_last) != 0) break;
  }
  return receive;
}

}  // namespace weft::efa_sim
