// What the two sides say to each other, as JSON over an engine of its own that moves nothing else.
//
//   initiator                             target
//     open (Fabric)                  ->   opens an engine
//                                   <-    its address
//     prepare (Work, seed, verify)   ->   grants memory, answers messages
//     [warm-up]
//     mark                           ->   notes its CPU time
//     [the measured load]
//     end (what to expect)           ->   looks at its memory
//                                   <-    CPU time, findings
//     close                          ->   closes that engine
//
// Each is answered by a document, with "error" and "code" where it failed.
#pragma once

#include <stop_token>
#include <string>
#include <weft/engine.hpp>

#include "credentials.hpp"
#include "driver.hpp"
#include "exchange.hpp"
#include "pattern.hpp"
#include "point.hpp"

namespace weft::perf {

/// Of these documents; both sides must have the same.
constexpr int control_version = 1;

/// Under which the memory of a run is published.
constexpr const char* memory_name = "weft-perf";

/// How the engines of a side are reached and proven, besides what a point says.
struct Site {
  std::string listen;     ///< Empty: nowhere.
  std::string advertise;  ///< Where peers reach that, if it is not there; a port may be in it.
  bool allow_unauthenticated_network = false;
  std::string rail_address;
  std::vector<std::string> nics;
  tool::Credentials credentials;
  Nanoseconds timeout = std::chrono::seconds(60);  ///< Of any one step.
};

/// "10.0.0.2" of "10.0.0.2:7000", "[::1]" of "[::1]:7000".
std::string host_of(const std::string& address);

/// Of an engine for control.
Config control_config(const Site& site);
/// Of one that moves bytes as a point says. A side that listens does it at a port of the system's.
Config data_config(const Site& site, const Point& point);

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

/// The initiator's end.
class Control {
 public:
  /// A stop ends the attempt.
  static Result<Control> connect(const Site& site, const std::string& address,
                                 const std::stop_token& stop = {});

  /// Its answer, or the error that it tells.
  Result<Json> ask(const std::string& task, Json details = Json::object());
  /// The end of the other process where that is behind a failure.
  Error cause_of(Error failure) { return exchange_.end_after(std::move(failure)); }
  /// From any thread: what waits comes back early.
  void interrupt();
  const Peer& peer() const noexcept { return exchange_.peer(); }

 private:
  Control(std::unique_ptr<Engine> engine, tool::Exchange exchange)
      : engine_(std::move(engine)), driver_(*engine_), exchange_(std::move(exchange)) {}
  std::unique_ptr<Engine> engine_;
  Driver driver_;
  tool::Exchange exchange_;
};

/// Tags of the two directions.
constexpr std::uint64_t question_tag = 1, response_tag = 2;

Json failure_document(const Error& error);

}  // namespace weft::perf
