// Reads the words of leases, which say whether the bytes that were read count.
#pragma once

#include <cstddef>
#include <functional>
#include <unordered_map>
#include <vector>

#include "message/buffer_pool.hpp"
#include "transport/transport.hpp"

namespace weft::core {

class RemoteState;

/// One reading of a word at a time serves all ops that wait for it: their bytes have come before it
/// began. Ops that are added meanwhile wait for the next one. Used by the rail's owning thread
/// only.
class LeaseReader final : private providers::CompletionHandler {
 public:
  /// `ended` is called for each op: completed only if the lease still held.
  using Ended = std::function<void(Op&, const providers::Completion&)>;
  LeaseReader(providers::Endpoint& endpoint, std::size_t rail, Ended ended)
      : endpoint_(endpoint),
        rail_(rail),
        ended_(std::move(ended)),
        landings_(endpoint, sizeof(std::uint64_t), 1) {}

  /// May block; before the first peer is met.
  Result<void> prepare();
  /// From here on the op's bytes have come, and its end will be told.
  void add(Op& op);
  /// Begins the readings that it can, each for all ops that were added; returns how many.
  std::size_t progress();
  /// Ends those to the dead peer that no reading serves yet.
  void peer_died(const Route& route);

 private:
  struct Reading {
    std::vector<Op*> served, waiting;
  };
  using Readings = std::unordered_map<const RemoteState*, Reading>;

  providers::Post begin(Reading& reading);
  bool begin_or_fail(Readings::iterator reading);
  void completed(providers::Posted& posted, const providers::Completion& completion) override;

  providers::Endpoint& endpoint_;
  const std::size_t rail_;
  const Ended ended_;
  BufferPool landings_;
  Readings readings_;  // under way, or with ops that wait
  std::unordered_map<const Buffer*, const RemoteState*> under_way_;  // by where the word lands
  std::vector<const RemoteState*> due_;                              // perhaps to be begun
};

}  // namespace weft::core
