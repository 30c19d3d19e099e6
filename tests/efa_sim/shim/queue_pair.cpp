// Queue pairs: making, changing and destroying them.
#include <cerrno>
#include <exception>

#include "objects.hpp"

namespace weft::efa_sim {
namespace {

QueuePairState state_of(ibv_qp_state state) {
  switch (state) {
    case IBV_QPS_RTR:
      return QueuePairState::receives;
    case IBV_QPS_RTS:
      return QueuePairState::sends;
    case IBV_QPS_ERR:
      return QueuePairState::error;
    default:
      return QueuePairState::other;
  }
}

void fill_public_part(ibv_qp& verbs, ibv_context* context, const ibv_qp_init_attr_ex& attributes,
                      std::uint32_t number) {
  verbs.context = context;
  verbs.qp_context = attributes.qp_context;
  verbs.pd = attributes.pd;
  verbs.send_cq = attributes.send_cq;
  verbs.recv_cq = attributes.recv_cq;
  verbs.qp_num = number;
  verbs.qp_type = attributes.qp_type;
  verbs.state = IBV_QPS_RESET;
}

}  // namespace

ibv_qp* create_queue_pair(ibv_context* context, const ibv_qp_init_attr_ex& attributes,
                          bool unsolicited) {
  const ibv_qp_cap& cap = attributes.cap;
  const Limits& limits = ContextObject::of(context).limits;
  if (cap.max_send_wr > limits.send_size || cap.max_recv_wr > limits.receive_size) {
    errno = EINVAL;
    return nullptr;
  }
  const QueuePairQueues::Sizes sizes{
      std::bit_ceil(std::max(cap.max_send_wr, 1u)),
      std::bit_ceil(std::max(cap.max_recv_wr, 1u) * std::max(cap.max_recv_sge, 1u))};
  Request wanted =
      request(Verb::create_queue_pair, static_cast<DomainObject*>(attributes.pd)->object);
  wanted.queue_pair = {CompletionQueueObject::of(attributes.send_cq).object,
                       CompletionQueueObject::of(attributes.recv_cq).object, sizes.send,
                       sizes.receive, unsolicited ? 1u : 0u};
  auto made = Connection::get().ask(wanted);
  auto* const own = new QueuePairObject;
  if (made.message.error == 0 && made.descriptors.size() == 1) {
    try {
      own->queues.emplace(
          SharedMemory::map(std::move(made.descriptors[0]), QueuePairQueues::bytes_for(sizes)),
          sizes);
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
  own->send.ids.resize(sizes.send);
  own->send.most_pieces = cap.max_send_sge;
  own->receive.most_pieces = std::max(cap.max_recv_sge, 1u);
  own->receive.ids.resize(sizes.receive / own->receive.most_pieces);
  fill_public_part(own->qp_base, context, attributes, made.message.number);
  set_post_functions(*own);
  own->owner->queue_pair_at(made.message.number) = own;
  return &own->qp_base;
}

}  // namespace weft::efa_sim

using namespace weft::efa_sim;

EFA_SIM_EXPORT ibv_qp* efadv_create_qp_ex(ibv_context* context, ibv_qp_init_attr_ex* attributes,
                                          const void* efa, std::uint32_t size) {
  const auto wanted = take<EfaQueuePairInit>(efa, size);
  return create_queue_pair(context, *attributes, (wanted.flags & qp_unsolicited_write_recv) != 0);
}

EFA_SIM_EXPORT ibv_qp* ibv_create_qp(ibv_pd* domain, ibv_qp_init_attr* plain) {
  ibv_qp_init_attr_ex attributes{};
  attributes.qp_context = plain->qp_context;
  attributes.send_cq = plain->send_cq;
  attributes.recv_cq = plain->recv_cq;
  attributes.cap = plain->cap;
  attributes.qp_type = plain->qp_type;
  attributes.pd = domain;
  return create_queue_pair(domain->context, attributes, false);
}

EFA_SIM_EXPORT ibv_qp_ex* ibv_qp_to_qp_ex(ibv_qp* queue_pair) {
  return &QueuePairObject::of(queue_pair);
}

EFA_SIM_EXPORT EfaQueuePair* efadv_qp_from_ibv_qp_ex(ibv_qp_ex* queue_pair) {
  return &QueuePairObject::of(queue_pair);
}

EFA_SIM_EXPORT int ibv_modify_qp(ibv_qp* queue_pair, ibv_qp_attr* attributes, int mask) {
  Request wanted = request(Verb::modify_queue_pair, QueuePairObject::of(queue_pair).object);
  if ((mask & IBV_QP_STATE) != 0) {
    queue_pair->state = attributes->qp_state;
    wanted.change.state = state_of(attributes->qp_state);
  }
  if ((mask & IBV_QP_QKEY) != 0) {
    wanted.change.has_queue_key = 1;
    wanted.change.queue_key = attributes->qkey;
  }
  if ((mask & IBV_QP_RNR_RETRY) != 0) {
    wanted.change.has_retries = 1;
    wanted.change.retries = attributes->rnr_retry;
  }
  return Connection::get().ask(wanted).message.error;
}

EFA_SIM_EXPORT int ibv_query_qp_data_in_order(ibv_qp*, ibv_wr_opcode, std::uint32_t) {
  return 0;
}

EFA_SIM_EXPORT int efadv_query_qp_wqs(ibv_qp* queue_pair, void* send, void* receive,
                                      std::uint32_t size) {
  const QueuePairQueues& queues = *QueuePairObject::of(queue_pair).queues;
  EfaWorkQueueAttributes attributes{};
  attributes.buffer = reinterpret_cast<std::uint8_t*>(queues.send.entries);
  attributes.entry_size = sizeof(SendEntry);
  attributes.num_entries = queues.send.size;
  attributes.doorbell = reinterpret_cast<std::uint32_t*>(&queues.send_doorbell());
  attributes.max_batch = 16;
  give(attributes, send, size);
  attributes.buffer = reinterpret_cast<std::uint8_t*>(queues.receive.entries);
  attributes.entry_size = sizeof(ReceiveEntry);
  attributes.num_entries = queues.receive.size;
  attributes.doorbell = reinterpret_cast<std::uint32_t*>(&queues.receive_doorbell());
  attributes.max_batch = queues.receive.size;
  return give(attributes, receive, size);
}

EFA_SIM_EXPORT int ibv_destroy_qp(ibv_qp* queue_pair) {
  QueuePairObject& own = QueuePairObject::of(queue_pair);
  Connection::get().ask(request(Verb::destroy_queue_pair, own.object));
  QueuePairObject* expected = &own;
  own.owner->queue_pair_at(queue_pair->qp_num).compare_exchange_strong(expected, nullptr);
  delete &own;
  return 0;
}
