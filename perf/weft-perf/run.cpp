#include "run.hpp"

#include "local_address.hpp"
#include "region.hpp"
#include "usage.hpp"

namespace weft::perf {
namespace {

Config initiator_config(const Site& site, const Point& point, const std::string& address) {
  Config config = data_config(site, point);
  config.listen.clear();
  if (config.rail_address.empty()) config.rail_address = tool::local_address_towards(address);
  return config;
}

/// Operations begun so far, counting those that it passes on.
class Counted final : public Operations {
 public:
  explicit Counted(Operations& of) : of_(of) {}
  Result<void> begin(std::uint32_t operation) override {
    ++begun;
    return of_.begin(operation);
  }
  Result<std::optional<Clock::time_point>> end_of(std::uint32_t operation) override {
    return of_.end_of(operation);
  }
  void wait(std::uint32_t operation, Deadline deadline) override { of_.wait(operation, deadline); }

  std::uint64_t begun = 0;

 private:
  Operations& of_;
};

}  // namespace

double Run::gigabytes_per_second() const {
  return seconds > 0 ? static_cast<double>(bytes) / seconds / 1e9 : 0;
}

double Run::operations_per_second() const {
  return seconds > 0 ? static_cast<double>(operations) / seconds : 0;
}

Result<Session> Session::open(Control& control, const Site& site, const Point& point) {
  const auto opened = control.ask("open", {{"point", point}});
  if (!opened) return fail(opened.error());
  const auto address = value_of<std::string>(*opened, "address");
  if (!address) return fail(address.error());
  auto engine = Engine::open(initiator_config(site, point, *address));
  if (!engine) return fail(std::move(engine.error()));
  auto peer = engine->connect(*address, Deadline::in(site.timeout));
  if (!peer) return fail(std::move(peer.error()));
  return Session(control, site, point, std::move(*engine), std::move(*peer));
}

std::string Session::provider() const {
  const auto names = peer_.rails();
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

/// Warms up, and measures.
Result<Run> Session::load(Operations& operations, const Work& work, const RunOptions& options,
                          const std::atomic<bool>& stop) {
  const auto once = [&](Length length, std::uint64_t seed) {
    return work.rate > 0 ? open_loop(operations, work, length, site_.timeout, seed, stop)
                         : closed_loop(operations, work, length, site_.timeout, stop);
  };
  // Every operation's bytes are looked at in the end, so each has to have been carried out.
  if (options.verify)
    if (auto all = closed_loop(operations, work, {site_.timeout, work.window}, site_.timeout, stop);
        !all)
      return fail(all.error());
  if (options.warm_up.count() > 0)
    if (auto warm = once({options.warm_up, 0}, options.seed); !warm) return fail(warm.error());
  if (auto marked = control_.ask("mark"); !marked) return fail(marked.error());
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

Result<void> Session::end(Run& run, std::uint64_t signals) {
  const auto ended = control_.ask("end", {{"signals", signals}});
  if (!ended) return fail(ended.error());
  const auto cpu = value_of<double>(*ended, "cpu_seconds");
  const auto checked = value_of<std::uint64_t>(*ended, "checked");
  const auto wrong = value_of<std::uint64_t>(*ended, "wrong");
  const auto first = value_of<std::string>(*ended, "first");
  if (!cpu || !checked || !wrong || !first)
    return fail(Code::protocol_mismatch, "the target did not say what it found");
  run.peer_cpu_seconds = *cpu;
  run.findings.checked += *checked;
  run.findings.wrong += *wrong;
  if (!first->empty()) run.findings.first = "at the target, " + *first;
  return {};
}

Result<Run> Session::move(const Point& point, const RunOptions& options,
                          const std::atomic<bool>& stop) {
  const Work& work = point.work;
  const auto layout = lay_out(work);
  if (!layout) return fail(layout.error());
  auto region = Region::make(engine_, work.memory, layout->initiator_bytes);
  if (!region) return fail(std::move(region.error()));
  fill(region->bytes(), options.verify ? before(work, *layout, Side::initiator, options.seed)
                                       : std::vector<Stretch>());
  auto remote = engine_.lookup(peer_, memory_name, Deadline::in(site_.timeout));
  if (!remote) return fail(std::move(remote.error()));
  auto transfers = Transfers::make(engine_, work, *layout, region->segment(), *remote, options.seed,
                                   site_.timeout);
  if (!transfers) return fail(std::move(transfers.error()));
  Counted counted(**transfers);
  auto run = load(counted, work, options, stop);
  if (!run) return run;
  run->bytes = run->operations * layout->operation_bytes;
  run->copies = (*transfers)->copies();
  const std::uint64_t signals =
      work.operation == Operation::signal ? counted.begun * layout->parts : 0;
  if (auto ended = end(*run, signals); !ended) return fail(std::move(ended.error()));
  if (!options.verify) return run;
  const Findings here = check(region->bytes(), after(work, *layout, Side::initiator, options.seed));
  run->findings.checked += here.checked;
  run->findings.wrong += here.wrong;
  if (run->findings.first.empty() && !here.first.empty())
    run->findings.first = "at this side, " + here.first;
  return run;
}

Result<Run> Session::talk(const Point& point, const RunOptions& options,
                          const std::atomic<bool>& stop) {
  Messages messages(engine_, peer_, point.work, options.seed, site_.timeout);
  auto run = load(messages, point.work, options, stop);
  if (!run) return run;
  run->bytes = run->operations * point.work.size;
  if (auto last = engine_.send(peer_, last_tag, {}, Deadline::in(site_.timeout)); !last)
    return fail(std::move(last.error()));
  if (auto ended = end(*run, 0); !ended) return fail(std::move(ended.error()));
  return run;
}

Result<Run> Session::measure(const Point& point, const RunOptions& options,
                             const std::atomic<bool>& stop) {
  const auto prepared = control_.ask(
      "prepare", {{"point", point}, {"seed", options.seed}, {"verify", options.verify}});
  if (!prepared) return fail(prepared.error());
  return point.work.operation == Operation::message ? talk(point, options, stop)
                                                    : move(point, options, stop);
}

}  // namespace weft::perf
