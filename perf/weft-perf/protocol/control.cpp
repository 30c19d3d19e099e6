#include "protocol/control.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "common/local_address.hpp"
#include "common/placed_segment.hpp"
#include "providers/libfabric/libfabric.hpp"
#include "workload/file_memory.hpp"

namespace weft::perf {
namespace {

Config site_config(const Site& site) {
  Config config;
  config.listen = site.listen;
  config.advertise = site.listen.empty() ? "" : site.advertise;
  config.allow_unauthenticated_network = site.allow_unauthenticated_network;
  config.rail_address = site.rail_address;
  tool::apply(site.credentials, config);
  return config;
}

double in_seconds(Nanoseconds time) {
  return std::chrono::duration<double>(time).count();
}

std::string at_any_port(const std::string& address) {
  return address.empty() ? address : host_of(address) + ":0";
}

}  // namespace

std::string host_of(const std::string& address) {
  if (address.starts_with('[')) return address.substr(0, address.find(']') + 1);
  const bool bare_ipv6 = std::count(address.begin(), address.end(), ':') > 1;
  return bare_ipv6 ? address : address.substr(0, address.find(':'));
}

Config control_config(const Site& site) {
  Config config = site_config(site);
  // Without libfabric only processes of one host meet.
  config.providers = {providers::load_libfabric() ? "tcp" : "shm"};
  config.rails = 1;
  config.threads = 1;
  config.metrics = false;
  return config;
}

Result<Config> data_config(const Site& site, const Point& point, const std::string& memory) {
  Config config = site_config(site);
  config.listen = at_any_port(site.listen);
  config.advertise = site.listen.empty() ? "" : host_of(site.advertise);
  config.nics = site.nics;
  config.default_timeout = site.timeout;
  apply(point.fabric, config);
  if (point.work.operation == Operation::message)
    config.max_message = std::max<std::size_t>(config.max_message, point.work.size);
  return tool::gpus_near(config, memory).map([&](std::vector<std::string>&& gpus) {
    config.gpus = std::move(gpus);
    return config;
  });
}

Result<void> check_lent(const Site& site, const std::string& memory) {
  const auto file = file_of(memory);
  if (!file || std::find(site.files.begin(), site.files.end(), file->path) != site.files.end())
    return {};
  return fail(Code::permission_denied,
              fmt::format("the file '{}' is not lent there (--files)", file->path));
}

std::string sentence(const Error& error) {
  const auto untold = [&](const std::string& what) {
    return !what.empty() && error.message().find(what) == std::string::npos;
  };
  std::string context;
  if (untold(error.peer())) context += "peer " + error.peer() + ", ";
  if (untold(error.rail())) context += "rail " + error.rail() + ", ";
  if (error.fabric_code() != 0) context += fmt::format("libfabric error {}, ", error.fabric_code());
  // The other side's own code is in what it told.
  const bool told = error.code() == Code::remote_failed && context.empty();
  return told ? error.message()
              : fmt::format("{} ({}{})", error.message(), context, to_string(error.code()));
}

Json failure_document(const Error& error) {
  return {{"error", sentence(error)}};
}

std::string memory_name(std::uint32_t initiator) {
  return fmt::format("weft-perf {}", initiator);
}

void close_now(Engine& engine) {
  constexpr auto closing_time = std::chrono::milliseconds(200);
  (void)engine.close(Deadline::in(closing_time));
}

Result<Peer> connect_until(const std::stop_token& stop, Engine& engine, const std::string& address,
                           Deadline deadline) {
  const std::stop_callback interrupt(stop, [&] { close_now(engine); });
  return engine.connect(address, deadline);
}

Result<Nanoseconds> time_of(const Json& document, const char* name) {
  const auto time = value_of<Nanoseconds::rep>(document, name);
  if (!time) return fail(time.error());
  if (*time < 0 || Nanoseconds(*time) > longest_run)
    return fail(Code::invalid_argument, "it goes on for 24 hours at most");
  return Nanoseconds(*time);
}

Result<Control> Control::connect(const Site& site, const std::string& address,
                                 const std::stop_token& stop, std::string side) {
  Site here = site;
  here.listen.clear();
  if (here.rail_address.empty()) here.rail_address = tool::local_address_towards(address);
  auto opened = Engine::open(control_config(here));
  if (!opened) return fail(std::move(opened.error()));
  auto engine = std::make_unique<Engine>(std::move(*opened));
  auto peer = connect_until(stop, *engine, address, Deadline::in(site.timeout));
  if (!peer) return fail(std::move(peer.error()));
  tool::Exchange exchange(*engine, std::move(*peer), site.timeout);
  return Control(std::move(engine), std::move(exchange), std::move(side));
}

Result<Json> Control::ask(const std::string& task, Json details, Nanoseconds longer) {
  details["task"] = task;
  details["version"] = control_version;
  details["number"] = ++asked_;
  tool::Exchange exchange(*engine_, exchange_.peer(), exchange_.timeout() + longer);
  if (auto told = exchange.tell(question_tag, details); !told) return fail(named(told.error()));
  auto answer = answer_to(asked_, exchange);
  if (!answer && answer.error().code() == Code::timed_out)
    return fail(named({Code::timed_out, fmt::format("no answer within {:g} s (--timeout)",
                                                    in_seconds(exchange.timeout()))}));
  if (!answer) return fail(named(answer.error()));
  if (!answer->contains("error")) return answer;
  const auto sentence = value_of<std::string>(*answer, "error");
  return fail(named({Code::remote_failed, sentence.value_or("failed")}));
}

/// One without a number is another version's refusal. Those of all questions before may be late.
Result<Json> Control::answer_to(std::uint64_t number, tool::Exchange& exchange) {
  for (std::uint64_t heard = 0; heard < number; ++heard) {
    auto answer = exchange.hear(response_tag);
    if (!answer) return answer;
    if (!answer->is_object()) break;
    if (answer->value("number", Json(number)) == number) return answer;
  }
  return fail(Code::protocol_mismatch, "its answer is none of weft-perf's");
}

Error Control::named(const Error& error) const {
  return Error(error.code(), side_ + ": " + error.message()).with_peer(error.peer());
}

Result<Expectation> Control::watch(std::function<void()> ended) {
  NotifyOptions options;
  options.on_end = [ended = std::move(ended)](std::uint64_t, const Error*) { ended(); };
  return exchange_.peer().expect(no_signal, 1, std::move(options));
}

void Control::interrupt() {
  (void)exchange_.peer().disconnect();
}

}  // namespace weft::perf
