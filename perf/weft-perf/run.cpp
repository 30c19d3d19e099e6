#include "run.hpp"

#include "driver.hpp"
#include "local_address.hpp"
#include "region.hpp"
#include "usage.hpp"

namespace weft::perf {
namespace {

Config initiator_config(const Site& site, const Point& point, const std::string& address) {
  Config config = data_config(site, point);
  config.listen.clear();
  config.progress = point.fabric.progress;
  if (config.rail_address.empty()) config.rail_address = tool::local_address_towards(address);
  return config;
}

void add(const Findings& found, const char* where, Findings& sum) {
  sum.checked += found.checked;
  sum.wrong += found.wrong;
  if (sum.first.empty() && !found.first.empty()) sum.first = where + found.first;
}

}  // namespace

double Run::gigabytes_per_second() const {
  return seconds > 0 ? static_cast<double>(bytes) / seconds / 1e9 : 0;
}

double Run::operations_per_second() const {
  return seconds > 0 ? static_cast<double>(operations) / seconds : 0;
}

Result<Session> Session::open(std::vector<Control>& controls, const Site& site, const Point& point,
                              const std::stop_token& stop) {
  std::vector<std::string> addresses;
  for (Control& control : controls) {
    const auto opened = control.ask("open", {{"point", point}});
    if (!opened) return fail(opened.error());
    const auto address = value_of<std::string>(*opened, "address");
    if (!address) return fail(address.error());
    addresses.push_back(*address);
  }
  auto engine = Engine::open(initiator_config(site, point, addresses.front()));
  if (!engine) return fail(std::move(engine.error()));
  Session session(controls, site, point, std::move(*engine));
  for (const std::string& address : addresses) {
    auto peer = connect_until(stop, session.engine_, address, Deadline::in(site.timeout));
    if (!peer) return fail(std::move(peer.error()));
    session.peers_.push_back(std::move(*peer));
  }
  return session;
}

std::string Session::provider() const {
  const auto names = peers_.front().rails();
  for (const RailInfo& rail : engine_.info().rails)
    if (!names.empty() && rail.name == names.front()) return rail.capability.provider;
  return {};
}

bool Session::serves(const Point& point) const {
  const auto message = [](const Point& of) {
    return of.work.operation == Operation::message ? of.work.size : 0;
  };
  return point.fabric == point_.fabric && message(point) == message(point_);
}

std::map<std::string, std::uint64_t> Session::rail_bytes() const {
  std::map<std::string, std::uint64_t> bytes;
  for (const RailInfo& rail : engine_.info().rails) bytes[rail.name] = rail.bytes;
  return bytes;
}

Result<void> Session::mark() {
  for (Control& control : controls_)
    if (auto marked = control.ask("mark"); !marked) return fail(std::move(marked.error()));
  return {};
}

/// Warms up, and measures.
Result<Run> Session::load(Fanned& operations, Work work, const RunOptions& options,
                          const std::stop_token& stop) {
  work.window *= static_cast<std::uint32_t>(controls_.size());
  const auto once = [&](Length length, std::uint64_t seed) {
    return work.rate > 0 ? open_loop(operations, work, length, site_.timeout, seed, stop)
                         : closed_loop(operations, work, length, site_.timeout, stop);
  };
  // Every operation's bytes are looked at in the end, so each has to have been carried out.
  if (options.verify) {
    const auto all =
        closed_loop(operations, work, {site_.timeout, work.window}, site_.timeout, stop);
    if (!all) return fail(all.error());
    if (all->operations < work.window && !stop.stop_requested())
      return fail(Code::timed_out, "not every operation of the window was carried out in time");
  }
  if (options.warm_up.count() > 0)
    if (auto warm = once({options.warm_up, 0}, options.seed); !warm) return fail(warm.error());
  if (auto marked = mark(); !marked) return fail(std::move(marked.error()));
  const auto rails = rail_bytes();
  const double cpu = cpu_seconds();
  auto measured = once(options.length, options.seed + 1);
  if (!measured) return fail(std::move(measured.error()));
  Run run;
  run.cpu_seconds = cpu_seconds() - cpu;
  run.operations = measured->operations;
  run.seconds = measured->seconds;
  run.latency = std::move(measured->latency);
  run.overloaded = measured->overloaded;
  for (const auto& [name, bytes] : rail_bytes())
    if (const std::uint64_t before = rails.at(name); bytes > before)
      run.rails[name] = bytes - before;
  return run;
}

/// What the targets found.
Result<void> Session::end(Run& run, const Fanned& operations, std::uint32_t parts) {
  const Driver driver(engine_);  // What is still on its way to them.
  for (std::size_t i = 0; i < controls_.size(); ++i) {
    const auto ended = controls_[i].ask("end", {{"signals", operations.begun(i) * parts}});
    if (!ended) return fail(ended.error());
    const auto cpu = value_of<double>(*ended, "cpu_seconds");
    const auto checked = value_of<std::uint64_t>(*ended, "checked");
    const auto wrong = value_of<std::uint64_t>(*ended, "wrong");
    const auto first = value_of<std::string>(*ended, "first");
    if (!cpu || !checked || !wrong || !first)
      return fail(Code::protocol_mismatch, "the target did not say what it found");
    run.peer_cpu_seconds += *cpu;
    add({*checked, *wrong, *first}, "at the target, ", run.findings);
  }
  return {};
}

Result<Run> Session::move(const Point& point, const RunOptions& options,
                          const std::stop_token& stop) {
  const Work& work = point.work;
  const auto layout = lay_out(work);
  if (!layout) return fail(layout.error());
  const Direction direction = reads(work, 0) ? Direction::read : Direction::write;
  double ceiling = 0;
  std::vector<Region> regions;
  std::vector<std::unique_ptr<Operations>> windows;
  for (const Peer& peer : peers_) {
    auto region = Region::make(engine_, work.memory, layout->initiator_bytes);
    if (!region) return fail(std::move(region.error()));
    const auto stretches = options.verify ? before(work, *layout, Side::initiator, options.seed)
                                          : std::vector<Stretch>();
    if (auto filled = region->fill(stretches, stop); !filled)
      return fail(std::move(filled.error()));
    auto remote = engine_.lookup(peer, memory_name, Deadline::in(site_.timeout));
    if (!remote) return fail(std::move(remote.error()));
    auto transfers = Transfers::make(engine_, work, *layout, region->segment(), *remote,
                                     options.seed, site_.timeout);
    if (!transfers) return fail(std::move(transfers.error()));
    if (const auto path = engine_.explain(region->segment(), *remote, direction))
      ceiling = path->gbps;
    regions.push_back(std::move(*region));
    windows.push_back(std::move(*transfers));
  }
  Fanned all(std::move(windows));
  auto run = load(all, work, options, stop);
  if (!run) return run;
  run->ceiling_gbps = ceiling;
  run->bytes = run->operations * layout->operation_bytes;
  run->copies = all.copies();
  if (auto ended = end(*run, all, layout->parts); !ended) return fail(std::move(ended.error()));
  if (!options.verify) return run;
  const auto wanted = after(work, *layout, Side::initiator, options.seed);
  for (const Region& region : regions) {
    const auto found = region.check(wanted);
    if (!found) return fail(found.error());
    add(*found, "at this side, ", run->findings);
  }
  return run;
}

Result<Run> Session::talk(const Point& point, const RunOptions& options,
                          const std::stop_token& stop) {
  std::vector<std::unique_ptr<Operations>> windows;
  for (const Peer& peer : peers_)
    windows.push_back(
        std::make_unique<Messages>(engine_, peer, point.work, options.seed, site_.timeout));
  Fanned all(std::move(windows));
  auto run = load(all, point.work, options, stop);
  if (!run) return run;
  run->bytes = run->operations * point.work.size;
  for (const Peer& peer : peers_)
    if (auto last = engine_.send(peer, last_tag, {}, Deadline::in(site_.timeout)); !last)
      return fail(std::move(last.error()));
  if (auto ended = end(*run, all, 1); !ended) return fail(std::move(ended.error()));
  return run;
}

Result<Run> Session::measure(const Point& point, const RunOptions& options,
                             const std::stop_token& stop) {
  const std::stop_callback interrupt(stop, [this] { close_now(engine_); });
  const Json question{{"point", point}, {"seed", options.seed}, {"verify", options.verify}};
  for (Control& control : controls_)
    if (auto prepared = control.ask("prepare", question); !prepared)
      return fail(std::move(prepared.error()));
  return point.work.operation == Operation::message ? talk(point, options, stop)
                                                    : move(point, options, stop);
}

}  // namespace weft::perf
