// Posting work requests as libefa does, for versions of libfabric that don't write to the rings
// themselves.
#include <endian.h>

#include <cerrno>
#include <numeric>

#include "objects.hpp"

namespace weft::efa_sim {

void RequestIds::resize(std::uint32_t count) {
  users_.resize(count);
  free_.resize(count);
  std::iota(free_.rbegin(), free_.rend(), std::uint16_t{0});
}

std::uint16_t RequestIds::take(std::uint64_t user) {
  const std::uint16_t number = free_.back();
  free_.pop_back();
  users_[number] = user;
  return number;
}

std::uint64_t RequestIds::give_back(std::uint16_t number) {
  free_.push_back(number);
  return users_[number];
}

namespace {

BufferEntry buffer_entry(std::uint64_t address, std::uint32_t length, std::uint32_t key) {
  return {length, key, static_cast<std::uint32_t>(address),
          static_cast<std::uint32_t>(address >> 32)};
}

// One call of wr_start, any number of requests, and wr_complete or wr_abort. The lock is held all
// the time.
void start(ibv_qp_ex* queue_pair) {
  QueuePairObject& own = QueuePairObject::of(queue_pair);
  own.send.lock.lock();
  own.batch.clear();
  own.batch_error = 0;
}

void drop_batch(QueuePairObject& own) {
  for (const SendEntry& entry : own.batch) own.send.ids.give_back(entry.request_id);
  own.batch.clear();
}

/// Never of several that share a doorbell: whoever posted them was told that all but the last are,
/// after making sure that there is room, and a real device refuses for want of that alone.
bool is_refused(QueuePairObject& own) {
  if (own.batch.size() > 1) return false;
  const std::uint32_t share = own.queues->refused_posts().load();
  return share > 0 && std::uniform_int_distribution<std::uint32_t>(0, 999'999)(own.random) < share;
}

/// Adds the batch to the ring.
int post_batch(QueuePairObject& own) {
  if (own.batch_error == 0 && is_refused(own)) own.batch_error = ENOMEM;
  if (own.batch_error != 0) {
    drop_batch(own);
    return own.batch_error;
  }
  for (SendEntry& entry : own.batch) {
    const bool odd = (own.send.posted / own.queues->send.size) % 2 != 0;
    if (!odd) entry.control2 |= send_phase;
    std::memcpy(&own.queues->send.at(own.send.posted++), &entry, sizeof entry);
  }
  own.batch.clear();
  own.queues->send_doorbell().store(own.send.posted);
  Connection::get().rang();
  return 0;
}

int complete(ibv_qp_ex* queue_pair) {
  QueuePairObject& own = QueuePairObject::of(queue_pair);
  const int error = post_batch(own);
  own.send.lock.unlock();
  return error;
}

void abort(ibv_qp_ex* queue_pair) {
  QueuePairObject& own = QueuePairObject::of(queue_pair);
  drop_batch(own);
  own.send.lock.unlock();
}

/// A new request of the batch; one that goes nowhere after an error.
SendEntry& add(QueuePairObject& own, std::uint64_t user, Opcode opcode) {
  static thread_local SendEntry nowhere;
  if (own.qp_base.state != IBV_QPS_RTS) own.batch_error = EINVAL;
  if (own.send.ids.empty() && own.batch_error == 0) own.batch_error = ENOMEM;
  if (own.batch_error != 0) return nowhere = {};
  SendEntry& entry = own.batch.emplace_back();
  entry.request_id = own.send.ids.take(user);
  entry.control1 = static_cast<std::uint8_t>(static_cast<unsigned>(opcode) | send_is_metadata);
  entry.control2 = send_first | send_last | send_wants_completion;
  return entry;
}

SendEntry& add(ibv_qp_ex* queue_pair, Opcode opcode) {
  return add(QueuePairObject::of(queue_pair), queue_pair->wr_id, opcode);
}

void add_immediate(SendEntry& entry, __be32 immediate) {
  entry.control1 |= send_has_immediate;
  entry.immediate = be32toh(immediate);
}

SendEntry& add_rdma(ibv_qp_ex* queue_pair, Opcode opcode, std::uint32_t key,
                    std::uint64_t address) {
  SendEntry& entry = add(queue_pair, opcode);
  entry.rdma.remote = buffer_entry(address, 0, key);
  entry.length = 1;
  return entry;
}

void add_send(ibv_qp_ex* queue_pair) {
  add(queue_pair, Opcode::send);
}

void add_send_with_immediate(ibv_qp_ex* queue_pair, __be32 immediate) {
  add_immediate(add(queue_pair, Opcode::send), immediate);
}

void add_read(ibv_qp_ex* queue_pair, std::uint32_t key, std::uint64_t address) {
  add_rdma(queue_pair, Opcode::read, key, address);
}

void add_write(ibv_qp_ex* queue_pair, std::uint32_t key, std::uint64_t address) {
  add_rdma(queue_pair, Opcode::write, key, address);
}

void add_write_with_immediate(ibv_qp_ex* queue_pair, std::uint32_t key, std::uint64_t address,
                              __be32 immediate) {
  add_immediate(add_rdma(queue_pair, Opcode::write, key, address), immediate);
}

// What follows is about the request that was added last.
SendEntry* last(QueuePairObject& own) {
  return own.batch_error == 0 && !own.batch.empty() ? &own.batch.back() : nullptr;
}

void set_destination(SendEntry& entry, ibv_ah* address, std::uint32_t number, std::uint32_t key) {
  entry.address_handle = static_cast<AddressObject*>(address)->number;
  entry.destination_queue_pair = static_cast<std::uint16_t>(number);
  entry.queue_key = key;
}

void set_address(ibv_qp_ex* queue_pair, ibv_ah* address, std::uint32_t number, std::uint32_t key) {
  if (SendEntry* const entry = last(QueuePairObject::of(queue_pair)))
    set_destination(*entry, address, number, key);
}

/// Returns 0 or EINVAL.
int set_pieces(SendEntry& entry, std::size_t count, const ibv_sge* pieces) {
  const bool message = entry.opcode() == Opcode::send;
  if (count > (message ? 2u : 1u)) return EINVAL;
  for (std::size_t i = 0; i < count; ++i) {
    const BufferEntry buffer = buffer_entry(pieces[i].addr, pieces[i].length, pieces[i].lkey);
    (message ? entry.buffers[i] : entry.rdma.local) = buffer;
    if (!message) entry.rdma.remote.length = pieces[i].length;
  }
  entry.length = static_cast<std::uint16_t>(count);
  return 0;
}

void set_piece_list(ibv_qp_ex* queue_pair, std::size_t count, const ibv_sge* pieces) {
  QueuePairObject& own = QueuePairObject::of(queue_pair);
  if (SendEntry* const entry = last(own)) own.batch_error = set_pieces(*entry, count, pieces);
}

void set_piece(ibv_qp_ex* queue_pair, std::uint32_t key, std::uint64_t address,
               std::uint32_t length) {
  const ibv_sge piece{address, length, key};
  set_piece_list(queue_pair, 1, &piece);
}

/// Returns 0 or EINVAL.
int append_inline(SendEntry& entry, const void* data, std::size_t length) {
  if (entry.length + length > sizeof entry.inlined) return EINVAL;
  entry.control1 |= send_is_inline;
  std::memcpy(entry.inlined + entry.length, data, length);
  entry.length = static_cast<std::uint16_t>(entry.length + length);
  return 0;
}

void set_inline_list(ibv_qp_ex* queue_pair, std::size_t count, const ibv_data_buf* buffers) {
  QueuePairObject& own = QueuePairObject::of(queue_pair);
  SendEntry* const entry = last(own);
  for (std::size_t i = 0; entry != nullptr && i < count && own.batch_error == 0; ++i)
    own.batch_error = append_inline(*entry, buffers[i].addr, buffers[i].length);
}

void set_inline(ibv_qp_ex* queue_pair, void* data, std::size_t length) {
  const ibv_data_buf buffer{data, length};
  set_inline_list(queue_pair, 1, &buffer);
}

void set_hints(EfaQueuePair*, std::uint32_t) {}

/// One request of the older way to post.
int add_classic(QueuePairObject& own, const ibv_send_wr& request) {
  SendEntry& entry = add(own, request.wr_id, Opcode::send);
  if (own.batch_error != 0) return own.batch_error;
  if (request.opcode == IBV_WR_SEND_WITH_IMM) add_immediate(entry, request.imm_data);
  set_destination(entry, request.wr.ud.ah, request.wr.ud.remote_qpn, request.wr.ud.remote_qkey);
  const auto count = static_cast<std::size_t>(request.num_sge);
  if ((request.send_flags & IBV_SEND_INLINE) == 0) return set_pieces(entry, count, request.sg_list);
  for (std::size_t i = 0; i < count; ++i) {
    const ibv_sge& piece = request.sg_list[i];
    const int error = append_inline(entry, reinterpret_cast<void*>(piece.addr), piece.length);
    if (error != 0) return error;
  }
  return 0;
}

int add_receive(QueuePairObject& own, const ibv_recv_wr& request) {
  WorkQueue& work = own.receive;
  const auto count = static_cast<std::uint32_t>(request.num_sge);
  if (count > work.most_pieces) return EINVAL;
  if (work.ids.empty()) return ENOMEM;
  const std::uint16_t id = work.ids.take(request.wr_id);
  for (std::uint32_t i = 0; i < count; ++i) {
    const ibv_sge& piece = request.sg_list[i];
    ReceiveEntry& entry = own.queues->receive.at(work.posted++);
    entry.address_low = static_cast<std::uint32_t>(piece.addr);
    entry.address_high = static_cast<std::uint32_t>(piece.addr >> 32);
    entry.request_id = id;
    entry.length = static_cast<std::uint16_t>(std::min(piece.length, 0xffffu));
    entry.key_and_flags = (piece.lkey & local_key_mask) | (i == 0 ? receive_first : 0) |
                          (i + 1 == count ? receive_last : 0);
  }
  return 0;
}

}  // namespace

void set_post_functions(QueuePairObject& queue_pair) {
  queue_pair.wr_start = start;
  queue_pair.wr_complete = complete;
  queue_pair.wr_abort = abort;
  queue_pair.wr_send = add_send;
  queue_pair.wr_send_imm = add_send_with_immediate;
  queue_pair.wr_rdma_read = add_read;
  queue_pair.wr_rdma_write = add_write;
  queue_pair.wr_rdma_write_imm = add_write_with_immediate;
  queue_pair.wr_set_ud_addr = set_address;
  queue_pair.wr_set_sge = set_piece;
  queue_pair.wr_set_sge_list = set_piece_list;
  queue_pair.wr_set_inline_data = set_inline;
  queue_pair.wr_set_inline_data_list = set_inline_list;
  queue_pair.wr_set_processing_hints = set_hints;
}

int post_send(ibv_qp* queue_pair, ibv_send_wr* request, ibv_send_wr** bad) {
  QueuePairObject& own = QueuePairObject::of(queue_pair);
  const std::lock_guard guard(own.send.lock);
  for (; request != nullptr; request = request->next) {
    own.batch_error = 0;
    own.batch_error = add_classic(own, *request);
    if (const int error = post_batch(own); error != 0) {
      *bad = request;
      return error;
    }
  }
  return 0;
}

int post_receive(ibv_qp* queue_pair, ibv_recv_wr* request, ibv_recv_wr** bad) {
  QueuePairObject& own = QueuePairObject::of(queue_pair);
  const std::lock_guard guard(own.receive.lock);
  int error = 0;
  for (; request != nullptr && error == 0; request = request->next) {
    error = add_receive(own, *request);
    if (error != 0) *bad = request;
  }
  own.queues->receive_doorbell().store(own.receive.posted);
  return error;
}

}  // namespace weft::efa_sim
