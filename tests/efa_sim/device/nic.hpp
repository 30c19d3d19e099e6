// A NIC of a simulated host: takes operations from the queue pairs of the processes that opened it,
// cuts them into packets and carries these to other NICs, out of order and with the faults that the
// settings ask for.
#pragma once

#include <chrono>
#include <deque>
#include <list>
#include <memory>
#include <random>
#include <string_view>

#include "packet_window.hpp"
#include "queue_pair.hpp"
#include "settings.hpp"

namespace weft::efa_sim {

class Fabric;

class Nic {
 public:
  Nic(Fabric& fabric, const NicDescription& description, const Gid& gid, std::uint64_t seed);

  void configure(const NicSettings& settings);
  /// Moves things on. Returns whether anything happened.
  bool advance(Time now);
  /// Whether something is under way, so that time alone may bring news.
  bool busy() const;

  CompletionQueue& create_completion_queue(std::uint32_t size, Descriptor channel,
                                           std::uint64_t event);
  void destroy(CompletionQueue& queue);
  /// None: there are no more.
  QueuePair* create_queue_pair(const QueuePair::Attributes& attributes);
  void destroy(QueuePair& queue_pair);
  QueuePair* find(std::uint16_t number);
  /// Ends whatever waits, as a queue pair in the error state does.
  void flush(QueuePair& queue_pair);
  bool uses(const CompletionQueue& queue) const;
  /// Whether nothing that is sent to (or from) that queue pair arrives.
  bool is_dead(const QueuePair& queue_pair) const;
  bool chance(Setting probability);
  /// The setting that forbids to register this memory now; empty: none does.
  std::string_view limit_on(const RegionTable::Region& region) const;
  /// How long it takes to register it.
  std::chrono::nanoseconds time_for(const RegionTable::Region& region) const;
  /// Whether a domain can get a handle of that address.
  bool has_room_for(const Domain& domain, const Gid& address) const;

  const NicDescription& description;
  const Gid gid;
  NicSettings settings;
  RegionTable regions;
  AddressTable addresses;
  Counters counters{};

 private:
  enum class Delivery { done, later, failed };

  bool fetch(Time now);
  void begin(const std::shared_ptr<Operation>& operation, Time now);
  Status check(Operation& operation) const;
  void choose_faults(Operation& operation);
  void end(Operation& operation, Status status, Time now);
  void complete(CompletionQueue& queue, const CompletionEntry& entry, Time now);

  void fill_window();
  void carry(Packet packet, Time now);
  void hold(Packet packet, Time until);
  /// Whether nobody answers; ends the operation if that lasts.
  bool is_silent(Operation& operation, const Nic* target_nic, const QueuePair* target, Time now);
  Status move(const Packet& packet, QueuePair& target);
  Status read(const Packet& packet, QueuePair& target);
  Status write(const Packet& packet, QueuePair& target);
  bool gather(const Operation& operation, std::uint64_t offset, std::uint64_t length);
  /// The receiving side's completion, for which it may need a receive.
  Delivery deliver(Operation& operation, QueuePair& target, Time now);
  Delivery wait_for_receive(Operation& operation, QueuePair& target, Time now);
  Status fill_receive(Operation& operation, QueuePair& target, CompletionEntry& entry);

  struct Replay {
    std::shared_ptr<Operation> operation;
    Domain domain;
    Nic* nic;
  };
  bool replay(Time now);

  Fabric& fabric_;
  std::mt19937_64 random_;
  std::list<CompletionQueue> completion_queues_;
  std::list<QueuePair> queue_pairs_;
  std::uint32_t queue_pairs_made_ = 0;
  std::deque<std::shared_ptr<Operation>> sending_;
  PacketWindow<Packet> window_;
  std::multimap<Time, Packet> held_;
  std::multimap<Time, Replay> replays_;
  std::uint64_t fault_count_ = 0;
  std::vector<std::byte> bytes_;  // of the packet under way
};

}  // namespace weft::efa_sim
