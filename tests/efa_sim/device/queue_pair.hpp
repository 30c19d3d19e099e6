// The device's side of a queue pair: takes entries from the rings in which a process posts them.
#pragma once

#include <set>

#include "completion_queue.hpp"
#include "operation.hpp"
#include "tables.hpp"

namespace weft::efa_sim {

class Nic;

/// A receive that was posted.
struct Receive {
  std::uint16_t id;
  std::vector<LocalPiece> pieces;
};

class QueuePair {
 public:
  struct Attributes {
    Domain domain;
    CompletionQueue* send_completions;
    CompletionQueue* receive_completions;
    QueuePairQueues::Sizes sizes;
    bool unsolicited;  // writes with data need no receive
  };
  QueuePair(Nic& nic, std::uint16_t number, const Attributes& attributes);

  /// The next operation posted, if there is one.
  std::shared_ptr<Operation> take_operation();
  bool has_receive() const;
  /// The receive that was posted first, which must be there.
  Receive take_receive();

  const SharedMemory& memory() const { return queues_.memory(); }
  Doorbell& refused_posts() const { return queues_.refused_posts(); }

  Nic& nic;
  const std::uint16_t number;
  const Attributes attributes;
  QueuePairState state = QueuePairState::other;
  std::uint32_t queue_key = 0;
  /// How often a message for which there is no receive is tried again; 7: for ever.
  std::uint32_t retries = 7;
  /// Operations that have not ended.
  std::set<std::shared_ptr<Operation>> outstanding;
  /// Those who ever answered.
  std::set<Destination> responsive;

 private:
  QueuePairQueues queues_;
  std::uint16_t next_send_ = 0;
  std::uint16_t next_receive_ = 0;
};

}  // namespace weft::efa_sim
