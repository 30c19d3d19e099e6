#include "sides/target.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <future>
#include <map>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include "baseline/disk_baseline.hpp"
#include "baseline/raw_baseline.hpp"
#include "baseline/socket_stream.hpp"
#include "load/operations.hpp"
#include "protocol/machine_facts.hpp"
#include "raw/usage.hpp"
#include "sides/remote_initiator.hpp"
#include "workload/region.hpp"
#include "workload/workload.hpp"

namespace weft::perf {
namespace {

constexpr auto closing_time = std::chrono::seconds(5);

/// Stops what is under way for a peer when that has gone, as it may take an hour.
class Watch {
 public:
  explicit Watch(const Peer& peer)
      : peer_(peer), thread_([this] {
          if (auto never = peer_.expect(no_signal, 1))
            (void)never->wait(Deadline::in(Deadline::furthest));
          end();
        }) {}
  ~Watch() { (void)peer_.disconnect(); }
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  void end() const { stop_.request_stop(); }
  std::stop_token token() const { return stop_.get_token(); }

 private:
  const Peer peer_;
  mutable std::stop_source stop_;
  std::jthread thread_;
};

/// Answers messages until the last one, and compares them with what they should be.
Result<Findings> answer_messages(const Peer& peer, const Work& work, std::uint64_t seed,
                                 bool verify) {
  Findings findings;
  Blob wanted(work.size);
  const auto patience = Deadline::furthest;  // The peer's death ends it earlier.
  for (;;) {
    const auto message = peer.recv(0, 0, Deadline::in(patience));
    if (!message) return fail(message.error());
    if (message->tag == last_tag) return findings;
    if (verify) {
      const Stretch whole{0, work.size, seed, message->tag * work.size};
      findings.add(message->bytes.size() == work.size
                       ? check(message->bytes, std::span(&whole, 1))
                       : Findings{0, work.size,
                                  fmt::format("a message of {} bytes", message->bytes.size())});
    }
    if (auto sent = peer.send(answer_tag | message->tag, {}, Deadline::in(patience)); !sent)
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

/// What one initiator has here during a run.
struct Guest {
  Peer peer;
  std::uint64_t seed = 0;
  std::optional<Region> region = {};
  std::future<Result<Findings>> messages = {};
};

/// One run, as this side sees it.
struct TargetRun {
  Work work;
  Workload load;
  bool verify = false;
  std::vector<Guest> guests;          // One for each initiator.
  std::unique_ptr<CpuMark> cpu = {};  // From when the load is measured.
};

/// What has been asked for so far by the one that measures.
class Service {
 public:
  Service(const Site& site, const std::function<void(std::span<std::byte>)>& before_check,
          std::stop_token stop)
      : site_(site),
        before_check_(before_check),
        stop_(std::move(stop)),
        raw_(stop_),
        initiator_(site_, stop_) {}
  ~Service() { close(); }

  Result<Json> answer(const Json& question);

 private:
  Result<Json> open(const Json& question);
  Result<Json> prepare(const Json& question);
  Result<std::vector<Guest>> guests_of(const std::vector<std::string>& initiators,
                                       std::uint64_t seed);
  Result<Peer> guest(const std::string& name, Deadline until);
  void note_ends();
  Result<void> grant_memory(std::uint32_t initiator);
  void answer_messages_of(Guest& guest);
  Result<Json> mark(const Json& question);
  Result<Json> end(const Json& question);
  Result<Findings> look(Guest& guest, std::uint64_t transfers, Deadline until);
  Result<Findings> look(const std::vector<std::uint64_t>& transfers, Deadline until);
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
  std::map<std::string, Error> ended_;  // initiators that have met this side's engine, and why
  std::optional<TargetRun> run_;
  std::optional<StreamSink> stream_;
  RawService raw_;
  InitiatorService initiator_;
};

Result<Json> Service::answer(const Json& question) {
  const auto task = value_of<std::string>(question, "task");
  const auto version = value_of<int>(question, "version");
  if (!task || !version || *version != control_version)
    return fail(Code::protocol_mismatch,
                fmt::format("it speaks version {} of weft-perf's protocol", control_version));
  if (*task == "open") return open(question);
  if (*task == "prepare") return prepare(question);
  if (*task == "mark" && run_) return mark(question);
  if (*task == "end" && run_) return end(question);
  if (*task == "facts") return Json{{"machine", machine_facts()}};
  if (*task == "begin stream") return begin_stream(question);
  if (*task == "end stream" && stream_) return end_stream();
  if (*task == "raw" && engine_) return raw_.answer(question, *engine_);
  if (*task == "disk") return answer_disk(site_, question, stop_);
  if (*task == "initiate") return initiator_.answer(question);
  if (*task == "close") return close(), Json::object();
  return fail(Code::protocol_mismatch, fmt::format("it can't do '{}' now", *task));
}

Result<Json> Service::open(const Json& question) {
  close();
  auto point = value_of<Point>(question, "point");
  if (!point) return fail(std::move(point.error()));
  if (auto checked = check(*point); !checked) return fail(std::move(checked.error()));
  auto config = data_config(site_, *point, point->work.peer_memory);
  if (!config) return fail(config.error());
  config->peer_events = true;
  auto engine = Engine::open(*config);
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
  const auto initiators = value_of<std::vector<std::string>>(question, "initiators");
  if (!point || !seed || !verify || !initiators || !engine_ || run_)
    return fail(Code::protocol_mismatch, "it was asked for something else");
  if (auto checked = check(*point); !checked) return fail(std::move(checked.error()));
  if (auto lent = check_lent(site_, point->work.peer_memory); !lent)
    return fail(std::move(lent.error()));
  if (initiators->size() != point->initiators)
    return fail(Code::protocol_mismatch, "it was not told of every initiator");
  // Sizes come from outside: they are looked at before anything is waited for, or taken.
  const bool moves = point->work.operation != Operation::message;
  auto load = moves ? lay_out(point->work) : Workload();
  if (!load) return fail(std::move(load.error()));
  if (auto room = check_room(load->target_bytes * point->initiators); !room)
    return fail(std::move(room.error()));
  auto guests = guests_of(*initiators, *seed);
  if (!guests) return fail(std::move(guests.error()));
  run_.emplace(TargetRun{std::move(point->work), std::move(*load), *verify, std::move(*guests)});
  for (std::uint32_t i = 0; i < point->initiators; ++i) {
    if (!moves)
      answer_messages_of(run_->guests[i]);
    else if (auto granted = grant_memory(i); !granted)
      return fail(std::move(granted.error()));
  }
  return Json::object();
}

/// All have met this side's engine, in any order.
Result<std::vector<Guest>> Service::guests_of(const std::vector<std::string>& initiators,
                                              std::uint64_t seed) {
  std::vector<Guest> guests;
  const Deadline until = deadline();
  for (const std::string& name : initiators) {
    const auto peer = guest(name, until);
    if (!peer) return fail(peer.error());
    guests.push_back({*peer, seed_of(seed, static_cast<std::uint32_t>(guests.size()))});
  }
  return guests;
}

/// As soon as it is up. One that was up and has ended does not come back.
Result<Peer> Service::guest(const std::string& name, Deadline until) {
  constexpr auto look = std::chrono::milliseconds(50);
  for (;;) {
    auto peer = engine_->peer(name, Deadline::at(std::min(until.when(), Clock::now() + look)));
    if (peer || peer.error().code() != Code::timed_out) return peer;
    note_ends();
    if (const auto end = ended_.find(name); end != ended_.end())
      return fail(Error(end->second.code(),
                        fmt::format("an initiator's engine ended before the run: {}{}",
                                    end->second.message(),
                                    end->second.code() == Code::peer_down
                                        ? " (WEFT_DEATH_AFTER sets how long one may be silent)"
                                        : ""))
                      .with_peer(name));
    if (until.passed())
      return fail(Error(Code::timed_out,
                        fmt::format("an initiator's engine has not come within {:g} s (--timeout)",
                                    std::chrono::duration<double>(site_.timeout).count()))
                      .with_peer(name));
  }
}

void Service::note_ends() {
  std::array<Event, 16> events;
  while (const std::size_t count = engine_->poll(events))
    for (const Event& event : std::span(events).first(count))
      if (event.kind == Event::Kind::peer_down && event.error)
        ended_.insert_or_assign(event.peer, *event.error);
}

Result<void> Service::grant_memory(std::uint32_t initiator) {
  Guest& guest = run_->guests[initiator];
  auto region = Region::make(*engine_, run_->work.peer_memory, run_->load.target_bytes);
  if (!region) return fail(std::move(region.error()));
  guest.region.emplace(std::move(*region));
  const auto stretches = run_->verify ? before(run_->work, run_->load, Side::target, guest.seed)
                                      : std::vector<Stretch>();
  if (auto filled = guest.region->fill(stretches, stop_); !filled)
    return fail(std::move(filled.error()));
  return guest.region->segment().grant({}, Rights::read_write).and_then([&](const Grant& grant) {
    return engine_->publish(memory_name(initiator), grant);
  });
}

void Service::answer_messages_of(Guest& guest) {
  guest.messages = std::async(std::launch::async, [this, &guest] {
    return answer_messages(guest.peer, run_->work, guest.seed, run_->verify);
  });
}

/// At what came from one initiator.
Result<Findings> Service::look(Guest& guest, std::uint64_t transfers, Deadline until) {
  if (run_->work.operation == Operation::message) {
    if (guest.messages.wait_for(until.left()) != std::future_status::ready)
      return fail(Code::timed_out, "the last message has not come");
    return guest.messages.get();
  }
  if (run_->work.operation == Operation::signal && transfers > 0) {
    auto signals = guest.peer.expect(guest.seed, transfers).and_then([&](Expectation all) {
      return all.wait(until);
    });
    if (!signals) return fail(std::move(signals.error()));
  }
  if (!run_->verify) return Findings{};
  return guest.region->check(after(run_->work, run_->load, Side::target, guest.seed),
                             before_check_);
}

Result<Findings> Service::look(const std::vector<std::uint64_t>& transfers, Deadline until) {
  Findings all;
  for (std::size_t i = 0; i < run_->guests.size(); ++i) {
    const auto found = look(run_->guests[i], transfers[i], until);
    if (!found) return fail(found.error());
    all.add(*found, run_->guests.size() > 1 ? fmt::format("initiator {}'s ", i) : "");
  }
  return all;
}

Result<Json> Service::mark(const Json& question) {
  const auto time = time_of(question);
  if (!time) return fail(time.error());
  run_->cpu = std::make_unique<CpuMark>(Clock::now() + *time);
  return Json::object();
}

Result<Json> Service::end(const Json& question) {
  if (!run_->cpu) return fail(Code::protocol_mismatch, "it was not told when to begin");
  const double cpu = std::exchange(run_->cpu, nullptr)->taken();
  const auto transfers = value_of<std::vector<std::uint64_t>>(question, "transfers");
  if (!transfers || transfers->size() != run_->guests.size())
    return fail(Code::protocol_mismatch, "it was not told how much was to come");
  const Deadline until = deadline();  // of all guests; the side that asks waits a little longer
  const auto found = look(*transfers, until);
  if (!found) return fail(found.error());
  for (Guest& guest : run_->guests)
    if (guest.region)
      if (auto released = guest.region->release(until); !released)
        return fail(std::move(released.error()));
  run_.reset();
  return Json{{"cpu_seconds", cpu}, {"findings", *found}};
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
  const Deadline deadline = Deadline::in(closing_time);
  for (Guest& guest : run_ ? std::span(run_->guests) : std::span<Guest>()) {
    if (guest.messages.valid()) guest.messages.wait();
    if (guest.region) (void)guest.region->release(deadline);
  }
  run_.reset();
  ended_.clear();
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
  const Watch watch(*peer);
  const std::stop_callback interrupted(stop_.get_token(), [&] { watch.end(); });
  tool::Exchange exchange(*engine_, std::move(*peer), site_.timeout);
  Service service(site_, before_check_, watch.token());
  for (;;) {
    auto question = exchange.hear(question_tag);
    // A run may be longer than any wait. Silence is not its end, but the peer's is.
    if (!question && question.error().code() == Code::timed_out && exchange.peer().up()) continue;
    if (!question && question.error().code() == Code::peer_down) return {};
    if (!question) return fail(std::move(question.error()));
    auto answered = service.answer(*question);
    Json answer = answered ? std::move(*answered) : failure_document(answered.error());
    if (question->contains("number")) answer["number"] = question->at("number");
    if (auto told = exchange.tell(response_tag, answer); !told && exchange.peer().up()) return told;
  }
}

void Target::interrupt() {
  stop_.request_stop();
  (void)engine_->close(Deadline::in(closing_time));
}

}  // namespace weft::perf
