// weft decode: grants blocks of its cache to prefill, and checks what arrives in them.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "common/crew.hpp"
#include "common/exchange.hpp"
#include "common/names.hpp"
#include "common/options.hpp"
#include "demo/commands.hpp"
#include "demo/progress_bar.hpp"
#include "demo/run_engine.hpp"
#include "look/commands.hpp"

namespace weft::tool {
namespace {

/// Takes requests in, each on the thread that calls take_in().
class Decode {
 public:
  Decode(Exchange& exchange, const Hello& hello, PagedCache own, const kv::Layout& theirs,
         const std::string& progress, std::stop_token stop)
      : exchange_(exchange),
        own_(std::move(own)),
        requests_(hello.requests),
        layers_(kv::layer_ranges(theirs, own_.layout(), hello.layer_groups).value()),
        what_{{hello.seed, 0}, hello.tokens, shared_by(theirs, own_.layout(), own_.layout())},
        request_bytes_(bytes_of(own_.layout(), what_.shared, hello.tokens)),
        bytes_(request_bytes_ * hello.requests),
        stop_(std::move(stop)),
        bar_(bytes_, progress) {}

  /// One request, whichever prefill asks for next.
  Result<void> take_in();
  /// At the end all blocks are free again, and nothing but canaries may be left.
  Result<void> check_rest() {
    return own_.verify_canary(stop_).map(
        [&](const Findings& findings) { measurement_.findings(findings); });
  }

  std::uint64_t bytes() const noexcept { return bytes_; }
  std::uint32_t groups() const noexcept { return static_cast<std::uint32_t>(layers_.size()); }
  const Measurement& measurement() const noexcept { return measurement_; }

 private:
  /// The promise to prefill for one request.
  struct Promise {
    Granted granted;
    std::vector<Grant> grants;
    std::vector<Expectation> signals;
  };
  Result<Promise> promise(std::uint64_t number, const BlockTable& blocks);
  Result<void> await(Promise& promise);
  Result<void> revoke(Promise& promise);
  Result<Findings> check(std::uint64_t number, const BlockTable& blocks) const;
  Result<void> acknowledge(std::uint64_t number, const BlockTable& blocks,
                           const Findings& findings);

  Exchange& exchange_;
  PagedCache own_;
  const std::uint64_t requests_;
  const std::vector<kv::LayerRange> layers_;
  const Expected what_;
  const std::uint64_t request_bytes_;
  const std::uint64_t bytes_;
  const std::stop_token stop_;
  Measurement measurement_;
  ProgressBar bar_;
};

Result<void> Decode::take_in() {
  // Several threads hear this tag, which is well as long as a request fits into one message.
  auto request = exchange_.hear_document<Request>(tag_of(Topic::request));
  if (!request) return fail(std::move(request.error()));
  const std::uint64_t number = request->number;
  if (number >= requests_)
    return fail(Code::protocol_mismatch,
                fmt::format("prefill asks for request {} of {}", number, requests_));
  auto blocks = own_.allocate(what_.tokens, exchange_.deadline(), stop_);
  if (!blocks) return fail(std::move(blocks.error()));

  // Finds writes into them while they were free.
  auto findings = check(number, *blocks);
  if (!findings) return fail(std::move(findings.error()));
  auto promised = promise(number, *blocks);
  if (!promised) return fail(std::move(promised.error()));
  if (auto told = exchange_.tell(tag_of(Topic::granted, number), to_json(promised->granted)); !told)
    return told;
  if (auto arrived = await(*promised); !arrived) return arrived;
  if (auto revoked = revoke(*promised); !revoked) return revoked;

  Expected what = what_;
  what.key.request = number;
  const auto found = own_.verify(*blocks, what, stop_);
  // Not all was looked at.
  if (stop_.stop_requested()) return fail(Code::cancelled, "the run ends early");
  if (!found) return fail(found.error());
  findings->add(*found);
  measurement_.findings(*findings);
  if (auto cleared = own_.clear(*blocks, stop_); !cleared) return cleared;
  own_.blocks().free(*blocks);
  return acknowledge(number, *blocks, *findings);
}

/// Nothing of a free block may have been written.
Result<Findings> Decode::check(std::uint64_t number, const BlockTable& blocks) const {
  Expected nothing = what_;
  nothing.key.request = number;
  nothing.tokens = 0;
  return own_.verify(blocks, nothing, stop_).map([](Findings findings) {
    findings.checked = 0;  // They count when they hold something.
    return findings;
  });
}

Result<Decode::Promise> Decode::promise(std::uint64_t number, const BlockTable& blocks) {
  Promise promise;
  promise.granted.blocks = blocks;
  for (std::size_t group = 0; group < layers_.size(); ++group) {
    const std::uint64_t id = layer_group_signal(number, group);
    auto signal = exchange_.peer().expect(id, 1);
    if (!signal) return fail(std::move(signal.error()));
    promise.signals.push_back(std::move(*signal));
    promise.granted.signals.push_back(id);

    auto ranges = own_.ranges(blocks, layers_[group]);
    if (!ranges) return fail(std::move(ranges.error()));
    // Decode waits for the writes below the grant no longer than that.
    const auto longest = exchange_.timeout() * static_cast<Nanoseconds::rep>(layers_.size() + 1);
    auto grant = own_.segment().grant(*ranges, Rights::write, longest);
    if (!grant) return fail(std::move(grant.error()));
    const std::string name = fmt::format("request {} layers {}", number, group);
    if (auto published = exchange_.engine().publish(name, *grant); !published)
      return fail(std::move(published.error()));
    promise.grants.push_back(std::move(*grant));
    promise.granted.grants.push_back(name);
  }
  return promise;
}

Result<void> Decode::await(Promise& promise) {
  const auto started = Clock::now();
  auto first = started;
  for (std::size_t group = 0; group < promise.signals.size(); ++group) {
    if (auto arrived = promise.signals[group].wait(exchange_.deadline()); !arrived)
      return fail(std::move(arrived.error()));
    if (group == 0) first = Clock::now();
    // As if all groups had as many bytes.
    const std::uint64_t groups = promise.signals.size();
    bar_.add(request_bytes_ * (group + 1) / groups - request_bytes_ * group / groups);
  }
  measurement_.request(started, first, Clock::now());
  return {};
}

/// From here on prefill can't write to these blocks any more.
Result<void> Decode::revoke(Promise& promise) {
  for (Grant& grant : promise.grants) {
    auto revoked = grant.revoke(exchange_.deadline());
    if (!revoked) return fail(std::move(revoked.error()));
    if (*revoked == Revoked::quarantined)
      return fail(Code::quarantined, "prefill did not confirm in time that it stopped writing");
  }
  return {};
}

Result<void> Decode::acknowledge(std::uint64_t number, const BlockTable& blocks,
                                 const Findings& findings) {
  std::uint64_t count = 0;
  for (const auto& group : blocks) count += group.size();
  const Blob bytes = to_bytes(to_json(Acknowledgement{number, count, findings.first}));
  return exchange_.peer().signal({acknowledgement_signal(number), bytes}, exchange_.deadline());
}

/// Why decode does not want to work with this prefill, or nothing.
std::string refusal_of(const DecodeOptions& options, const Hello& hello) {
  const std::string_view theirs = hello.cache.model.name;
  if (options.cache.model) {
    const auto own = kv::find_model(*options.cache.model);
    if (own && own->name != theirs)
      return fmt::format("decode serves {} and prefill {}: both need the same model", own->name,
                         theirs);
  }
  const kv::DType dtype = hello.cache.options.dtype;
  if (options.cache.dtype && *options.cache.dtype != dtype)
    return fmt::format("decode's cache holds {} and prefill's {}: both need the same element type",
                       name_of(dtype_names, *options.cache.dtype), name_of(dtype_names, dtype));
  if (options.requests && *options.requests != hello.requests)
    return fmt::format("decode expects {} requests and prefill has {}", *options.requests,
                       hello.requests);
  return {};
}

/// The cache for what prefill announced, or why there is none.
Result<PagedCache> make_cache(const DecodeOptions& options, const Hello& hello,
                              const CacheShape& shape, Engine& engine,
                              const std::stop_token& stop) {
  if (const std::string refusal = refusal_of(options, hello); !refusal.empty())
    return fail(Code::unsupported, refusal);
  auto own = shape.layout();
  if (!own) return fail(std::move(own.error()));
  auto theirs = hello.cache.layout();
  if (!theirs) return fail(std::move(theirs.error()));
  auto sources = kv::source_ranks({&*theirs, 1}, *own);
  if (!sources) return fail(std::move(sources.error()));
  const kv::Share tp = hello.cache.options.parallel.tp, pp = hello.cache.pp;
  const bool sends = std::any_of(sources->begin(), sources->end(),
                                 [&](const kv::Rank& rank) { return rank.tp == tp.rank; });
  if (!sends)
    return fail(
        Code::unsupported,
        fmt::format("prefill's rank {} of {} in stage {} of {} has nothing for decode's rank "
                    "{} of {} in stage {} of {}",
                    tp.rank, tp.size, pp.rank, pp.size, shape.options.parallel.tp.rank,
                    shape.options.parallel.tp.size, shape.pp.rank, shape.pp.size));
  if (shape.blocks_for(hello.tokens) > shape.options.blocks)
    return fail(Code::out_of_memory,
                fmt::format("a request of {} tokens needs {} blocks and decode's cache has {}",
                            hello.tokens, shape.blocks_for(hello.tokens), shape.options.blocks));
  return PagedCache::create(engine, shape, options.cache.memory, options.cache.seed + 1, stop);
}

/// Tells prefill what was found and learns how the bytes came.
Result<void> answer_report(Exchange& exchange, RunReport& report) {
  auto theirs = exchange.hear_document<RunReport>(tag_of(Topic::prefill_report));
  if (!theirs) return fail(std::move(theirs.error()));
  const std::string route = std::move(report.movement.route);
  report.movement = std::move(theirs->movement);
  report.movement.route = route;
  auto told = exchange.tell(tag_of(Topic::decode_report), to_json(report));
  if (told) exchange.wait_for_goodbye(closing_time);
  return told;
}

Result<RunReport> serve(const DecodeOptions& options, Exchange& exchange,
                        std::stop_source& ending) {
  auto hello = exchange.hear_document<Hello>(tag_of(Topic::hello));
  if (!hello) return fail(std::move(hello.error()));
  const CacheShape shape = options.cache.shape(hello->cache.model, hello->cache.options.dtype,
                                               hello->tokens, hello->concurrency);
  auto own = make_cache(options, *hello, shape, exchange.engine(), ending.get_token());
  const Welcome welcome{own ? "" : sentence(own.error()), shape};
  if (auto told = exchange.tell(tag_of(Topic::welcome), to_json(welcome)); !told)
    return fail(std::move(told.error()));
  if (!own) {
    exchange.wait_for_goodbye(closing_time);
    return fail(std::move(own.error()));
  }

  const auto started = Clock::now();
  Decode run(exchange, *hello, std::move(*own), hello->cache.layout().value(),
             options.console.progress, ending.get_token());
  auto done = in_parallel(
      hello->requests, hello->concurrency, [&](std::uint64_t) { return run.take_in(); },
      [&](Error error) {
        ending.request_stop();
        return exchange.end_after(std::move(error));
      });
  if (!done) return fail(std::move(done.error()));
  if (auto checked = run.check_rest(); !checked) return fail(std::move(checked.error()));

  RunReport report;
  report.command = "decode";
  report.model = shape.model.name;
  report.dtype = name_of(dtype_names, shape.options.dtype);
  report.memory = options.cache.memory;
  report.tokens = hello->tokens;
  report.requests = hello->requests;
  report.layer_groups = run.groups();
  report.bytes = run.bytes();
  report.total_seconds = std::chrono::duration<double>(Clock::now() - started).count();
  report.movement.route = exchange.peer().route_reason();
  run.measurement().into(report);
  if (auto answered = answer_report(exchange, report); !answered)
    return fail(std::move(answered.error()));
  return report;
}

Result<void> announce(const DecodeOptions& options, const Engine& engine) {
  if (auto told = tell_ready(options.ready_fd, engine.address()); !told) return told;
  if (!options.console.json) print(fmt::format("weft decode: listening at {}\n", engine.address()));
  return {};
}

Result<RunReport> decode(const DecodeOptions& options, Engine& engine, std::stop_source& ending) {
  if (auto announced = announce(options, engine); !announced)
    return fail(std::move(announced.error()));
  const Nanoseconds timeout = options.timeout;
  const Deadline patience = Deadline::in(timeout);
  auto peer = engine.accept(patience);
  while (peer && peer->name().starts_with(explainer_prefix)) peer = engine.accept(patience);
  if (!peer) return fail(std::move(peer.error()));
  Exchange exchange(engine, std::move(*peer), timeout);
  return serve(options, exchange, ending);
}

}  // namespace

int run_decode(const DecodeOptions& options) {
  Config config = engine_config(options.engine);
  config.listen = options.listen;
  config.advertise = options.advertise;
  config.metrics_listen = options.metrics;
  config.allow_unauthenticated_network = options.allow_unauthenticated_network;
  return run_with_engine(
      "decode", options.console, std::move(config), options.cache.memory,
      [&](Engine& engine, std::stop_source& ending) { return decode(options, engine, ending); });
}

}  // namespace weft::tool
