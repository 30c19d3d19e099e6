// weft prefill: fills requests' blocks in its own cache and writes them into decode's.
#include <fmt/format.h>

#include <mutex>
#include <optional>

#include "common/crew.hpp"
#include "common/exchange.hpp"
#include "common/local_address.hpp"
#include "common/names.hpp"
#include "demo/commands.hpp"
#include "demo/progress_bar.hpp"
#include "demo/run_engine.hpp"

namespace weft::tool {
namespace {

/// Hands requests over, each on the thread that calls hand_over().
class Prefill {
 public:
  Prefill(Exchange& exchange, const PrefillOptions& options, PagedCache own, kv::Cache theirs,
          std::vector<kv::LayerRange> layers, std::stop_token stop)
      : exchange_(exchange),
        options_(options),
        own_(std::move(own)),
        theirs_(std::move(theirs)),
        layers_(std::move(layers)),
        what_{{options.cache.seed, 0},
              options.work.tokens,
              shared_by(own_.layout(), theirs_.layout(), own_.layout())},
        request_bytes_(bytes_of(own_.layout(), what_.shared, options.work.tokens)),
        stop_(std::move(stop)),
        bar_(request_bytes_ * options.work.requests, options.console.progress) {}

  Result<void> hand_over(std::uint64_t number);
  /// The path declared before the first transfer beside the ledger of all; `nics`: what these had
  /// counted then. Fails as explaining did.
  Result<Comparison> compare(const std::vector<NicCounters>& nics) const;
  std::uint64_t bytes() const noexcept { return request_bytes_ * options_.work.requests; }
  std::uint32_t groups() const noexcept { return static_cast<std::uint32_t>(layers_.size()); }
  const Measurement& measurement() const noexcept { return measurement_; }

 private:
  Result<void> check(const Granted& granted) const;
  Result<void> move(const BlockTable& blocks, const Granted& granted);
  Result<Prepared> prepare(const BlockTable& blocks, const Granted& granted, std::size_t group);
  void explain(const Remote& remote);
  Result<void> await_acknowledgement(Expectation& expected, std::uint64_t number);

  Exchange& exchange_;
  const PrefillOptions& options_;
  PagedCache own_;
  const kv::Cache theirs_;
  const std::vector<kv::LayerRange> layers_;
  const Expected what_;
  const std::uint64_t request_bytes_;
  const std::stop_token stop_;
  Measurement measurement_;
  std::once_flag explained_;
  std::optional<Result<Path>> path_;
  ProgressBar bar_;
};

Result<void> Prefill::hand_over(std::uint64_t number) {
  auto blocks = own_.allocate(what_.tokens, exchange_.deadline(), stop_);
  if (!blocks) return fail(std::move(blocks.error()));
  Expected what = what_;
  what.key.request = number;
  if (auto filled = own_.fill(*blocks, what, stop_); !filled) return filled;
  if (stop_.stop_requested()) return fail(Code::cancelled, "the run ends early");

  auto acknowledged = exchange_.peer().expect(acknowledgement_signal(number), 1);
  if (!acknowledged) return fail(std::move(acknowledged.error()));
  if (auto asked = exchange_.tell(tag_of(Topic::request), to_json(Request{number})); !asked)
    return asked;
  auto granted = exchange_.hear_document<Granted>(tag_of(Topic::granted, number));
  if (!granted) return fail(std::move(granted.error()));
  if (auto fits = check(*granted); !fits) return fits;
  if (auto moved = move(*blocks, *granted); !moved) return moved;
  if (auto heard = await_acknowledgement(*acknowledged, number); !heard) return heard;
  own_.blocks().free(*blocks);
  return {};
}

Result<void> Prefill::check(const Granted& granted) const {
  if (!granted.refusal.empty())
    return fail(Code::remote_failed, "decode gives no blocks: " + granted.refusal);
  if (granted.grants.size() == layers_.size() && granted.signals.size() == layers_.size() &&
      granted.blocks.size() == theirs_.layout().groups().size())
    return {};
  return fail(Code::protocol_mismatch,
              fmt::format("decode granted {} and announced {} layer groups in {} tables, where "
                          "there are {} in {}",
                          granted.grants.size(), granted.signals.size(), granted.blocks.size(),
                          layers_.size(), theirs_.layout().groups().size()));
}

Result<Prepared> Prefill::prepare(const BlockTable& blocks, const Granted& granted,
                                  std::size_t group) {
  auto remote = exchange_.peer().lookup(granted.grants[group], exchange_.deadline());
  if (!remote) return fail(std::move(remote.error()));
  if (options_.explain) std::call_once(explained_, [&] { explain(*remote); });
  auto plan = kv::plan(own_.cache(), blocks_of(blocks), theirs_, blocks_of(granted.blocks),
                       {0, options_.work.tokens}, layers_[group]);
  if (!plan) return fail(std::move(plan.error()));
  std::vector<Pair> pairs;
  pairs.reserve(plan->copies.size());
  for (const kv::Copy& copy : plan->copies)
    pairs.push_back({copy.src_offset, copy.dst_offset, copy.length});
  measurement_.pieces(plan->pieces);
  return exchange_.engine().prepare(own_.segment(), *remote, Direction::write, pairs);
}

/// The first transfer's path. The others go between the same two caches.
void Prefill::explain(const Remote& remote) {
  TransferOptions how;
  how.transport = options_.engine.transport;
  path_ = exchange_.engine().explain(own_.segment(), remote, Direction::write, how);
}

Result<Comparison> Prefill::compare(const std::vector<NicCounters>& nics) const {
  if (!*path_) return fail(path_->error());
  std::vector<NicCounters> grown;
  for (const NicCounters& now : exchange_.engine().nic_counters())
    for (const NicCounters& then : nics)
      if (then.nic == now.nic) grown.push_back(growth(then, now));
  return tool::compare(**path_, measurement_.ledger(), grown);
}

/// One layer group after the other, as the engine gives transfers that run at the same time equal
/// shares, and then the first layers would arrive hardly earlier than the last. While one group is
/// on its way the next is prepared.
Result<void> Prefill::move(const BlockTable& blocks, const Granted& granted) {
  auto prepared = prepare(blocks, granted, 0);
  const auto started = Clock::now();
  auto first = started;
  for (std::size_t group = 0; group < layers_.size(); ++group) {
    if (!prepared) return fail(std::move(prepared.error()));
    TransferOptions how;
    how.deadline = exchange_.deadline();
    how.signal = Signal{granted.signals[group]};
    how.transport = options_.engine.transport;
    auto transfer = exchange_.engine().submit(*prepared, std::move(how));
    if (!transfer) return fail(std::move(transfer.error()));
    if (group + 1 < layers_.size()) prepared = prepare(blocks, granted, group + 1);
    if (auto ended = transfer->wait(exchange_.deadline()); !ended) return ended;
    if (group == 0) first = Clock::now();
    const weft::Report report = transfer->report();
    measurement_.transfer(report);
    bar_.add(report.bytes);
  }
  measurement_.request(started, first, Clock::now());
  return {};
}

Result<void> Prefill::await_acknowledgement(Expectation& expected, std::uint64_t number) {
  auto signals = expected.wait(exchange_.deadline());
  if (!signals) return fail(std::move(signals.error()));
  if (signals->payloads.empty())
    return fail(Code::protocol_mismatch, "decode's acknowledgement carries nothing");
  auto heard = parse(signals->payloads.front()).and_then([](const Json& json) {
    return from_json<Acknowledgement>(json);
  });
  if (!heard) return fail(std::move(heard.error()));
  if (heard->request == number) return {};
  return fail(Code::protocol_mismatch,
              fmt::format("decode acknowledged request {} as {}", number, heard->request));
}

Result<Welcome> greet(Exchange& exchange, const PrefillOptions& options, const CacheShape& shape) {
  const WorkOptions& work = options.work;
  const Hello hello{
      shape, work.tokens, work.requests, work.concurrency, work.layer_groups, options.cache.seed};
  if (auto told = exchange.tell(tag_of(Topic::hello), to_json(hello)); !told)
    return fail(std::move(told.error()));
  auto welcome = exchange.hear_document<Welcome>(tag_of(Topic::welcome));
  if (welcome && !welcome->refusal.empty())
    return fail(Code::remote_failed,
                fmt::format("decode at {} refuses: {}", options.peer, welcome->refusal));
  return welcome;
}

/// Tells decode this side's figures and learns what decode found.
Result<void> trade_reports(Exchange& exchange, RunReport& report) {
  if (auto told = exchange.tell(tag_of(Topic::prefill_report), to_json(report)); !told) return told;
  auto theirs = exchange.hear_document<RunReport>(tag_of(Topic::decode_report));
  if (!theirs) return fail(std::move(theirs.error()));
  report.bytes_checked = theirs->bytes_checked;
  report.bytes_wrong = theirs->bytes_wrong;
  report.problem = theirs->problem;
  return {};
}

Result<RunReport> prefill(const PrefillOptions& options, Engine& engine, std::stop_source& ending) {
  const auto model = kv::find_model(*options.cache.model);
  if (!model) return fail(model.error());
  const WorkOptions& work = options.work;
  const CacheShape shape = options.cache.shape(
      *model, options.cache.dtype.value_or(kv::DType::bf16), work.tokens, work.concurrency);
  if (auto layout = shape.layout(); !layout) return fail(std::move(layout.error()));

  const Nanoseconds timeout = options.timeout;
  auto peer = engine.connect(options.peer, Deadline::in(timeout));
  if (!peer) return fail(std::move(peer.error()));
  Exchange exchange(engine, *peer, timeout);
  auto welcome = greet(exchange, options, shape);
  if (!welcome) return fail(std::move(welcome.error()));
  auto theirs = welcome->cache.layout().and_then(
      [](kv::Layout layout) { return kv::Cache::contiguous(std::move(layout)); });
  if (!theirs) return fail(std::move(theirs.error()));
  auto own = PagedCache::create(engine, shape, options.cache.memory, options.cache.seed,
                                ending.get_token());
  if (!own) return fail(std::move(own.error()));
  auto layers = kv::layer_ranges(own->layout(), theirs->layout(), work.layer_groups);
  if (!layers) return fail(std::move(layers.error()));
  if (layers->empty())
    return fail(Code::protocol_mismatch, "decode accepted a prefill that has nothing for it");

  const std::vector<NicCounters> nics = engine.nic_counters();
  const auto started = Clock::now();
  Prefill run(exchange, options, std::move(*own), std::move(*theirs), std::move(*layers),
              ending.get_token());
  auto done = in_parallel(
      work.requests, work.concurrency, [&](std::uint64_t number) { return run.hand_over(number); },
      [&](Error error) {
        ending.request_stop();
        return exchange.end_after(std::move(error));
      });
  if (!done) return fail(std::move(done.error()));

  RunReport report;
  report.command = "prefill";
  report.model = model->name;
  report.dtype = name_of(dtype_names, shape.options.dtype);
  report.memory = options.cache.memory;
  report.tokens = work.tokens;
  report.requests = work.requests;
  report.layer_groups = run.groups();
  report.bytes = run.bytes();
  report.total_seconds = std::chrono::duration<double>(Clock::now() - started).count();
  report.movement.route = peer->route_reason();
  run.measurement().into(report);
  if (options.explain) {
    auto comparison = run.compare(nics);
    if (!comparison) return fail(std::move(comparison.error()));
    report.comparison = std::move(*comparison);
  }
  if (auto traded = trade_reports(exchange, report); !traded)
    return fail(std::move(traded.error()));
  return report;
}

}  // namespace

int run_prefill(const PrefillOptions& options) {
  Config config = engine_config(options.engine);
  config.listen.clear();
  config.metrics_listen = options.metrics;
  if (config.rail_address.empty()) config.rail_address = local_address_towards(options.peer);
  return run_with_engine(
      "prefill", options.console, std::move(config), options.cache.memory,
      [&](Engine& engine, std::stop_source& ending) { return prefill(options, engine, ending); });
}

}  // namespace weft::tool
