// The words of leases, which say whether what was read counts.
#pragma once

#include <cstddef>
#include <functional>
#include <unordered_map>
#include <vector>

#include "message/buffer_pool.hpp"
#include "transport/transport.hpp"

namespace weft::core {

class RemoteState;

/// A word is read once at a time, for all who wait for it: their bytes have come before that
/// reading began. Those who come meanwhile wait for the next one. Used by the rail's owning thread
/// only.
class LeaseReader final : private providers::CompletionHandler {
 public:
  /// `ended` hears how it went with each: completed only if the lease still held.
  using Ended = std::function<void(Op&, const providers::Completion&)>;
  LeaseReader(providers::Endpoint& endpoint, std::size_t rail, Ended ended)
      : endpoint_(endpoint),
        rail_(rail),
        ended_(std::move(ended)),
        landings_(endpoint, sizeof(std::uint64_t)) {}

  /// May block; before the first peer is met.
  Result<void> prepare();
  /// From here on the op's bytes have come, and its end will be told.
  void add(Op& op);
  /// Begins what readings it can, each for all who have been added; returns how many.
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
  Readings readings_;  // under way, or with somebody who waits
  std::unordered_map<const Buffer*, const RemoteState*> under_way_;  // by where the word lands
  std::vector<const RemoteState*> due_;                              // perhaps to be begun
};

}  // namespace weft::core
