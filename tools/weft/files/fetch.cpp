// weft fetch: reads a file of weft serve's into one of this machine.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>
#include <weft/engine.hpp>

#include "common/interrupt.hpp"
#include "common/local_address.hpp"
#include "common/output.hpp"
#include "common/printable.hpp"
#include "common/units.hpp"
#include "files/commands.hpp"

namespace weft::tool {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t step = std::uint64_t{64} << 20;  // for which the timeout holds
constexpr std::uint64_t longest_list = std::uint64_t{64} << 20;

Result<void> read_piece(Engine& engine, const Segment& to, const Remote& from, const Pair& piece,
                        Nanoseconds timeout) {
  TransferOptions options;
  options.deadline = Deadline::in(timeout);
  auto read = engine.read(to, from, {&piece, 1}, std::move(options));
  if (!read) return fail(std::move(read.error()));
  return read->wait(Deadline::in(timeout));
}

/// All of it.
Result<void> read_all(Engine& engine, const Segment& to, const Remote& from, Nanoseconds timeout) {
  for (std::uint64_t at = 0; at < to.size(); at += step) {
    const Pair piece{at, at, std::min(step, to.size() - at)};
    if (auto read = read_piece(engine, to, from, piece, timeout); !read) return read;
  }
  return {};
}

struct Listed {
  std::string bytes, name;
};

/// What the peer shares.
Result<std::vector<Listed>> read_list(const FetchOptions& options, Engine& engine,
                                      const Peer& peer) {
  const auto list = peer.lookup(list_of_files, Deadline::in(options.timeout));
  if (!list) return fail(list.error());
  if (list->segment_size() > longest_list)
    return fail(Code::unsupported, "the peer's list of files is too long");
  auto lines = engine.add(Memory::own(list->segment_size()));
  if (!lines) return fail(std::move(lines.error()));
  if (auto read = read_all(engine, *lines, *list, options.timeout); !read)
    return fail(std::move(read.error()));
  std::vector<Listed> files;
  std::string_view left(reinterpret_cast<const char*>(lines->data()), list->segment_size());
  for (std::size_t end; (end = left.find('\n')) != left.npos; left.remove_prefix(end + 1)) {
    const std::string_view line = left.substr(0, end);
    const std::size_t space = std::min(line.find(' '), line.size() - 1);
    files.push_back({printable(line.substr(0, space)), printable(line.substr(space + 1))});
  }
  return files;
}

void show(const std::vector<Listed>& files, bool json) {
  auto list = nlohmann::ordered_json::array();
  for (const Listed& each : files)
    if (json)
      list.push_back({{"bytes", each.bytes}, {"name", each.name}});
    else
      print(fmt::format("{:>16} {}\n", each.bytes, each.name));
  if (json) print(dump({{"command", "fetch"}, {"files", list}}));
}

/// Straight into the file.
Result<void> fill(Engine& engine, const std::string& path, const Remote& from,
                  Nanoseconds timeout) {
  FileOptions growing;
  growing.create = true;
  auto segment = engine.add(Memory::file(path, 0, from.segment_size(), growing));
  if (!segment) return fail(std::move(segment.error()));
  return read_all(engine, *segment, from, timeout).and_then([&] {
    return segment->release(Deadline::in(timeout));
  });
}

/// Piece by piece through memory, to what takes bytes only one after the other.
Result<void> pour(Engine& engine, Output& output, const Remote& from, Nanoseconds timeout) {
  auto piece = engine.add(Memory::own(std::min(step, from.segment_size())));
  if (!piece) return fail(std::move(piece.error()));
  for (std::uint64_t at = 0; at < from.segment_size(); at += step) {
    const std::uint64_t bytes = std::min(step, from.segment_size() - at);
    const std::string_view text(reinterpret_cast<const char*>(piece->data()), bytes);
    auto poured = read_piece(engine, *piece, from, {0, at, bytes}, timeout).and_then([&] {
      return output.write(text);
    });
    if (!poured) return poured;
  }
  return {};
}

/// What is there stays until all has come.
Result<void> fetch_into(const std::string& path, Engine& engine, const Remote* from,
                        Nanoseconds timeout) {
  auto output = Output::open(path);
  if (!output) return fail(std::move(output.error()));
  Result<void> came;
  if (from != nullptr)
    came = output->beside().empty() ? pour(engine, *output, *from, timeout)
                                    : fill(engine, output->beside(), *from, timeout);
  return came.and_then([&] { return output->finish(); });
}

/// `from`: null for a file without bytes.
Result<void> fetch_file(const FetchOptions& options, Engine& engine, const Remote* from) {
  const std::string name = fs::path(options.name).filename();
  // A file that the peer calls "-" is one here, too.
  const std::string path = !options.output.empty()   ? options.output
                           : name == standard_output ? "./-"
                                                     : name;
  const auto begin = Clock::now();
  auto fetched = fetch_into(path, engine, from, options.timeout);
  if (!fetched || path == standard_output) return fetched;
  const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  const std::uint64_t bytes = from != nullptr ? from->segment_size() : 0;
  if (options.console.json)
    print(dump({{"command", "fetch"},
                {"name", options.name},
                {"file", path},
                {"bytes", bytes},
                {"seconds", seconds}}));
  else
    print(fmt::format("weft fetch: {} into {} in {:.2f} s\n", binary_bytes(bytes), path, seconds));
  return {};
}

Result<void> fetch(const FetchOptions& options, Engine& engine) {
  auto peer = engine.connect(options.peer, Deadline::in(options.timeout));
  if (!peer) return fail(std::move(peer.error()));
  const auto files = read_list(options, engine, *peer);
  if (!files) return fail(files.error());
  if (options.name.empty()) return show(*files, options.console.json), Result<void>();
  const auto listed = std::find_if(files->begin(), files->end(),
                                   [&](const Listed& each) { return each.name == options.name; });
  if (listed == files->end())
    return fail(Code::not_found, fmt::format("the peer shares no file '{}'", options.name));
  if (listed->bytes == "0") return fetch_file(options, engine, nullptr);
  auto remote = peer->lookup(options.name, Deadline::in(options.timeout));
  if (!remote) return fail(std::move(remote.error()));
  return fetch_file(options, engine, &*remote);
}

}  // namespace

int run_fetch(const FetchOptions& options) {
  Config config = engine_config(options.engine);
  if (config.rail_address.empty()) config.rail_address = local_address_towards(options.peer);
  auto engine = Engine::open(config);
  if (!engine) return end_with("fetch", options.console, engine.error());
  const Interrupt interrupt([&] { (void)engine->close(Deadline::in(closing_time)); });
  const auto fetched = fetch(options, *engine);
  if (interrupt.signal() != 0) return end_with_signal("fetch", options.console, interrupt.signal());
  return fetched ? exit_success : end_with("fetch", options.console, fetched.error());
}

}  // namespace weft::tool
