#include "sides/local_initiator.hpp"

#include "common/local_address.hpp"
#include "common/memory_place.hpp"
#include "load/copies.hpp"
#include "raw/usage.hpp"

namespace weft::perf {
namespace {

Result<Config> initiator_config(const Site& site, const Point& point, const std::string& address) {
  auto config = data_config(site, point, point.work.memory);
  if (!config) return config;
  config->listen.clear();
  config->advertise.clear();
  config->progress = point.fabric.progress;
  if (config->rail_address.empty()) config->rail_address = tool::local_address_towards(address);
  return config;
}

}  // namespace

LocalInitiator::LocalInitiator(const Site& site, Engine engine, std::stop_token stop)
    : site_(site),
      engine_(std::move(engine)),
      stop_(std::move(stop)),
      interrupt_(stop_, [this] { close_now(engine_); }) {}

Result<std::unique_ptr<Initiator>> LocalInitiator::open(const Site& site, const Point& point,
                                                        const std::vector<std::string>& addresses,
                                                        const std::stop_token& stop) {
  const auto config = initiator_config(site, point, addresses.front());
  if (!config) return fail(config.error());
  auto engine = Engine::open(*config);
  if (!engine) return fail(std::move(engine.error()));
  std::unique_ptr<LocalInitiator> initiator(new LocalInitiator(site, std::move(*engine), stop));
  if (auto met = initiator->meet(addresses); !met) return fail(std::move(met.error()));
  return initiator;
}

Result<void> LocalInitiator::meet(const std::vector<std::string>& addresses) {
  for (const std::string& address : addresses) {
    auto target = engine_.connect(address, deadline());
    if (!target) return fail(std::move(target.error()));
    targets_.push_back(std::move(*target));
  }
  carrier_ = carrier_of(engine_.info(), targets_.front().rails());
  return {};
}

Result<void> LocalInitiator::prepare(const Task& task) {
  driver_ = {};
  round_.reset();
  if (auto lent = check_lent(site_, task.point.work.memory); !lent) return lent;
  round_.emplace();
  round_->task = task;
  auto prepared =
      task.point.work.operation == Operation::message ? prepare_messages() : prepare_transfers();
  if (!prepared) return prepared;
  return task.verify ? go_round_once() : prepared;
}

Result<void> LocalInitiator::prepare_transfers() {
  auto layout = lay_out(round_->task.point.work);
  if (!layout) return fail(std::move(layout.error()));
  round_->layout = std::move(*layout);
  // All at once: one after the other each might find room.
  if (auto room = check_room(round_->layout.initiator_bytes * targets_.size()); !room)
    return fail(std::move(room.error()));
  std::vector<std::unique_ptr<Operations>> windows;
  for (const Peer& target : targets_) {
    auto transfers = transfers_to(target);
    if (!transfers) return fail(std::move(transfers.error()));
    windows.push_back(std::move(*transfers));
  }
  round_->operations.emplace(std::move(windows));
  return {};
}

Result<std::unique_ptr<Operations>> LocalInitiator::transfers_to(const Peer& target) {
  const Task& task = round_->task;
  const Work& work = task.point.work;
  const Workload& layout = round_->layout;
  auto region = Region::make(engine_, work.memory, layout.initiator_bytes);
  if (!region) return fail(std::move(region.error()));
  const auto stretches =
      task.verify ? before(work, layout, Side::initiator, task.seed) : std::vector<Stretch>();
  if (auto filled = region->fill(stretches, stop_); !filled) return fail(std::move(filled.error()));
  auto remote = target.lookup(memory_name(task.number), deadline());
  if (!remote) return fail(std::move(remote.error()));
  // Of several targets one may be slow.
  const bool in_order = targets_.size() == 1 && work.memory == tool::shared_memory &&
                        work.peer_memory == tool::shared_memory;
  auto transfers = Transfers::make(engine_, work, layout, region->segment(), *remote, task.seed,
                                   site_.timeout, in_order);
  if (!transfers) return fail(std::move(transfers.error()));
  const Direction direction = reads(work, 0) ? Direction::read : Direction::write;
  if (const auto path = engine_.explain(region->segment(), *remote, direction))
    round_->ceiling_gbps = path->gbps;
  round_->regions.push_back(std::move(*region));
  return std::unique_ptr<Operations>(std::move(*transfers));
}

Result<void> LocalInitiator::prepare_messages() {
  const Task& task = round_->task;
  std::vector<std::unique_ptr<Operations>> windows;
  for (const Peer& target : targets_)
    windows.push_back(
        std::make_unique<Messages>(engine_, target, task.point.work, task.seed, site_.timeout));
  round_->operations.emplace(std::move(windows));
  return {};
}

/// With all targets' windows as one.
Work LocalInitiator::whole_work() const {
  Work work = round_->task.point.work;
  work.window *= static_cast<std::uint32_t>(targets_.size());
  return work;
}

/// Every operation's bytes are looked at in the end, so each has to have been carried out.
Result<void> LocalInitiator::go_round_once() {
  const Work work = whole_work();
  const auto all =
      closed_loop(*round_->operations, work, {site_.timeout, work.window}, site_.timeout, stop_);
  if (!all) return fail(all.error());
  if (all->operations < work.window && !stop_.stop_requested())
    return fail(Code::timed_out,
                "not every operation of the window was carried out in time (--timeout)");
  return {};
}

Result<Load> LocalInitiator::load(Length length, std::uint64_t seed) {
  const Work work = whole_work();
  return work.rate > 0 ? open_loop(*round_->operations, work, length, site_.timeout, seed, stop_)
                       : closed_loop(*round_->operations, work, length, site_.timeout, stop_);
}

Result<void> LocalInitiator::warm_up(Nanoseconds time) {
  if (time == Nanoseconds::zero()) return {};
  return load({time, 0}, round_->task.seed).map([](const Load&) {});
}

std::map<std::string, std::uint64_t> LocalInitiator::rail_bytes() const {
  std::map<std::string, std::uint64_t> bytes;
  for (const RailInfo& rail : engine_.info().rails) bytes[rail.name] = rail.bytes;
  return bytes;
}

std::vector<std::uint64_t> LocalInitiator::transfers_begun() const {
  std::vector<std::uint64_t> begun;
  for (std::size_t i = 0; i < targets_.size(); ++i)
    begun.push_back(round_->operations->begun(i) * round_->layout.parts);
  return begun;
}

Result<Part> LocalInitiator::measure(Length length) {
  const Work& work = round_->task.point.work;
  const bool messages = work.operation == Operation::message;
  const auto rails = rail_bytes();
  const Ledger ledger = Ledger::of(engine_);
  const double cpu = cpu_seconds();
  auto measured = load(length, round_->task.seed + most_initiators);
  if (!measured) return fail(std::move(measured.error()));
  Part part;
  part.cpu_seconds = cpu_seconds() - cpu;
  part.bytes = measured->operations * (messages ? work.size : round_->layout.operation_bytes);
  part.load = std::move(*measured);
  part.copies = Ledger::of(engine_).since(ledger);
  part.transfers = transfers_begun();
  part.ceiling_gbps = round_->ceiling_gbps;
  for (const auto& [name, bytes] : rail_bytes())
    if (const std::uint64_t before = rails.at(name); bytes > before)
      part.rails[name] = bytes - before;
  for (std::size_t i = 0; messages && i < targets_.size(); ++i)
    if (auto last = targets_[i].send(last_tag, {}, deadline()); !last)
      return fail(std::move(last.error()));
  driver_ = Driver(engine_);
  return part;
}

Result<Findings> LocalInitiator::finish() {
  driver_ = {};
  const Task& task = round_->task;
  Findings all;
  if (task.verify && !round_->regions.empty()) {
    const auto wanted = after(task.point.work, round_->layout, Side::initiator, task.seed);
    for (const Region& region : round_->regions) {
      const auto found = region.check(wanted);
      if (!found) return fail(found.error());
      all.add(*found);
    }
  }
  round_.reset();
  return all;
}

}  // namespace weft::perf
