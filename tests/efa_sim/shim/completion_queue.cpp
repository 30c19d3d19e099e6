// Completion queues, and reading them as libefa does for versions of libfabric that don't read the
// rings themselves.
#include <endian.h>
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <exception>

#include "objects.hpp"

namespace weft::efa_sim {
namespace {

const CompletionEntry& current(ibv_cq_ex* queue) {
  return CompletionQueueObject::of(queue).current;
}

bool is_receive(const CompletionEntry& entry) {
  return source_of(entry) == CompletionSource::receive_queue;
}

/// As libefa translates them.
ibv_wc_status verbs_status(Status status) {
  switch (status) {
    case Status::ok:
      return IBV_WC_SUCCESS;
    case Status::flushed:
      return IBV_WC_WR_FLUSH_ERR;
    case Status::qp_internal_error:
    case Status::unsupported_operation:
    case Status::invalid_address_handle:
      return IBV_WC_LOC_QP_OP_ERR;
    case Status::invalid_local_key:
      return IBV_WC_LOC_PROT_ERR;
    case Status::bad_length:
      return IBV_WC_LOC_LEN_ERR;
    case Status::remote_abort:
      return IBV_WC_REM_ABORT_ERR;
    case Status::remote_not_ready:
      return IBV_WC_RNR_RETRY_EXC_ERR;
    case Status::remote_bad_queue_pair:
      return IBV_WC_REM_INV_RD_REQ_ERR;
    case Status::remote_bad_status:
      return IBV_WC_BAD_RESP_ERR;
    case Status::remote_bad_length:
      return IBV_WC_REM_INV_REQ_ERR;
    case Status::unresponsive_remote:
    case Status::unreachable_remote:
      return IBV_WC_RESP_TIMEOUT_ERR;
    case Status::remote_unknown_peer:
      return IBV_WC_REM_OP_ERR;
    default:
      return IBV_WC_GENERAL_ERR;
  }
}

/// Takes the next entry of a queue pair that still exists. Returns 0, or ENOENT.
int next_entry(CompletionQueueObject& own) {
  while (true) {
    CompletionEntry& place = own.queues->ring.at(static_cast<std::uint16_t>(own.read));
    const std::uint8_t flags =
        std::atomic_ref<std::uint8_t>(place.flags).load(std::memory_order_acquire);
    if ((flags & completion_phase) != own.queues->phase_at(own.read)) return ENOENT;
    std::memcpy(&own.current, &place, sizeof place);
    ++own.read;
    QueuePairObject* const queue_pair = own.owner->queue_pair_at(own.current.queue_pair);
    if (queue_pair == nullptr || queue_pair->qp_base.qp_num != own.current.queue_pair) continue;
    own.wr_id = 0;
    if ((flags & completion_unsolicited) == 0) {
      WorkQueue& work = is_receive(own.current) ? queue_pair->receive : queue_pair->send;
      const std::lock_guard guard(work.lock);
      own.wr_id = work.ids.give_back(own.current.request_id);
    }
    own.status = verbs_status(own.current.status);
    return 0;
  }
}

// The lock is held from a successful start to the end.
int start_poll(ibv_cq_ex* queue, ibv_poll_cq_attr*) {
  CompletionQueueObject& own = CompletionQueueObject::of(queue);
  own.lock.lock();
  const int result = next_entry(own);
  if (result != 0) own.lock.unlock();
  return result;
}

int next_poll(ibv_cq_ex* queue) {
  return next_entry(CompletionQueueObject::of(queue));
}

void end_poll(ibv_cq_ex* queue) {
  CompletionQueueObject& own = CompletionQueueObject::of(queue);
  own.ring(false);
  own.lock.unlock();
}

/// A read that has completed looks like a send, as from libefa.
ibv_wc_opcode read_opcode(ibv_cq_ex* queue) {
  const CompletionEntry& entry = current(queue);
  const bool write = entry.opcode() == Opcode::write;
  if (is_receive(entry)) return write ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV;
  return write ? IBV_WC_RDMA_WRITE : IBV_WC_SEND;
}

std::uint32_t read_vendor_error(ibv_cq_ex* queue) {
  return static_cast<std::uint32_t>(current(queue).status);
}

std::uint32_t read_length(ibv_cq_ex* queue) {
  const CompletionEntry& entry = current(queue);
  if (!is_receive(entry)) return 0;
  const std::uint32_t high = entry.opcode() == Opcode::write ? entry.length_high : 0;
  return entry.length | high << 16;
}

__be32 read_immediate(ibv_cq_ex* queue) {
  return htobe32(current(queue).immediate);
}

std::uint32_t read_queue_pair(ibv_cq_ex* queue) {
  return current(queue).queue_pair;
}

std::uint32_t read_source_queue_pair(ibv_cq_ex* queue) {
  return current(queue).source_queue_pair;
}

unsigned read_flags(ibv_cq_ex* queue) {
  return (current(queue).flags & completion_has_immediate) != 0 ? IBV_WC_WITH_IMM : 0;
}

std::uint32_t read_address_handle(ibv_cq_ex* queue) {
  return current(queue).address_handle;
}

std::uint8_t read_zero(ibv_cq_ex*) {
  return 0;
}

int read_source(EfaCompletionQueue* queue, ibv_gid* source) {
  const CompletionEntry& entry = CompletionQueueObject::of(queue).current;
  if (entry.address_handle != no_address_handle) return -ENOENT;
  std::memcpy(source->raw, entry.source, sizeof source->raw);
  return 0;
}

bool is_unsolicited(EfaCompletionQueue* queue) {
  return (CompletionQueueObject::of(queue).current.flags & completion_unsolicited) != 0;
}

}  // namespace

void CompletionQueueObject::ring(bool arm) {
  const std::uint32_t sequence = events << doorbell_sequence_shift & doorbell_sequence_mask;
  queues->doorbell().store((read & doorbell_consumed_mask) | sequence | (arm ? doorbell_arm : 0));
}

void set_poll_functions(CompletionQueueObject& queue) {
  queue.start_poll = start_poll;
  queue.next_poll = next_poll;
  queue.end_poll = end_poll;
  queue.read_opcode = read_opcode;
  queue.read_vendor_err = read_vendor_error;
  queue.read_byte_len = read_length;
  queue.read_imm_data = read_immediate;
  queue.read_qp_num = read_queue_pair;
  queue.read_src_qp = read_source_queue_pair;
  queue.read_wc_flags = read_flags;
  queue.read_slid = read_address_handle;
  queue.read_sl = read_zero;
  queue.read_dlid_path_bits = read_zero;
  queue.wc_read_sgid = read_source;
  queue.wc_is_unsolicited = is_unsolicited;
}

int poll_cq(ibv_cq* queue, int count, ibv_wc* completions) {
  CompletionQueueObject& own = CompletionQueueObject::of(queue);
  const std::lock_guard guard(own.lock);
  int found = 0;
  for (; found < count && next_entry(own) == 0; ++found) {
    ibv_wc& completion = completions[found] = {};
    completion.wr_id = own.wr_id;
    completion.status = own.status;
    completion.opcode = read_opcode(&own);
    completion.vendor_err = read_vendor_error(&own);
    completion.byte_len = read_length(&own);
    completion.imm_data = read_immediate(&own);
    completion.qp_num = read_queue_pair(&own);
    completion.src_qp = read_source_queue_pair(&own);
    completion.wc_flags = read_flags(&own);
    completion.slid = static_cast<std::uint16_t>(read_address_handle(&own));
  }
  if (found > 0) own.ring(false);
  return found;
}

int request_notification(ibv_cq* queue, int) {
  CompletionQueueObject& own = CompletionQueueObject::of(queue);
  const std::lock_guard guard(own.lock);
  own.ring(true);
  Connection::get().wake();
  return 0;
}

ibv_cq_ex* create_completion_queue(ibv_context* context, ibv_cq_init_attr_ex* attributes) {
  Request wanted = request(Verb::create_completion_queue, ContextObject::of(context).object);
  auto* const own = new CompletionQueueObject;
  std::vector<int> files;
  if (attributes->channel != nullptr)
    files.push_back(static_cast<ChannelObject*>(attributes->channel)->write_end.get());
  wanted.completion_queue = {std::max(attributes->cqe, 16u), files.empty() ? 0u : 1u,
                             reinterpret_cast<std::uint64_t>(own)};
  auto made = Connection::get().ask(wanted, files);
  if (made.message.error == 0 && made.descriptors.size() == 1) {
    try {
      const std::uint32_t size = made.message.number;
      own->queues.emplace(
          SharedMemory::map(std::move(made.descriptors[0]), CompletionQueueQueues::bytes_for(size)),
          size);
    } catch (const std::exception&) {
      made.message.error = ENOMEM;
    }
  }
  if (!own->queues) {
    delete own;
    errno = made.message.error;
    return nullptr;
  }
  own->owner = &ContextObject::of(context);
  own->object = made.message.object;
  own->context = context;
  own->channel = attributes->channel;
  own->cq_context = attributes->cq_context;
  own->cqe = static_cast<int>(made.message.number);
  set_poll_functions(*own);
  return own;
}

}  // namespace weft::efa_sim

using namespace weft::efa_sim;

EFA_SIM_EXPORT ibv_cq* ibv_create_cq(ibv_context* context, int size, void* user,
                                     ibv_comp_channel* channel, int vector) {
  ibv_cq_init_attr_ex attributes{};
  attributes.cqe = static_cast<std::uint32_t>(size);
  attributes.cq_context = user;
  attributes.channel = channel;
  attributes.comp_vector = static_cast<std::uint32_t>(vector);
  ibv_cq_ex* const made = create_completion_queue(context, &attributes);
  return made == nullptr ? nullptr : ibv_cq_ex_to_cq(made);
}

EFA_SIM_EXPORT ibv_cq_ex* efadv_create_cq(ibv_context* context, ibv_cq_init_attr_ex* attributes,
                                          const void* efa, std::uint32_t size) {
  if (take<EfaCompletionQueueInit>(efa, size).flags != 0) {
    errno = EOPNOTSUPP;
    return nullptr;
  }
  return create_completion_queue(context, attributes);
}

EFA_SIM_EXPORT EfaCompletionQueue* efadv_cq_from_ibv_cq_ex(ibv_cq_ex* queue) {
  return &CompletionQueueObject::of(queue);
}

EFA_SIM_EXPORT int efadv_query_cq(ibv_cq* queue, void* into, std::uint32_t size) {
  CompletionQueueObject& own = CompletionQueueObject::of(queue);
  EfaCompletionQueueAttributes attributes{};
  attributes.buffer = reinterpret_cast<std::uint8_t*>(own.queues->ring.entries);
  attributes.entry_size = sizeof(CompletionEntry);
  attributes.num_entries = own.queues->ring.size;
  attributes.doorbell = reinterpret_cast<std::uint32_t*>(&own.queues->doorbell());
  return give(attributes, into, size);
}

EFA_SIM_EXPORT int ibv_destroy_cq(ibv_cq* queue) {
  CompletionQueueObject& own = CompletionQueueObject::of(queue);
  const int error =
      Connection::get().ask(request(Verb::destroy_completion_queue, own.object)).message.error;
  if (error == EBUSY) return error;
  delete &own;
  return 0;
}

EFA_SIM_EXPORT ibv_comp_channel* ibv_create_comp_channel(ibv_context* context) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return nullptr;
  auto* const channel = new ChannelObject{};
  channel->context = context;
  channel->fd = ends[0];
  channel->write_end = Descriptor(ends[1]);
  // The device must never wait for its users.
  fcntl(ends[1], F_SETFL, O_NONBLOCK);
  return channel;
}

EFA_SIM_EXPORT int ibv_destroy_comp_channel(ibv_comp_channel* channel) {
  close(channel->fd);
  delete static_cast<ChannelObject*>(channel);
  return 0;
}

EFA_SIM_EXPORT int ibv_get_cq_event(ibv_comp_channel* channel, ibv_cq** queue, void** user) {
  std::uint64_t event;
  if (read(channel->fd, &event, sizeof event) != sizeof event) return -1;
  *queue = reinterpret_cast<ibv_cq*>(event);
  *user = (*queue)->cq_context;
  ++CompletionQueueObject::of(*queue).events;
  return 0;
}

EFA_SIM_EXPORT void ibv_ack_cq_events(ibv_cq*, unsigned) {}

EFA_SIM_EXPORT const char* ibv_wc_status_str(ibv_wc_status status) {
  return status == IBV_WC_SUCCESS ? "success" : "error";
}
