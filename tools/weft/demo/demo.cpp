// weft demo: decode and prefill as two processes of this machine.
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <optional>

#include "command/ending.hpp"
#include "common/child.hpp"
#include "common/exchange.hpp"
#include "common/interrupt.hpp"
#include "common/names.hpp"
#include "demo/commands.hpp"
#include "demo/report.hpp"

namespace weft::tool {
namespace {

// Time for a child to end by itself: after the other one failed (it notices that within seconds),
// and after it was asked to.
constexpr auto time_to_notice = std::chrono::seconds(10);
constexpr auto time_to_obey = std::chrono::seconds(5);

/// A child and what it has said so far.
struct Side {
  Child child;
  std::string said = {};
  bool forced = false;  ///< Killed by this program.

  bool running() { return child.output().open(); }
  /// At the end of the output: closes it and reaps the process.
  void listen();
  bool succeeded() {
    return !running() && WIFEXITED(child.status()) && WEXITSTATUS(child.status()) == 0;
  }
  /// How near to the cause a complaint is: a process that was killed, or that ended by itself
  /// without a word, is the cause; one that speaks may only tell what the other's end did to it.
  enum class Rank { cause, own, echo };
  struct Complaint {
    Rank rank;
    std::string sentence;
  };
  /// Its own words, or how it ended.
  Complaint complaint() const;
  Result<RunReport> report() const { return parse(bytes()).and_then(from_json<RunReport>); }

 private:
  Bytes bytes() const { return std::as_bytes(std::span(said)); }
};

void Side::listen() {
  char buffer[4096];
  const ssize_t got = read(child.output().get(), buffer, sizeof buffer);
  if (got > 0) {
    said.append(buffer, static_cast<std::size_t>(got));
  } else if (got == 0 || errno != EINTR) {
    child.output().close();
    child.reap();
  }
}

Side::Complaint Side::complaint() const {
  const auto said_member = [&](const char* name) -> std::string {
    const auto document = parse(bytes());
    if (!document || !document->is_object() || !document->contains(name)) return {};
    const Json& value = (*document)[name];
    return value.is_string() ? value.get<std::string>() : std::string();
  };
  for (const char* what : {"error", "problem"}) {
    const std::string sentence = said_member(what);
    if (sentence.empty()) continue;
    const std::string code = said_member("code");
    const bool echo = code == to_string(Code::peer_down) || code == to_string(Code::cancelled);
    return {echo ? Rank::echo : Rank::own, fmt::format("{}: {}", child.name(), sentence)};
  }
  const int status = child.status();
  const Rank rank = forced ? Rank::echo : Rank::cause;
  if (WIFSIGNALED(status))
    return {rank, fmt::format("{} was killed by signal {} ({})", child.name(), WTERMSIG(status),
                              strsignal(WTERMSIG(status)))};
  return {rank, fmt::format("{} ended with exit code {}", child.name(), WEXITSTATUS(status))};
}

/// The two children, a descriptor with signals, and a deadline after which the next harder way to
/// end them is due.
class Demo {
 public:
  explicit Demo(const DemoOptions& options)
      : options_(options), signals_(open_signal_descriptor()) {}

  int run();

 private:
  Result<void> start_decode();
  Result<std::string> address();
  Result<void> start_prefill(const std::string& address);
  void watch();
  void step();
  void harder();
  std::string cause_of_failure();
  int conclude();
  bool running() { return (decode_ && decode_->running()) || (prefill_ && prefill_->running()); }
  bool failed(std::optional<Side>& side) { return side && !side->running() && !side->succeeded(); }

  const DemoOptions& options_;
  Descriptor signals_;
  std::optional<Side> decode_, prefill_;
  Descriptor ready_;
  int signal_ = 0;
  int next_signal_ = SIGTERM;
  std::optional<Deadline> ends_by_;
};

std::vector<std::string> common_arguments(const DemoOptions& options) {
  std::vector<std::string> list = {
      "--json",    "--quiet",
      "--timeout", fmt::format("{}", std::chrono::duration<double>(options.timeout).count()),
      "--model",   *options.cache.model,
      "--dtype",   name_of(dtype_names, options.cache.dtype.value_or(kv::DType::bf16)),
      "--seed",    std::to_string(options.cache.seed)};
  const auto fabric = arguments(options.engine);
  list.insert(list.end(), fabric.begin(), fabric.end());
  return list;
}

Result<void> Demo::start_decode() {
  auto ready = Pipe::make();
  if (!ready) return fail(std::move(ready.error()));
  std::vector<std::string> words = {"decode",
                                    "--listen",
                                    "127.0.0.1:0",
                                    "--progress",
                                    "never",
                                    "--ready-fd",
                                    std::to_string(ready->write.get())};
  words.insert(words.end(), {"--memory", options_.decode_memory.value_or(options_.cache.memory)});
  for (const auto& more : {common_arguments(options_), arguments(options_.decode_layout()),
                           arguments(options_.decode_ranks)})
    words.insert(words.end(), more.begin(), more.end());
  auto child = Child::start("decode", words, ready->write);
  if (!child) return fail(std::move(child.error()));
  decode_.emplace(Side{std::move(*child)});
  ready_ = std::move(ready->read);
  return {};
}

/// The address that decode writes once it listens; empty if it ended or a signal came before.
Result<std::string> Demo::address() {
  std::string line;
  const Deadline until = Deadline::in(options_.timeout);
  while (!line.ends_with('\n')) {
    std::array fds = {pollfd{ready_.get(), POLLIN, 0}, pollfd{signals_.get(), POLLIN, 0}};
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until.left()).count();
    const int found = poll(fds.data(), fds.size(), static_cast<int>(left));
    if (found < 0 && errno == EINTR) continue;
    if (found <= 0) return fail(Code::timed_out, "decode did not begin to listen in time");
    if (fds[1].revents != 0) return std::string();
    char buffer[256];
    const ssize_t got = read(ready_.get(), buffer, sizeof buffer);
    if (got <= 0) return std::string();
    line.append(buffer, static_cast<std::size_t>(got));
  }
  line.pop_back();
  return line;
}

Result<void> Demo::start_prefill(const std::string& address) {
  std::vector<std::string> words = {"prefill", "--peer", address, "--memory",
                                    options_.cache.memory};
  const std::string& progress = options_.console.progress;
  words.insert(words.end(),
               {"--progress", options_.console.json && progress == "auto" ? "never" : progress});
  for (const auto& more : {common_arguments(options_), arguments(options_.cache.layout),
                           arguments(options_.cache.ranks), arguments(options_.work)})
    words.insert(words.end(), more.begin(), more.end());
  if (options_.explain) words.emplace_back("--explain");
  auto child = Child::start("prefill", words, Descriptor());
  if (!child) return fail(std::move(child.error()));
  prefill_.emplace(Side{std::move(*child)});
  return {};
}

/// Until both have ended.
void Demo::watch() {
  while (running()) {
    step();
    if (!ends_by_ && (failed(decode_) || failed(prefill_))) ends_by_ = Deadline::in(time_to_notice);
    if (ends_by_ && ends_by_->passed()) harder();
  }
}

void Demo::step() {
  std::vector<pollfd> fds = {{signals_.get(), POLLIN, 0}};
  std::vector<Side*> sides;
  for (auto* side : {&decode_, &prefill_}) {
    if (!*side || !(*side)->running()) continue;
    sides.push_back(&**side);
    fds.push_back({(*side)->child.output().get(), POLLIN, 0});
  }
  const auto left = ends_by_ ? std::chrono::ceil<std::chrono::milliseconds>(ends_by_->left())
                             : std::chrono::milliseconds(-1);
  if (poll(fds.data(), fds.size(), static_cast<int>(left.count())) <= 0) return;
  for (std::size_t i = 0; i < sides.size(); ++i)
    if (fds[i + 1].revents != 0) sides[i]->listen();
  if (fds[0].revents == 0) return;
  signal_ = read_signal(signals_.get());
  harder();
}

/// Asks the children to end; the next time, kills them.
void Demo::harder() {
  for (auto* side : {&decode_, &prefill_}) {
    if (!*side || !(*side)->running()) continue;
    (*side)->forced = next_signal_ == SIGKILL;
    (*side)->child.signal(next_signal_);
  }
  next_signal_ = SIGKILL;
  ends_by_ = Deadline::in(time_to_obey);
}

/// Where both failed, one usually because the other did.
std::string Demo::cause_of_failure() {
  std::optional<Side::Complaint> cause;
  for (auto* side : {&decode_, &prefill_}) {
    if (!failed(*side)) continue;
    Side::Complaint complaint = (*side)->complaint();
    if (!cause || complaint.rank < cause->rank) cause = std::move(complaint);
  }
  return cause ? cause->sentence : std::string();
}

int Demo::conclude() {
  const ConsoleOptions& console = options_.console;
  if (signal_ != 0) return end_with_signal("demo", console, signal_);
  if (const std::string cause = cause_of_failure(); !cause.empty())
    return end_with("demo", console, to_string(Code::remote_failed), cause, exit_failure);

  const auto prefill = prefill_->report();
  const auto decode = decode_->report();
  if (!prefill) return end_with("demo", console, prefill.error());
  if (!decode) return end_with("demo", console, decode.error());
  if (console.json)
    print(Json{{"command", "demo"},
               {"ok", true},
               {"prefill", to_json(*prefill)},
               {"decode", to_json(*decode)}}
              .dump(2) +
          "\n");
  else
    print(table(*prefill) + "\n" + table(*decode));
  return exit_success;
}

int Demo::run() {
  auto started = start_decode();
  if (started) {
    auto where = address();
    if (!where)
      started = fail(std::move(where.error()));
    else if (!where->empty())
      started = start_prefill(*where);
  }
  if (!started) return end_with("demo", options_.console, started.error());
  watch();
  return conclude();
}

}  // namespace

int run_demo(const DemoOptions& options) {
  return Demo(options).run();
}

}  // namespace weft::tool
