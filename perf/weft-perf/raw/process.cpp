#include "raw/process.hpp"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <exception>
#include <stdexcept>
#include <string>
#include <utility>

#include "raw/side.hpp"

namespace weft::perf {
namespace {

using Json = nlohmann::json;

constexpr const char* side_argument = "weft-raw-side";
/// Debian's libfabric loads a library for Omni-Path NICs whose handlers call exit(), which waits
/// for itself for ever where another signal, or an exit, is under way: a side would outlive its
/// caller. It reads this when it is loaded.
constexpr const char* without_handlers = "IPATH_NO_BACKTRACE=1";
/// A side gives up at its deadline by itself; a little later it is given up.
constexpr auto grace = std::chrono::seconds(2);

/// By the signal that libfabric's shm takes, to remove what it has under /dev/shm. The caller may
/// have blocked it.
void end_with_caller() {
  sigset_t ending;
  ::sigemptyset(&ending);
  ::sigaddset(&ending, SIGTERM);
  ::pthread_sigmask(SIG_UNBLOCK, &ending, nullptr);
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
}

/// Of the loop: the time that it is measured, a fifth of that before, and a stall in either.
Deadline end_of_loop(const RawConfig& config) {
  return Deadline::in(std::chrono::milliseconds(2 * config.max_ms + 3 * config.timeout_ms));
}

/// What libfabric's shm has of a side.
void remove_shared_memory(pid_t side) {
  for (unsigned i = 0; i < max_endpoints; ++i) ::shm_unlink(shm_name(side, i).c_str());
}

Deadline end_of_step(const RawConfig& config) {
  return Deadline::in(std::chrono::milliseconds(config.timeout_ms));
}

void set_environment(const RawConfig& config) {
  // A NIC is to be compared with, and libfabric would leave it alone between processes of a host.
  ::setenv("FI_EFA_ENABLE_SHM_TRANSFER", "0", 1);
  for (const auto& [name, value] : config.environment) ::setenv(name.c_str(), value.c_str(), 1);
}

Json hear(const tool::Talk& caller, Deadline deadline, const std::string& step) {
  auto question = caller.hear(deadline);
  if (!question) throw std::runtime_error(question.error().message());
  if (question->at("step") != step) throw std::runtime_error("it was asked for another step");
  return std::move(*question);
}

void say(const tool::Talk& caller, const Json& answer) {
  if (auto said = caller.say(answer); !said) throw std::runtime_error(said.error().message());
}

void take_steps(RawSide& side, const tool::Talk& caller, const RawConfig& config, bool initiator) {
  hear(caller, end_of_loop(config), "open");
  say(caller, {{"endpoints", side.describe()}});
  side.connect(hear(caller, end_of_step(config), "connect").at("endpoints"));
  say(caller, Json::object());
  if (initiator) {
    hear(caller, end_of_step(config), "run");
    return say(caller, side.initiate());
  }
  const Deadline deadline = end_of_loop(config);
  const double cpu_seconds =
      side.serve([&] { return hear(caller, deadline, "end").at("covered").get<std::size_t>(); },
                 [&] { caller.end(); });
  say(caller, {{"cpu_seconds", cpu_seconds}});
}

/// The caller is told of a failure before anything is closed, which may take long, or never end.
void serve_side(const tool::Talk& caller, const RawConfig& config, bool initiator) {
  set_environment(config);
  std::optional<RawSide> side;
  try {
    side.emplace(config, initiator);
    take_steps(*side, caller, config, initiator);
  } catch (const std::exception& error) {
    (void)caller.say({{"error", error.what()}});
    remove_shared_memory(::getpid());  // the caller may be gone
    std::_Exit(1);
  }
}

}  // namespace

Result<std::unique_ptr<RawProcess>> RawProcess::start(const RawConfig& config, Role role) {
  if (auto checked = check(config); !checked) return fail(std::move(checked.error()));
  const bool initiator = role == Role::initiator;
  auto helper = tool::Helper::start(
      fmt::format("the plain loop's {}", initiator ? "initiator" : "target"), side_argument,
      {{"config", config}, {"initiator", initiator}}, without_handlers);
  if (!helper) return fail(std::move(helper.error()));
  return std::unique_ptr<RawProcess>(new RawProcess(config, std::move(*helper)));
}

RawProcess::~RawProcess() {
  /// It closes what it has, and with it what libfabric keeps under /dev/shm.
  const pid_t pid = helper_.pid();
  helper_.end(finished_ ? Deadline::in(grace) : Deadline::now());
  remove_shared_memory(pid);
}

Result<Json> RawProcess::ask(const Json& step) {
  const Json& name = step.at("step");
  const Deadline end = name == "run" ? end_of_loop(config_) : end_of_step(config_);
  auto answer = helper_.ask(step, Deadline::at(end.when() + grace));
  finished_ = answer.has_value() && (name == "run" || name == "end");
  return answer;
}

std::optional<int> serve_raw_side(int argc, char** argv) {
  const auto caller = tool::Talk::of_helper(side_argument, argc, argv);
  if (!caller) return std::nullopt;
  end_with_caller();
  try {
    const Json task = caller->hear(Deadline::in(std::chrono::minutes(1))).value();
    serve_side(*caller, task.at("config").get<RawConfig>(), task.at("initiator").get<bool>());
    return 0;
  } catch (const std::exception&) {  // The caller is gone.
    return 1;
  }
}

}  // namespace weft::perf
