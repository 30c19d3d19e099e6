#include <chrono>
#include <memory>
#include <utility>
#include <weft/testkit.hpp>

#include "rail/hooks.hpp"
#include "testkit/fault_transport.hpp"

namespace weft::core {

/// Each rail has two transports, which are wrapped one after the other, in the order of the rails.
EngineHooks hooks_of(const testkit::Faults& faults) {
  EngineHooks hooks;
  hooks.decorate = [switch_of = faults.switch_,
                    wrapped = std::make_shared<std::size_t>(0)](Transport& inner) {
    return std::make_unique<FaultTransport>(inner, switch_of, (*wrapped)++);
  };
  return hooks;
}

}  // namespace weft::core

namespace weft::testkit {

Faults::Faults() : switch_(std::make_shared<core::FaultSwitch>()) {}

void Faults::set(const Fault& fault) {
  switch_->set(fault);
}

void Faults::set(std::size_t rail, const Fault& fault) {
  switch_->set(rail, fault);
}

FaultCounts Faults::counts() const {
  const auto& counts = switch_->counts;
  return {counts.delayed, counts.reordered,  counts.again,  counts.refused,
          counts.failed,  counts.duplicated, counts.dropped};
}

Result<Engine> open(const Config& config, const Faults& faults) {
  return core::open_engine(config, core::hooks_of(faults));
}

Result<Pair> pair(const Config& config, const Faults& faults) {
  const Deadline deadline = Deadline::in(std::chrono::seconds(10));
  auto first = open(config, faults);
  if (!first) return fail(std::move(first.error()));
  auto second = open(config, faults);
  if (!second) return fail(std::move(second.error()));
  auto to_second = first->connect(second->address(), deadline);
  if (!to_second) return fail(std::move(to_second.error()));
  auto to_first = second->accept(deadline);
  if (!to_first) return fail(std::move(to_first.error()));
  return Pair{std::move(*first), std::move(*second), std::move(*to_second), std::move(*to_first)};
}

}  // namespace weft::testkit
