// A transport decorator that makes things go wrong, by a plan that a seed makes repeatable.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "engine/hooks.hpp"
#include "transport/transport.hpp"

namespace weft::test {

/// What happens to the chunks of one transport. Probabilities are from 0 to 1, of each chunk or,
/// for refusals, of each post.
struct FaultPlan {
  std::uint64_t seed = 1;
  double delay = 0;           ///< The completion is held back,
  unsigned delay_ticks = 20;  ///< for 1 to this many calls of progress().
  double reorder = 0;         ///< The completion waits until a later one has been delivered.
  double again = 0;           ///< A burst of refusals begins,
  unsigned again_burst = 5;   ///< 1 to this many long.
  double refuse = 0;          ///< The post fails.
  double fail = 0;            ///< The chunk is carried out, and completes with an error.
  double duplicate = 0;       ///< The chunk is posted twice; it completes when both copies have.
  double drop = 0;            ///< The chunk is accepted, never carried out, and never completes.
};

/// How often each fault was injected, by all transports of one engine.
struct FaultCounts {
  std::atomic<std::uint64_t> delayed{0}, reordered{0}, again{0}, refused{0}, failed{0},
      duplicated{0}, dropped{0};
};

class FaultTransport final : public core::Transport, private core::ChunkSink {
 public:
  FaultTransport(core::Transport& inner, const FaultPlan& plan,
                 std::shared_ptr<FaultCounts> counts);

  std::uint64_t chunk_limit(const core::Route& route) const override;
  std::size_t most_chunks(const core::Route& route) const override;
  /// Half as much if chunks may be posted twice.
  std::size_t room(const core::Route& route) const override;
  providers::Post post(core::Op& op) override;
  std::size_t progress() override;
  void peer_died(core::Route& route) override;

 private:
  /// A chunk on its way through the inner transport, once or twice.
  struct Flight {
    core::Op copies[2];
    core::Op* original = nullptr;
    unsigned outstanding = 0;
    providers::Completion completion;
    std::string text;
    std::uint64_t due = 0;
    bool overtaken = false;  // waits for a later one, however many ticks pass
  };
  using Flights = std::list<Flight>;

  void chunk_ended(core::Op& op, const providers::Completion& completion) override;
  bool happens(double probability);
  std::uint64_t up_to(unsigned most);
  providers::Post post_copy(Flight& flight, unsigned copy);
  void home(Flights::iterator flight);
  void deliver(Flights::iterator flight);

  core::Transport& inner_;
  const FaultPlan plan_;
  const std::shared_ptr<FaultCounts> counts_;
  std::mt19937_64 random_;
  Flights flights_;  // posted to the inner transport
  Flights waiting_;  // ended there, and held back
  Flights failed_;   // delivered, and kept: the provider may look at them once more
  unsigned burst_left_ = 0;
  const core::Op* spared_ = nullptr;  // its fate was drawn, and the inner transport had no room
  std::uint64_t now_ = 0;             // calls of progress()
};

/// Plans for the rails of an engine, by their order; the last one counts for all that follow.
class Faults {
 public:
  explicit Faults(std::vector<FaultPlan> plans) : plans_(std::move(plans)) {}
  explicit Faults(const FaultPlan& plan) : Faults(std::vector{plan}) {}
  core::EngineHooks hooks() const;
  const FaultCounts& counts() const { return *counts_; }

 private:
  std::vector<FaultPlan> plans_;
  std::shared_ptr<FaultCounts> counts_ = std::make_shared<FaultCounts>();
};

}  // namespace weft::test
