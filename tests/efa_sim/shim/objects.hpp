// What the pointers that libfabric holds stand for. Each object begins with (or holds) the public
// structure of libibverbs.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <mutex>
#include <optional>
#include <random>
#include <thread>

#include "connection.hpp"
#include "efadv.hpp"

namespace weft::efa_sim {

struct DeviceObject : ibv_device {
  NicInformation nic;
};

/// As libefa has them. A mutex would be seen by half by the thread sanitizer, which is told to look
/// away from libfabric.
class SpinLock {
 public:
  void lock() {
    while (taken_.test_and_set(std::memory_order_acquire)) std::this_thread::yield();
  }
  void unlock() { taken_.clear(std::memory_order_release); }

 private:
  std::atomic_flag taken_;
};

struct QueuePairObject;

struct ContextObject : verbs_context {
  std::uint32_t object = 0;
  DeviceObject* device = nullptr;
  Limits limits{};
  /// By the low bits of their numbers, as the device hands these out.
  std::array<std::atomic<QueuePairObject*>, 256> queue_pairs{};

  ContextObject() : verbs_context{} {}
  static ContextObject& of(ibv_context* context) {
    char* const start = reinterpret_cast<char*>(context) - offsetof(verbs_context, context);
    return static_cast<ContextObject&>(*reinterpret_cast<verbs_context*>(start));
  }
  std::atomic<QueuePairObject*>& queue_pair_at(std::uint32_t number) {
    return queue_pairs[number % queue_pairs.size()];
  }
};

struct DomainObject : ibv_pd {
  std::uint32_t object;
};

struct AddressObject : ibv_ah {
  std::uint16_t number;
};

struct ChannelObject : ibv_comp_channel {
  Descriptor write_end;
};

struct CompletionQueueObject : ibv_cq_ex, EfaCompletionQueue {
  ContextObject* owner = nullptr;
  std::uint32_t object = 0;
  std::optional<CompletionQueueQueues> queues;
  SpinLock lock;
  std::uint32_t read = 0;    // so many entries were read
  std::uint32_t events = 0;  // so many events were taken
  CompletionEntry current{};

  CompletionQueueObject() : ibv_cq_ex{}, EfaCompletionQueue{} {}
  static CompletionQueueObject& of(ibv_cq_ex* queue) {
    return static_cast<CompletionQueueObject&>(*queue);
  }
  static CompletionQueueObject& of(EfaCompletionQueue* queue) {
    return static_cast<CompletionQueueObject&>(*queue);
  }
  /// An ibv_cq is the beginning of an ibv_cq_ex.
  static CompletionQueueObject& of(ibv_cq* queue) {
    return of(reinterpret_cast<ibv_cq_ex*>(queue));
  }
  /// Tells the device how far it was read, and (maybe) that an event is wanted.
  void ring(bool arm);
};

/// The 16-bit numbers under which the device knows work requests, and what the user calls them.
class RequestIds {
 public:
  void resize(std::uint32_t count);
  bool empty() const { return free_.empty(); }
  /// There must be one.
  std::uint16_t take(std::uint64_t user);
  std::uint64_t give_back(std::uint16_t number);

 private:
  std::vector<std::uint64_t> users_;
  std::vector<std::uint16_t> free_;
};

/// What a process keeps of one of its rings of work requests.
struct WorkQueue {
  SpinLock lock;
  RequestIds ids;
  std::uint16_t posted = 0;  // the position after the last entry
  std::uint32_t most_pieces = 0;
};

struct QueuePairObject : ibv_qp_ex, EfaQueuePair {
  ContextObject* owner = nullptr;
  std::uint32_t object = 0;
  std::optional<QueuePairQueues> queues;
  WorkQueue send, receive;
  // Between wr_start and wr_complete:
  std::vector<SendEntry> batch;
  int batch_error = 0;
  std::minstd_rand random;

  QueuePairObject() : ibv_qp_ex{}, EfaQueuePair{} {}
  static QueuePairObject& of(ibv_qp_ex* queue_pair) {
    return static_cast<QueuePairObject&>(*queue_pair);
  }
  /// An ibv_qp is the beginning of an ibv_qp_ex.
  static QueuePairObject& of(ibv_qp* queue_pair) {
    return of(reinterpret_cast<ibv_qp_ex*>(queue_pair));
  }
};

/// To be called as memory is registered (fork.cpp).
void memory_is_registered();

// The parts of an object that are functions.
void set_poll_functions(CompletionQueueObject& queue);
void set_post_functions(QueuePairObject& queue_pair);
int poll_cq(ibv_cq* queue, int count, ibv_wc* completions);
int request_notification(ibv_cq* queue, int solicited_only);
int post_send(ibv_qp* queue_pair, ibv_send_wr* request, ibv_send_wr** bad);
int post_receive(ibv_qp* queue_pair, ibv_recv_wr* request, ibv_recv_wr** bad);
ibv_cq_ex* create_completion_queue(ibv_context* context, ibv_cq_init_attr_ex* attributes);
ibv_qp* create_queue_pair(ibv_context* context, const ibv_qp_init_attr_ex& attributes,
                          bool unsolicited);

}  // namespace weft::efa_sim
