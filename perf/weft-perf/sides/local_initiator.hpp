// An initiator of this process.
#pragma once

#include <functional>
#include <optional>
#include <stop_token>

#include "protocol/control.hpp"
#include "sides/initiator.hpp"
#include "workload/region.hpp"

namespace weft::perf {

/// One task of an initiator, under way.
struct Round {
  Task task;
  Workload layout;
  double ceiling_gbps = 0;
  std::vector<Region> regions;  ///< One for each target.
  std::optional<Fanned> operations;
};

class LocalInitiator final : public Initiator {
 public:
  /// Meets the targets there. A stop closes its engine, so that whatever is under way ends soon.
  static Result<std::unique_ptr<Initiator>> open(const Site& site, const Point& point,
                                                 const std::vector<std::string>& addresses,
                                                 const std::stop_token& stop);

  const std::string& name() const override { return engine_.name(); }
  const Carrier& carrier() const override { return carrier_; }
  Result<void> prepare(const Task& task) override;
  Result<void> warm_up(Nanoseconds time) override;
  Result<Part> measure(Length length) override;
  Result<Findings> finish() override;

 private:
  LocalInitiator(const Site& site, Engine engine, std::stop_token stop);
  Result<void> meet(const std::vector<std::string>& addresses);
  Result<void> prepare_transfers();
  Result<std::unique_ptr<Operations>> transfers_to(const Peer& target);
  Result<void> prepare_messages();
  Result<void> go_round_once();
  Result<Load> load(Length length, std::uint64_t seed);
  std::map<std::string, std::uint64_t> rail_bytes() const;
  std::vector<std::uint64_t> transfers_begun() const;
  Work whole_work() const;
  Deadline deadline() const { return Deadline::in(site_.timeout); }

  const Site site_;
  Engine engine_;
  const std::stop_token stop_;
  const std::stop_callback<std::function<void()>> interrupt_;
  Driver driver_;  // Of what is still on its way to the targets.
  std::vector<Peer> targets_;
  Carrier carrier_;
  std::optional<Round> round_;
};

}  // namespace weft::perf
