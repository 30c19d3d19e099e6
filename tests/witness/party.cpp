// One side of transfers that are watched from outside: a process of its own, whose every call into
// the kernel is its own side's. What its ledger says goes to standard output, a line for each copy.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <iostream>
#include <stdexcept>
#include <string>
#include <vector>
#include <weft/weft.hpp>

namespace weft::witness {
namespace {

using namespace std::chrono_literals;

struct Options {
  std::string provider, address;
  std::uint64_t piece = 1 << 20;
  std::uint64_t pieces = 32;
  bool bounce = false;
  bool read = false;
  bool shared = false;
};

Deadline soon() {
  return Deadline::in(60s);
}

template <typename T>
T must(Result<T> result) {
  if (!result) throw std::runtime_error(result.error().to_string());
  if constexpr (!std::is_void_v<T>) return std::move(*result);
}

/// Twice as large as what is moved, since no two pieces touch.
std::uint64_t segment_bytes(const Options& options) {
  return 2 * options.piece * options.pieces;
}

Memory memory_of(const Options& options) {
  const std::uint64_t bytes = segment_bytes(options);
  return options.shared ? Memory::shared(bytes) : Memory::own(bytes);
}

Engine open(const Options& options) {
  Config config;
  config.providers = {options.provider};
  config.transport = options.bounce ? TransportKind::bounce : TransportKind::one_sided;
  config.death_after = 30s;  // it is watched, and slow
  return must(Engine::open(config));
}

/// Until nobody writes to its standard input any more.
void wait_for_end_of_input() {
  char ignored[64];
  while (read(STDIN_FILENO, ignored, sizeof ignored) > 0) {
  }
}

int own(const Options& options) {
  Engine engine = open(options);
  Segment segment = must(engine.add(memory_of(options)));
  Grant grant = must(segment.grant({}, Rights::read_write));
  must(engine.publish("memory", grant));
  std::cout << engine.address() << std::endl;
  wait_for_end_of_input();
  return 0;
}

const char* name_of(Report::Copied::Known known) {
  switch (known) {
    case Report::Copied::Known::counted:
      return "counted";
    case Report::Copied::Known::declared:
      return "declared";
    case Report::Copied::Known::unknown:
      return "unknown";
  }
  return "?";
}

int move(const Options& options) {
  Engine engine = open(options);
  Segment segment = must(engine.add(memory_of(options)));
  Peer peer = must(engine.connect(options.address, soon()));
  Remote remote = must(peer.lookup("memory", soon()));
  std::vector<Pair> pairs;
  for (std::uint64_t i = 0; i < options.pieces; ++i)
    pairs.push_back({2 * i * options.piece, 2 * i * options.piece, options.piece});
  Transfer transfer = must(options.read ? engine.read(segment, remote, pairs)
                                        : engine.write(segment, remote, pairs));
  must(transfer.wait(soon()));
  const Report report = transfer.report();
  std::cout << "carried " << report.bytes_done << '\n';
  for (const auto& copied : report.copied)
    std::cout << "copied " << to_string(copied.by) << (copied.at_peer ? " there " : " here ")
              << name_of(copied.known) << ' ' << copied.bytes << '\n';
  return 0;
}

int main(int count, char** values) {
  CLI::App app("One side of a transfer between two processes, to be watched.");
  Options options;
  app.add_option("--provider", options.provider)->required();
  app.add_option("--piece", options.piece);
  app.add_option("--pieces", options.pieces);
  app.add_option("--to", options.address, "the owner's address; without it, this is the owner");
  app.add_flag("--bounce", options.bounce);
  app.add_flag("--read", options.read);
  app.add_flag("--shared", options.shared, "memory that other processes may map");
  CLI11_PARSE(app, count, values);
  return options.address.empty() ? own(options) : move(options);
}

}  // namespace
}  // namespace weft::witness

int main(int count, char** values) {
  try {
    return weft::witness::main(count, values);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
