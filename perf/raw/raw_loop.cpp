#include "raw_loop.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>
#include <weft/deadline.hpp>

#include "endpoint.hpp"
#include "histogram.hpp"
#include "pages.hpp"

namespace weft::perf {
namespace {

using Json = nlohmann::json;

constexpr const char* side_argument = "weft-raw-side";
// Where a side finds its sockets: high enough not to collide with those that are copied there.
constexpr int peer_fd = 200, caller_fd = 201;

std::string shm_name(pid_t pid, unsigned endpoint) {
  return fmt::format("weft_raw_{}_{}", pid, endpoint);
}

constexpr const char* ended_early = "the other side ended early";

std::runtime_error system_error(const char* call) {
  return std::runtime_error(fmt::format("{}: {}", call, std::strerror(errno)));
}

/// Two connected sockets that keep message boundaries.
struct Sockets {
  Sockets() {
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds.data()) != 0) {
      throw system_error("socketpair");
    }
  }
  Sockets(const Sockets&) = delete;
  Sockets& operator=(const Sockets&) = delete;
  ~Sockets() { close(0), close(1); }
  void close(std::size_t end) {
    if (fds[end] >= 0) ::close(std::exchange(fds[end], -1));
  }
  std::array<int, 2> fds{-1, -1};
};

void send(int fd, const Json& message) {
  const std::string text = message.dump();
  if (::send(fd, text.data(), text.size(), MSG_NOSIGNAL) >= 0) return;
  throw errno == EPIPE ? std::runtime_error(ended_early) : system_error("send");
}

Json receive(int fd, Deadline deadline) {
  pollfd descriptor{fd, POLLIN, 0};
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline.left());
  const int ready = ::poll(&descriptor, 1, int(left.count()));
  if (ready < 0) throw system_error("poll");
  if (ready == 0) throw std::runtime_error("the other side did not answer in time");
  std::string text(1 << 17, '\0');
  const ssize_t length = ::recv(fd, text.data(), text.size(), 0);
  if (length < 0) throw system_error("recv");
  if (length == 0) throw std::runtime_error(ended_early);
  return Json::parse(text.substr(0, std::size_t(length)));
}

double cpu_seconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](timeval t) { return double(t.tv_sec) + double(t.tv_usec) * 1e-6; };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

class Memory {
 public:
  explicit Memory(std::size_t bytes) : pages_(bytes) {
    if (pages_.empty()) throw system_error("mmap");
  }

  /// The pattern depends on the position; without `patterned` the pages are only touched.
  void fill(bool patterned) {
    for (std::size_t i = 0; i + 8 <= span().size(); i += 8) {
      const std::uint64_t word = patterned ? pattern(i) : 0;
      std::memcpy(span().data() + i, &word, 8);
    }
  }
  void expect_pattern(std::size_t bytes) const {
    for (std::size_t i = 0; i + 8 <= bytes; i += 8) {
      std::uint64_t word = 0;
      std::memcpy(&word, span().data() + i, 8);
      if (word != pattern(i)) {
        throw std::runtime_error(fmt::format("wrong bytes at offset {} of {}", i, bytes));
      }
    }
  }

  std::span<std::byte> span() const noexcept { return pages_.span(); }

 private:
  static std::uint64_t pattern(std::size_t offset) { return (offset + 1) * 0x9E37'79B9'7F4A'7C15u; }

  const Pages pages_;
};

std::size_t positions(const RawConfig& c) {
  if (c.buffer_bytes == 0) return c.window;
  return std::max<std::size_t>(1, c.buffer_bytes / c.size);
}

/// The stream of chunks that the endpoints share; it ends with a whole transfer.
class Stream {
 public:
  using Counter = std::atomic<std::uint64_t>;
  struct Chunk {
    std::uint64_t transfer;
    std::size_t offset, length;
  };

  Stream(const RawConfig& config, std::chrono::milliseconds time)
      : config_(config),
        chunk_bytes_(config.chunk == 0 ? config.size : std::min(config.chunk, config.size)),
        chunks_((config.size + chunk_bytes_ - 1) / chunk_bytes_),
        completed_(config.window),
        end_(Clock::now() + time) {}

  std::optional<Chunk> take() {
    const std::lock_guard lock(mutex_);
    const std::uint64_t transfer = next_ / chunks_, part = next_ % chunks_;
    // The first one in any case: no thread may have got a core in time.
    if (part == 0 && transfer > 0 &&
        (transfer * config_.size >= config_.max_bytes || Clock::now() >= end_)) {
      return std::nullopt;
    }
    ++next_;
    const std::size_t start = part * chunk_bytes_;
    return Chunk{transfer, transfer % positions(config_) * config_.size + start,
                 std::min(chunk_bytes_, config_.size - start)};
  }
  /// Whether the transfer `window` before this one has completed.
  bool open(const Chunk& chunk) {
    return counter(chunk) >= chunk.transfer / config_.window * chunks_;
  }
  /// Chunks completed in the chunk's slot of the window.
  Counter& counter(const Chunk& chunk) { return completed_[chunk.transfer % config_.window]; }
  std::uint64_t chunks() const { return next_; }
  std::uint64_t transfers() const { return next_ / chunks_; }

 private:
  const RawConfig& config_;
  const std::size_t chunk_bytes_;
  const std::uint64_t chunks_;
  std::vector<Counter> completed_;
  const Clock::time_point end_;
  std::mutex mutex_;
  std::uint64_t next_ = 0;
};

/// Runs `work(endpoint)` on a thread for each, and throws what the first of them threw.
class Workers {
 public:
  void start(std::vector<std::unique_ptr<Endpoint>>& endpoints,
             const std::function<void(Endpoint&)>& work) {
    for (auto& endpoint : endpoints) {
      threads_.emplace_back([this, &endpoint = *endpoint, work] {
        try {
          work(endpoint);
        } catch (...) {
          const std::lock_guard lock(mutex_);
          if (!error_) error_ = std::current_exception();
          failed = true;
        }
      });
    }
  }
  void join() {
    threads_.clear();
    if (error_) std::rethrow_exception(error_);
  }
  std::atomic<bool> failed{false};

 private:
  std::mutex mutex_;
  std::exception_ptr error_;
  std::vector<std::jthread> threads_;
};

class Side {
 public:
  Side(const RawConfig& config, bool initiator)
      : config_(config),
        deadline_(Deadline::in(std::chrono::milliseconds(config.timeout_ms))),
        memory_(positions(config) * config.size) {
    memory_.fill(initiator != config.read);
    Json mine = Json::array();
    for (unsigned i = 0; i < config.endpoints; ++i) {
      endpoints_.push_back(std::make_unique<Endpoint>(config,
                                                      initiator ? config.initiator : config.target,
                                                      shm_name(::getpid(), i), memory_.span()));
      mine.push_back(endpoints_.back()->describe());
    }
    send(peer_fd, mine);
    const Json theirs = receive(peer_fd, deadline_);
    for (unsigned i = 0; i < config.endpoints; ++i) endpoints_[i]->connect(theirs.at(i));
    send(peer_fd, "ready");
    receive(peer_fd, deadline_);
  }

  RawResult initiate() {
    const std::chrono::milliseconds time(config_.max_ms);
    pass(time / 5);
    RawResult result = pass(time);
    send(peer_fd, {{"covered", covered_}});
    result.target_cpu_seconds = receive(peer_fd, deadline_).at("cpu");
    if (config_.verify && config_.read) memory_.expect_pattern(covered_);
    return result;
  }

  void serve() {
    std::atomic<bool> stop{false};
    Workers workers;
    const double cpu_before = cpu_seconds();
    workers.start(endpoints_, [&](Endpoint& endpoint) {
      while (!stop && !deadline_.passed()) {
        if (endpoint.reap([](void*) {}) == 0) endpoint.idle(deadline_);
      }
    });
    std::size_t covered = 0;
    try {
      covered = receive(peer_fd, deadline_).at("covered");
    } catch (...) {
      stop = true;
      workers.join();
      throw;
    }
    stop = true;
    workers.join();
    const double cpu = cpu_seconds() - cpu_before;
    if (config_.verify && !config_.read) memory_.expect_pattern(covered);
    send(peer_fd, {{"cpu", cpu}});
  }

 private:
  RawResult pass(std::chrono::milliseconds time) {
    Stream stream(config_, time);
    Workers workers;
    const double cpu_before = cpu_seconds();
    const auto start = Clock::now();
    workers.start(endpoints_, [&](Endpoint& endpoint) { drive(endpoint, stream, workers.failed); });
    workers.join();
    const std::chrono::duration<double> took = Clock::now() - start;
    const Histogram latency = std::exchange(latency_, Histogram());
    covered_ = std::min<std::size_t>(stream.transfers(), positions(config_)) * config_.size;
    const std::uint64_t bytes = stream.transfers() * config_.size;
    return {.bytes = bytes,
            .operations = stream.chunks(),
            .seconds = took.count(),
            .initiator_cpu_seconds = cpu_seconds() - cpu_before,
            .gigabytes_per_second = double(bytes) / took.count() * 1e-9,
            .p50_ns = std::uint64_t(latency.quantile(0.5).count()),
            .p99_ns = std::uint64_t(latency.quantile(0.99).count())};
  }

  /// An operation that is under way.
  struct Flying {
    Stream::Counter* counter = nullptr;
    Clock::time_point begun = {};
  };

  void drive(Endpoint& endpoint, Stream& stream, const std::atomic<bool>& failed) {
    const auto now = [&] { return config_.latencies ? Clock::now() : Clock::time_point(); };
    std::vector<Flying> operations(config_.endpoint_window);
    std::vector<Flying*> free;
    for (Flying& each : operations) free.push_back(&each);
    Histogram latency;
    auto chunk = stream.take();
    Clock::time_point begun{};  // When `chunk` was first to be posted; the clock's start: never.
    while (chunk || free.size() < operations.size()) {
      while (chunk && !free.empty() && stream.open(*chunk)) {
        if (begun == Clock::time_point{}) begun = now();
        *free.back() = {&stream.counter(*chunk), begun};
        if (!endpoint.post(chunk->offset, chunk->length, free.back())) break;
        free.pop_back();
        chunk = stream.take();
        begun = {};
      }
      const auto count = endpoint.reap([&](void* context) {
        auto& ended = *static_cast<Flying*>(context);
        if (config_.latencies) latency.add(Clock::now() - ended.begun);
        ended.counter->fetch_add(1);
        free.push_back(&ended);
      });
      if (count > 0) continue;
      if (failed) return;
      if (deadline_.passed()) {
        throw std::runtime_error(
            fmt::format("{} operations of an endpoint did not complete in time",
                        operations.size() - free.size()));
      }
      // A chunk that waits for completions of other endpoints has nothing here to sleep for.
      free.size() < operations.size() ? endpoint.idle(deadline_) : std::this_thread::yield();
    }
    const std::lock_guard lock(latency_mutex_);
    latency_.add(latency);
  }

  const RawConfig config_;
  const Deadline deadline_;
  Memory memory_;
  std::vector<std::unique_ptr<Endpoint>> endpoints_;
  std::size_t covered_ = 0;  // Bytes from the start of the memory that the last pass moved.
  std::mutex latency_mutex_;
  Histogram latency_;  // Of the pass under way.
};

/// A side that runs as a process of its own; killed when this object goes.
class Child {
 public:
  Child(const char* side, const std::string& config, int peer_socket) {
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_adddup2(&actions, peer_socket, peer_fd);
    ::posix_spawn_file_actions_adddup2(&actions, sockets_.fds[1], caller_fd);
    const std::array<const char*, 5> arguments{"weft-raw", side_argument, side, config.c_str(),
                                               nullptr};
    const int rc = ::posix_spawn(&pid_, "/proc/self/exe", &actions, nullptr,
                                 const_cast<char* const*>(arguments.data()), environ);
    ::posix_spawn_file_actions_destroy(&actions);
    sockets_.close(1);
    if (rc != 0) throw std::runtime_error(fmt::format("posix_spawn: {}", std::strerror(rc)));
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    for (unsigned i = 0; i < max_endpoints; ++i) ::shm_unlink(shm_name(pid_, i).c_str());
  }

  Json result(Deadline deadline) const { return receive(sockets_.fds[0], deadline); }
  /// From any thread: who waits for the result gets none.
  void give_up() const { ::shutdown(sockets_.fds[0], SHUT_RDWR); }

 private:
  Sockets sockets_;
  pid_t pid_ = 0;
};

Json run_side(bool initiator, const RawConfig& config) {
  try {
    for (const auto& [name, value] : config.environment) {
      ::setenv(name.c_str(), value.c_str(), 1);
    }
    Side side(config, initiator);
    if (initiator) return side.initiate();
    side.serve();
    return Json::object();
  } catch (const std::exception& error) {
    return {{"error", error.what()}};
  }
}

}  // namespace

std::optional<int> serve_raw_side(int argc, char** argv) {
  if (argc != 4 || std::strcmp(argv[1], side_argument) != 0) return std::nullopt;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  try {
    const Json result =
        run_side(std::strcmp(argv[2], "initiator") == 0, Json::parse(argv[3]).get<RawConfig>());
    ::close(peer_fd);
    send(caller_fd, result);
    return result.contains("error") ? 1 : 0;
  } catch (const std::exception&) {
    return 1;  // The caller is gone.
  }
}

Result<RawResult> run_raw(const RawConfig& config, const std::stop_token& stop) {
  if (config.size == 0 || config.window == 0 || config.endpoint_window == 0 ||
      config.endpoints == 0 || config.endpoints > max_endpoints) {
    return fail(
        Code::invalid_argument,
        fmt::format("size and windows start at 1, and endpoints go from 1 to {}", max_endpoints));
  }
  try {
    // The sides give up at the timeout; a little later they are ended.
    const auto deadline = Deadline::in(std::chrono::milliseconds(config.timeout_ms + 2'000));
    Sockets between;
    const std::string text = Json(config).dump();
    const Child target("target", text, between.fds[1]);
    const Child initiator("initiator", text, between.fds[0]);
    between.close(0), between.close(1);
    const std::stop_callback interrupt(stop, [&] { target.give_up(), initiator.give_up(); });
    const Json result = initiator.result(deadline), served = target.result(deadline);
    std::string reason;  // That of the side that failed by itself, if one did.
    for (const auto& [side, report] : {std::pair{"target", served}, {"initiator", result}}) {
      if (!report.contains("error") || (!reason.empty() && report.at("error") == ended_early)) {
        continue;
      }
      reason = fmt::format("{}: {}", side, report.at("error").get<std::string>());
      if (report.at("error") != ended_early) break;
    }
    if (!reason.empty()) return fail(Code::fabric_failed, reason);
    return result.get<RawResult>();
  } catch (const std::exception& error) {
    if (stop.stop_requested()) return fail(Code::cancelled, "interrupted");
    return fail(Code::fabric_failed, error.what());
  }
}

}  // namespace weft::perf
