// Wraps a transport of a rail, and lets things go wrong as a switch says.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <random>
#include <string>
#include <vector>
#include <weft/testkit.hpp>

#include "testkit/fault_switch.hpp"
#include "transport/transport.hpp"

namespace weft::core {

/// `wrapped` counts the transports that are wrapped: two for each rail.
class FaultTransport final : public Transport, private ChunkSink {
 public:
  FaultTransport(Transport& inner, std::shared_ptr<FaultSwitch> faults, std::size_t wrapped);

  std::uint64_t chunk_limit(const Route& route) const override;
  std::size_t most_chunks(const Route& route) const override;
  /// Half as much if chunks may be posted twice.
  std::size_t room(const Route& route) const override;
  providers::Post post(Op& op) override;
  std::size_t progress() override;
  bool holds_back() const noexcept override {
    return !waiting_.empty() || !dropped_.empty() || !given_up_.empty();
  }
  void peer_died(Route& route) override;

 private:
  /// A chunk on its way through the inner transport, once or twice.
  struct Flight {
    Op copies[2];
    Op* original = nullptr;
    unsigned outstanding = 0;
    providers::Completion completion;
    std::string text;
    Clock::time_point due;
    bool overtaken = false;  // goes with a later one, if one comes before it is due
  };
  using Flights = std::list<Flight>;

  void chunk_ended(Op& op, const providers::Completion& completion) override;
  void follow_switch();
  std::size_t end_given_up();
  bool happens(double share);
  std::int64_t up_to(std::int64_t most);
  providers::Post post_copy(Flight& flight, unsigned copy);
  void home(Flights::iterator flight);
  void deliver(Flights::iterator flight);

  Transport& inner_;
  const std::shared_ptr<FaultSwitch> switch_;
  FaultSwitch::Counts& counts_;
  const std::size_t wrapped_;
  std::uint64_t version_ = 0;  // the switch's, that `fault_` is of
  testkit::Fault fault_;
  std::mt19937_64 random_;
  Flights flights_;  // posted to the inner transport
  Flights waiting_;  // ended there, and held back
  std::vector<Op*> dropped_;
  std::vector<Op*> given_up_;  // dropped before the switch changed
  Flights failed_;             // delivered, and kept: the provider may look at them once more
  std::int64_t burst_left_ = 0;
  const Op* spared_ = nullptr;  // its fate was drawn, and the inner transport had no room
};

}  // namespace weft::core
