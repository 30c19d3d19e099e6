// What the two sides say to each other, as JSON over an engine of its own that moves nothing else.
//
//   initiator                             target
//     open (Fabric)                  ->   opens an engine
//                                   <-    its address
//     prepare (Work, seed, verify,   ->   grants memory to each initiator, answers messages
//              initiators' names)
//     mark (how long the warm-up is) ->   notes its CPU time when that is over
//     [warm-up]
//     [the measured load]
//     end (what to expect)           ->   looks at its memory
//                                   <-    CPU time, findings
//     close                          ->   closes that engine
//
// Each is answered by a document with the number of its question, and with "error" where it failed.
// What else is measured for comparison is asked for between runs (see RawService, StreamSink).
// Where there are several initiators, each is a process of its own that listens as a target does,
// and is asked by the one that measures to `initiate`, step by step (see InitiatorService). What
// begins together is asked of all at once, when all have answered what was before.
#pragma once

#include <functional>
#include <stop_token>
#include <string>
#include <vector>
#include <weft/engine.hpp>

#include "common/credentials.hpp"
#include "common/exchange.hpp"
#include "load/driver.hpp"
#include "workload/pattern.hpp"
#include "workload/point.hpp"

namespace weft::tool {
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Findings, checked, wrong, first)
}

namespace weft::perf {

/// Of these documents; both sides must have the same.
constexpr int control_version = 8;

/// Under which an initiator's memory of a run is published.
std::string memory_name(std::uint32_t initiator);
/// Of an initiator's bytes and signals in a run.
constexpr std::uint64_t seed_of(std::uint64_t run_seed, std::uint32_t initiator) {
  return run_seed * most_initiators + initiator;
}

/// How the engines of a side are reached and proven, besides what a point says.
struct Site {
  std::string listen;     ///< Empty: nowhere.
  std::string advertise;  ///< Where peers reach that, if it is not there; a port may be in it.
  bool allow_unauthenticated_network = false;
  std::string rail_address;
  std::vector<std::string> nics;
  tool::Credentials credentials;
  Nanoseconds timeout = std::chrono::seconds(60);  ///< Of any one step.
  std::vector<std::string> files = {};             ///< That points may name as memory of this side.
};

/// `permission_denied` for a file that the site does not lend: points come from outside, and
/// overwrite it.
Result<void> check_lent(const Site& site, const std::string& memory);

/// "10.0.0.2" of "10.0.0.2:7000", "[::1]" of "[::1]:7000".
std::string host_of(const std::string& address);

/// Of an engine for control.
Config control_config(const Site& site);
/// Of one that moves bytes as a point says, to and from the `memory` of this side: a GPU's has the
/// NICs that serve it, where the machine's topology has that GPU. A side that listens does it at a
/// port of the system's. Fails as tool::gpu_pci() does.
Result<Config> data_config(const Site& site, const Point& point, const std::string& memory);

/// Ends all that waits for the engine, from any thread.
void close_now(Engine& engine);

/// Engine::connect; a stop closes the engine.
Result<Peer> connect_until(const std::stop_token& stop, Engine& engine, const std::string& address,
                           Deadline deadline);

/// A value out of a document from outside; `protocol_mismatch` if it is not there.
template <typename Value>
Result<Value> value_of(const Json& document, const char* name) {
  try {
    return document.at(name).get<Value>();
  } catch (const Json::exception&) {
    return fail(Code::protocol_mismatch, "the other side is no weft-perf of this version");
  }
}

/// How long something shall go on, out of a document from outside.
Result<Nanoseconds> time_of(const Json& document, const char* name = "time_ns");

/// The end of the one that measures.
class Control {
 public:
  /// A stop ends the attempt. `side`: how the other one is called where it fails.
  static Result<Control> connect(const Site& site, const std::string& address,
                                 const std::stop_token& stop = {}, std::string side = "the target");

  /// Its answer, or the error that it tells. `longer`: what it may take beyond the site's timeout.
  Result<Json> ask(const std::string& task, Json details = Json::object(), Nanoseconds longer = {});
  /// The end of the other process where that is behind a failure.
  Error cause_of(Error failure) { return exchange_.end_after(std::move(failure)); }
  /// From any thread: what waits comes back early.
  void interrupt();
  /// Calls `ended` on a thread of the engine when the other process has gone, for as long as what
  /// it returns is kept, or a little longer.
  Result<Expectation> watch(std::function<void()> ended);
  const Peer& peer() const noexcept { return exchange_.peer(); }

 private:
  Control(std::unique_ptr<Engine> engine, tool::Exchange exchange, std::string side)
      : engine_(std::move(engine)),
        driver_(*engine_),
        exchange_(std::move(exchange)),
        side_(std::move(side)) {}
  std::unique_ptr<Engine> engine_;
  Driver driver_;
  /// With the name of the side that failed.
  Error named(const Error& error) const;
  /// Its answer to that question, and not a late one to a question before.
  Result<Json> answer_to(std::uint64_t number, tool::Exchange& exchange);
  tool::Exchange exchange_;
  std::string side_;
  std::uint64_t asked_ = 0;
};

/// What a step is asked for beyond the timeout in which the other side waits for something itself:
/// its answer says for what.
constexpr Nanoseconds time_to_tell = std::chrono::seconds(2);

/// Tags of the two directions.
constexpr std::uint64_t question_tag = 1, response_tag = 2;
/// Never raised: waiting for it is waiting for the peer's end.
constexpr std::uint64_t no_signal = ~std::uint64_t{0};

/// An error for people: what happened, to which peer, and the code.
std::string sentence(const Error& error);

Json failure_document(const Error& error);

}  // namespace weft::perf
