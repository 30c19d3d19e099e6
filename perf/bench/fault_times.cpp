// How long it takes until a fault is known: from a peer's death to the failed transfer, and from a
// revocation to its answer. And how long a transfer stands still when a NIC dies.
#include <fmt/format.h>
#include <signal.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <future>
#include <string>
#include <thread>
#include <vector>
#include <weft/engine.hpp>

#include "bench.hpp"
#include "protocol/must.hpp"
#include "report/spread.hpp"
#include "shared/options.hpp"
#include "shared/sides.hpp"

namespace {

using namespace weft;
using namespace weft::perf;
using namespace std::chrono_literals;

constexpr std::size_t size = 16 << 20;
constexpr auto patience = 60s;
// A frozen writer goes on after this.
constexpr auto frozen_for = 300ms;

Config config_for(const std::string& provider) {
  Config config;
  config.providers = {provider};
  return config;
}

Deadline soon() {
  return Deadline::in(patience);
}

double milliseconds_since(Clock::time_point then) {
  return std::chrono::duration<double, std::milli>(Clock::now() - then).count();
}

/// An engine that grants its memory under "memory".
struct Owner {
  explicit Owner(const std::string& provider)
      : engine(must(Engine::open(config_for(provider)))),
        segment(must(engine.add(Memory::own(size)))),
        grant(must(segment.grant({}, Rights::read_write))) {
    std::memset(segment.data(), 1, size);
    must(engine.publish("memory", grant));
  }
  Engine engine;
  Segment segment;
  Grant grant;
};

/// Writes all of it again and again, as one transfer.
Transfer begin_writing(Engine& engine, const Segment& local, const Remote& there) {
  const Pair all[] = {{0, 0, size}};
  const Prepared prepared = must(engine.prepare(local, there, Direction::write, all));
  const std::vector<std::uint32_t> again(1'000'000);
  TransferOptions options;
  options.deadline = Deadline::in(std::chrono::hours(1));
  return must(engine.submit(prepared, again, options));
}

void wait_for_bytes(const Transfer& transfer) {
  const Deadline deadline = soon();
  while (transfer.report().bytes_done == 0 && !deadline.passed()) std::this_thread::yield();
}

/// What a process found out, in a line; "error ..." if it failed.
template <typename Body>
void tell(int fd, Body&& body) {
  try {
    write_line(fd, body());
  } catch (const std::exception& error) {
    write_line(fd, fmt::format("error {}", error.what()));
  }
}

/// What `body` finds out about a transfer that writes, with the target's process, in another one.
template <typename Body>
std::string while_writing(const std::string& provider, Body&& body) {
  Pipe address, life, result;
  const Side target([&] {
    life.close_write();
    tell(address.write_end(), [&] {
      const Owner owner(provider);
      write_line(address.write_end(), owner.engine.address());
      wait_for_end(life.read_end());
      return std::string();
    });
  });
  const std::string where = must(read_line(address.read_end(), soon()));
  const Side writer([&] {
    tell(result.write_end(), [&] {
      Engine engine = must(Engine::open(config_for(provider)));
      const Segment local = must(engine.add(Memory::own(size)));
      const Peer peer = must(engine.connect(where, soon()));
      Transfer transfer = begin_writing(engine, local, must(peer.lookup("memory", soon())));
      wait_for_bytes(transfer);
      return body(transfer, target.pid());
    });
  });
  return must(read_line(result.read_end(), soon()));
}

/// From a signal to the target's process to the end of the transfer that writes to it.
std::string death(const std::string& provider, int signal) {
  return while_writing(provider, [&](Transfer& transfer, pid_t target) {
    const auto begin = Clock::now();
    kill(target, signal);
    const auto ended = transfer.wait(soon());
    return fmt::format("{} {}", milliseconds_since(begin),
                       ended ? "done" : to_string(ended.error().code()));
  });
}

enum class Writer { live, slow, dead };

/// How long revoke() takes while a writer is at it.
std::string revocation(const std::string& provider, Writer how) {
  Pipe address, go, writing, life, result;
  const Side writer([&] {
    life.close_write();
    tell(writing.write_end(), [&] {
      const std::string where = must(read_line(address.read_end(), soon()));
      Engine engine = must(Engine::open(config_for(provider)));
      const Segment local = must(engine.add(Memory::own(size)));
      const Peer peer = must(engine.connect(where, soon()));
      Transfer transfer = begin_writing(engine, local, must(peer.lookup("memory", soon())));
      wait_for_bytes(transfer);
      write_line(writing.write_end(), "writing");
      wait_for_end(life.read_end());
      return std::string();
    });
  });
  const Side owning([&] {
    tell(result.write_end(), [&] {
      Owner owner(provider);
      write_line(address.write_end(), owner.engine.address());
      const Peer peer = must(owner.engine.accept(soon()));
      if (must(read_line(writing.read_end(), soon())) != "writing")
        throw std::runtime_error("the writer failed");
      std::jthread thawing;
      if (how == Writer::slow) {
        kill(writer.pid(), SIGSTOP);
        thawing = std::jthread([&] {
          std::this_thread::sleep_for(frozen_for);
          kill(writer.pid(), SIGCONT);
        });
      }
      if (how == Writer::dead) {
        kill(writer.pid(), SIGKILL);
        const Deadline deadline = soon();
        while (peer.up() && !deadline.passed()) std::this_thread::yield();
      }
      const auto begin = Clock::now();
      const Revoked revoked = must(owner.grant.revoke(soon()));
      return fmt::format("{} {}", milliseconds_since(begin),
                         revoked == Revoked::quiescent ? "quiescent" : "quarantined");
    });
  });
  return must(read_line(result.read_end(), soon()));
}

/// The longest time for which `transfer` got no further, until then.
double longest_standstill(const Transfer& transfer, Clock::time_point until) {
  double longest = 0;
  auto last = Clock::now();
  for (std::uint64_t bytes = transfer.report().bytes_done; Clock::now() < until;) {
    const std::uint64_t now = transfer.report().bytes_done;
    if (now != bytes || transfer.state() != State::active) last = Clock::now();
    bytes = now;
    longest = std::max(longest, milliseconds_since(last));
  }
  return longest;
}

/// How long a transfer over several NICs stands still when one of them dies, which takes a command
/// (none: no NIC dies).
std::string nic_death(const std::string& provider, const std::string& die,
                      const std::string& mend) {
  return while_writing(provider, [&](Transfer& transfer, pid_t) {
    const auto run = [](const std::string& command) {
      if (!command.empty() && std::system(command.c_str()) != 0)
        throw std::runtime_error("failed: " + command);
    };
    auto dying = std::async(std::launch::async, run, die);
    const double longest = longest_standstill(transfer, Clock::now() + 3s);
    const std::string state(to_string(transfer.state()));
    dying.get();
    run(mend);
    return fmt::format("{} {}", longest, state);
  });
}

template <typename Once>
void print(const std::string& provider, const std::string& what, unsigned rounds, Once&& once) {
  std::vector<double> times;
  std::string verdict;
  for (unsigned round = 0; round < rounds; ++round) {
    const std::string line = once();
    char word[64] = "";
    double time = 0;
    if (std::sscanf(line.c_str(), "%lf %63s", &time, word) != 2) throw std::runtime_error(line);
    times.push_back(time);
    if (verdict.find(word) == std::string::npos)
      verdict += (verdict.empty() ? "" : ", ") + std::string(word);
  }
  const Spread spread = spread_of(times);
  fmt::print("{:<4} {:<44} {:>8.1f} ({:.1f}-{:.1f})  {}\n", provider, what, spread.median,
             spread.least, spread.greatest, verdict);
  std::fflush(stdout);
}

}  // namespace

int weft::perf::bench::fault_times(int argc, char** argv) {
  std::vector<std::string> providers{"tcp", "shm"};
  unsigned repeats = 7;
  CLI::App app{"Milliseconds until a fault is known, as median (least-greatest), and what it is."};
  OptionGroup group(app, "Options");
  add_providers(group, providers, "tcp, shm");
  add_repeats(group, repeats);
  std::string die, mend;
  auto* dies = app.add_option(
      "--nic-dies", die, "Only: how long a write stands still when a NIC dies, by this command");
  app.add_option("--nic-is-back", mend, "Brings it back")->needs(dies);
  dies->needs("--nic-is-back");
  if (const auto code = parse(app, argc, argv)) return *code;
  for (const std::string& provider : providers) {
    if (!die.empty()) {
      print(provider, "longest standstill of a write", repeats,
            [&] { return nic_death(provider, "", ""); });
      print(provider, "the same, a NIC dies", repeats,
            [&] { return nic_death(provider, die, mend); });
      continue;
    }
    print(provider, "SIGKILL of the target to the failed transfer", repeats,
          [&] { return death(provider, SIGKILL); });
    print(provider, "SIGSTOP of the target to the failed transfer", repeats,
          [&] { return death(provider, SIGSTOP); });
    print(provider, "revoke, the writer is alive", repeats,
          [&] { return revocation(provider, Writer::live); });
    print(provider, "revoke, the writer is frozen for 300 ms", repeats,
          [&] { return revocation(provider, Writer::slow); });
    print(provider, "revoke, the writer was killed", repeats,
          [&] { return revocation(provider, Writer::dead); });
  }
  return 0;
}
