#include "target.hpp"

#include <fmt/format.h>

#include <future>
#include <optional>

#include "machine_facts.hpp"
#include "operations.hpp"
#include "region.hpp"
#include "socket_stream.hpp"
#include "usage.hpp"
#include "workload.hpp"

namespace weft::perf {
namespace {

constexpr auto closing_time = std::chrono::seconds(5);

/// Answers messages until the last one, and compares them with what they should be.
Result<Findings> answer_messages(Engine& engine, const Peer& peer, const Work& work,
                                 std::uint64_t seed, bool verify) {
  Findings findings;
  Blob wanted(work.size);
  const auto patience = Deadline::furthest;  // The peer's death ends it earlier.
  for (;;) {
    const auto message = engine.recv(peer, 0, 0, Deadline::in(patience));
    if (!message) return fail(message.error());
    if (message->tag == last_tag) return findings;
    if (verify) {
      const Stretch whole{0, work.size, seed, message->tag * work.size};
      const Findings found =
          message->bytes.size() == work.size
              ? check(message->bytes, std::span(&whole, 1))
              : Findings{0, work.size, fmt::format("a message of {} bytes", message->bytes.size())};
      findings.checked += found.checked;
      findings.wrong += found.wrong;
      if (findings.first.empty()) findings.first = found.first;
    }
    if (auto sent = engine.send(peer, answer_tag | message->tag, {}, Deadline::in(patience)); !sent)
      return fail(sent.error());
  }
}

std::string without_brackets(const std::string& host) {
  return host.starts_with('[') ? host.substr(1, host.size() - 2) : host;
}

/// Where a plain TCP stream comes in: where the rails are.
std::string stream_address(const Site& site) {
  return site.rail_address.empty() ? without_brackets(host_of(site.listen)) : site.rail_address;
}

/// Where peers reach that.
std::string advertised_stream_address(const Site& site) {
  return site.advertise.empty() ? stream_address(site) : without_brackets(host_of(site.advertise));
}

/// One run, as this side sees it.
struct TargetRun {
  Work work;
  Workload load;
  std::uint64_t seed = 0;
  bool verify = false;
  std::optional<Region> region;
  std::future<Result<Findings>> messages;
  double cpu_before = 0;
};

/// What one initiator has asked for so far.
class Service {
 public:
  Service(const Site& site, const std::function<void(std::span<std::byte>)>& before_check,
          std::stop_token stop)
      : site_(site), before_check_(before_check), stop_(std::move(stop)) {}
  ~Service() { close(); }

  Result<Json> answer(const Json& question);

 private:
  Result<Json> open(const Json& question);
  Result<Json> prepare(const Json& question);
  Result<Json> grant_memory();
  Result<Json> end(const Json& question);
  Result<Findings> look(const Json& question);
  Result<Json> begin_stream(const Json& question);
  Result<Json> end_stream();
  void close();

  Deadline deadline() const { return Deadline::in(site_.timeout); }

  const Site& site_;
  const std::function<void(std::span<std::byte>)>& before_check_;
  const std::stop_token stop_;
  Point point_;
  std::optional<Engine> engine_;
  std::optional<std::stop_callback<std::function<void()>>> interrupt_;
  Driver driver_;
  std::optional<Peer> peer_;
  std::optional<TargetRun> run_;
  std::optional<StreamSink> stream_;
};

Result<Json> Service::answer(const Json& question) {
  const auto task = value_of<std::string>(question, "task");
  const auto version = value_of<int>(question, "version");
  if (!task || !version || *version != control_version)
    return fail(Code::protocol_mismatch,
                fmt::format("it speaks version {} of weft-perf's protocol", control_version));
  if (*task == "open") return open(question);
  if (*task == "prepare") return prepare(question);
  if (*task == "mark" && run_) return run_->cpu_before = cpu_seconds(), Json::object();
  if (*task == "end" && run_) return end(question);
  if (*task == "facts") return Json{{"machine", machine_facts()}};
  if (*task == "begin stream") return begin_stream(question);
  if (*task == "end stream" && stream_) return end_stream();
  if (*task == "close") return close(), Json::object();
  return fail(Code::protocol_mismatch, fmt::format("it can't do '{}' now", *task));
}

Result<Json> Service::open(const Json& question) {
  close();
  auto point = value_of<Point>(question, "point");
  if (!point) return fail(std::move(point.error()));
  if (auto checked = check(*point); !checked) return fail(std::move(checked.error()));
  auto engine = Engine::open(data_config(site_, *point));
  if (!engine) return fail(std::move(engine.error()));
  point_ = std::move(*point);
  engine_.emplace(std::move(*engine));
  interrupt_.emplace(stop_, [this] { close_now(*engine_); });
  driver_ = Driver(*engine_);
  return Json{{"address", engine_->address()}};
}

Result<Json> Service::prepare(const Json& question) {
  auto point = value_of<Point>(question, "point");
  const auto seed = value_of<std::uint64_t>(question, "seed");
  const auto verify = value_of<bool>(question, "verify");
  if (!point || !seed || !verify || !engine_ || run_)
    return fail(Code::protocol_mismatch, "it was asked for something else");
  if (auto checked = check(*point); !checked) return fail(std::move(checked.error()));
  // Sizes come from outside: they are looked at before anything is waited for, or taken.
  const bool moves = point->work.operation != Operation::message;
  auto load = moves ? lay_out(point->work) : Workload();
  if (!load) return fail(std::move(load.error()));
  if (auto room = check_room(load->target_bytes); !room) return fail(std::move(room.error()));
  if (!peer_) {
    auto peer = engine_->accept(deadline());
    if (!peer) return fail(std::move(peer.error()));
    peer_.emplace(std::move(*peer));
  }
  run_.emplace();
  run_->work = point->work;
  run_->seed = *seed;
  run_->verify = *verify;
  run_->load = std::move(*load);
  if (moves) return grant_memory();
  run_->messages = std::async(std::launch::async, [this] {
    return answer_messages(*engine_, *peer_, run_->work, run_->seed, run_->verify);
  });
  return Json::object();
}

Result<Json> Service::grant_memory() {
  auto region = Region::make(*engine_, run_->work.peer_memory, run_->load.target_bytes);
  if (!region) return fail(std::move(region.error()));
  run_->region.emplace(std::move(*region));
  const auto stretches = run_->verify ? before(run_->work, run_->load, Side::target, run_->seed)
                                      : std::vector<Stretch>();
  if (auto filled = run_->region->fill(stretches, stop_); !filled)
    return fail(std::move(filled.error()));
  return run_->region->segment()
      .grant({}, Rights::read_write)
      .and_then([&](const Grant& grant) { return engine_->publish(memory_name, grant); })
      .map([] { return Json::object(); });
}

/// At what came.
Result<Findings> Service::look(const Json& question) {
  if (run_->work.operation == Operation::message) {
    if (run_->messages.wait_for(site_.timeout) != std::future_status::ready)
      return fail(Code::timed_out, "the last message has not come");
    return run_->messages.get();
  }
  if (run_->work.operation == Operation::signal) {
    const auto count = value_of<std::uint64_t>(question, "signals");
    if (!count) return fail(count.error());
    auto signals = engine_->expect(*peer_, run_->seed, std::max<std::uint64_t>(*count, 1))
                       .and_then([&](Expectation all) { return all.wait(deadline()); });
    if (!signals) return fail(std::move(signals.error()));
  }
  if (!run_->verify) return Findings{};
  return run_->region->check(after(run_->work, run_->load, Side::target, run_->seed),
                             before_check_);
}

Result<Json> Service::end(const Json& question) {
  const double cpu = cpu_seconds() - run_->cpu_before;
  const auto found = look(question);
  if (!found) return fail(found.error());
  if (run_->region)
    if (auto released = run_->region->release(deadline()); !released)
      return fail(std::move(released.error()));
  run_.reset();
  return Json{{"cpu_seconds", cpu},
              {"checked", found->checked},
              {"wrong", found->wrong},
              {"first", found->first}};
}

Result<Json> Service::begin_stream(const Json& question) {
  const auto bytes = value_of<std::uint64_t>(question, "bytes");
  if (!bytes || *bytes < 1 || *bytes > (16 << 20))
    return fail(Code::invalid_argument, "it reads 1 byte to 16 MiB at a time");
  auto sink = StreamSink::open(stream_address(site_), *bytes, site_.timeout);
  if (!sink) return fail(std::move(sink.error()));
  stream_.emplace(std::move(*sink));
  return Json{{"address", advertised_stream_address(site_)}, {"port", stream_->port()}};
}

Result<Json> Service::end_stream() {
  const auto bytes = stream_->finish();
  stream_.reset();
  if (!bytes) return fail(bytes.error());
  return Json{{"bytes", *bytes}};
}

void Service::close() {
  // Ends what waits for messages.
  if (engine_) (void)engine_->close(Deadline::in(closing_time));
  if (run_ && run_->messages.valid()) run_->messages.wait();
  if (run_ && run_->region) (void)run_->region->release(Deadline::in(closing_time));
  run_.reset();
  peer_.reset();
  driver_ = {};
  interrupt_.reset();
  engine_.reset();
}

}  // namespace

Target::Target(const Site& site, Engine engine,
               std::function<void(std::span<std::byte>)> before_check)
    : site_(site),
      engine_(std::make_unique<Engine>(std::move(engine))),
      driver_(*engine_),
      before_check_(std::move(before_check)) {}

Result<Target> Target::open(const Site& site,
                            std::function<void(std::span<std::byte>)> before_check) {
  auto engine = Engine::open(control_config(site));
  if (!engine) return fail(std::move(engine.error()));
  return Target(site, std::move(*engine), std::move(before_check));
}

Result<void> Target::serve(Deadline deadline) {
  auto peer = engine_->accept(deadline);
  if (!peer) return fail(std::move(peer.error()));
  tool::Exchange exchange(*engine_, std::move(*peer), site_.timeout);
  Service service(site_, before_check_, stop_.get_token());
  for (;;) {
    auto question = exchange.hear(question_tag);
    // A run may be longer than any wait. Silence is not its end, but the peer's is.
    if (!question && question.error().code() == Code::timed_out && exchange.peer().up()) continue;
    if (!question && question.error().code() == Code::peer_down) return {};
    if (!question) return fail(std::move(question.error()));
    const auto answer = service.answer(*question);
    if (auto told =
            exchange.tell(response_tag, answer ? *answer : failure_document(answer.error()));
        !told && exchange.peer().up())
      return told;
  }
}

void Target::interrupt() {
  stop_.request_stop();
  (void)engine_->close(Deadline::in(closing_time));
}

}  // namespace weft::perf
