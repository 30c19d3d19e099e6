// weft serve: lends the files of a folder to peers, each under its name.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <future>
#include <optional>
#include <vector>
#include <weft/engine.hpp>

#include "common/descriptors.hpp"
#include "common/interrupt.hpp"
#include "common/options.hpp"
#include "common/printable.hpp"
#include "files/commands.hpp"
#include "files/folder.hpp"

namespace weft::tool {
namespace {

namespace fs = std::filesystem;

/// What peers may use until the end.
struct Lent {
  Segment segment;
  Grant grant;
};

/// Descriptors that are left to peers. A guess: each takes some.
constexpr std::uint64_t descriptors_of_peers = 128;
/// The first files that are left out are named one by one, so many.
constexpr std::size_t most_named = 10;

/// What is not shared, and why: one bad file is no reason to share nothing.
class LeftOut {
 public:
  explicit LeftOut(bool quiet) : quiet_(quiet) {}

  void add(const std::string& name, const std::string& why) {
    if (++count_ <= most_named) tell(fmt::format("'{}' is left out: {}", name, why));
  }
  void add_rest(std::size_t files, const std::string& why) {
    count_ += files;
    tell(fmt::format("{} files are left out: {}", files, why));
  }
  std::size_t count() const noexcept { return count_; }

 private:
  void tell(const std::string& text) const {
    if (!quiet_) complain(fmt::format("weft serve: {}\n", printable(text)));
  }

  const bool quiet_;
  std::size_t count_ = 0;
};

/// What keeps this process from opening another file; empty: nothing.
std::string shortage() {
  const DescriptorRoom room = descriptor_room();
  const std::uint64_t kept = std::min(descriptors_of_peers, room.limit / 4);
  if (room.left > kept) return {};
  return fmt::format("this process may open {} descriptors (ulimit -n), and {} are for peers",
                     room.limit, kept);
}

Result<Lent> lend(Engine& engine, const Memory& memory, const std::string& name, Rights rights) {
  auto segment = engine.add(memory);
  if (!segment) return fail(std::move(segment.error()));
  auto grant = segment->grant({}, rights);
  if (!grant) return fail(std::move(grant.error()));
  if (auto published = engine.publish(name, *grant); !published)
    return fail(std::move(published.error()));
  return Lent{std::move(*segment), std::move(*grant)};
}

struct Shared {
  std::vector<Lent> lent;
  std::size_t files = 0, left_out = 0;
};

/// One of them; nothing for a file without bytes, of which no segment can be made.
Result<std::optional<Lent>> lend_file(const ServeOptions& options, Engine& engine,
                                      const std::string& name, const std::string& shown) {
  const fs::path path = fs::path(options.dir) / name;
  std::error_code error;
  if (fs::file_size(path, error) == 0 && !error) return std::nullopt;
  FileOptions file;
  file.direct = !options.buffered;
  file.read_only = !options.writable;
  file.durable = options.durable;
  const Rights rights = options.writable ? Rights::read_write : Rights::read;
  return lend(engine, Memory::file(path, 0, 0, file), shown, rights).map([](Lent lent) {
    return std::optional(std::move(lent));
  });
}

/// All that can be, and their list.
Result<Shared> lend_all(const ServeOptions& options, Engine& engine) {
  LeftOut left_out(options.console.json && options.console.quiet);
  const auto names = files_of(options.dir, [&](const std::string& name, const std::string& why) {
    left_out.add(name, why);
  });
  if (!names) return fail(names.error());
  Shared shared;
  std::string list;
  for (std::size_t i = 0; i < names->size(); ++i) {
    if (const std::string lacking = shortage(); !lacking.empty()) {
      left_out.add_rest(names->size() - i, lacking);
      break;
    }
    const std::string shown = printable((*names)[i]);
    auto made = lend_file(options, engine, (*names)[i], shown);
    if (!made) {
      left_out.add(shown, made.error().message());
      continue;
    }
    list += fmt::format("{} {}\n", *made ? (*made)->segment.size() : 0, shown);
    ++shared.files;
    if (*made) shared.lent.push_back(std::move(**made));
  }
  shared.left_out = left_out.count();
  auto made = lend(engine, Memory::own(list.size() + 1), list_of_files, Rights::read);
  if (!made) return fail(std::move(made.error()));
  std::memset(made->segment.data(), ' ', made->segment.size());
  std::memcpy(made->segment.data(), list.data(), list.size());
  shared.lent.push_back(std::move(*made));
  return shared;
}

Result<void> announce(const ServeOptions& options, const Engine& engine, const Shared& shared) {
  if (auto told = tell_ready(options.ready_fd, engine.address()); !told) return told;
  if (options.console.json)
    print(dump({{"command", "serve"},
                {"address", engine.address()},
                {"files", shared.files},
                {"left_out", shared.left_out}}));
  else
    print(fmt::format("weft serve: {} files of {} at {}{}\n", shared.files, options.dir,
                      engine.address(),
                      shared.left_out > 0 ? fmt::format(", {} left out", shared.left_out) : ""));
  return {};
}

}  // namespace

int run_serve(const ServeOptions& options) {
  Config config = engine_config(options.engine);
  config.listen = options.listen;
  config.advertise = options.advertise;
  config.metrics_listen = options.metrics;
  config.allow_unauthenticated_network = options.allow_unauthenticated_network;
  std::promise<void> over;
  const Interrupt interrupt([&] { over.set_value(); });
  auto engine = Engine::open(config);
  if (!engine) return end_with("serve", options.console, engine.error());
  const auto shared = lend_all(options, *engine);
  if (!shared) return end_with("serve", options.console, shared.error());
  if (auto told = announce(options, *engine, *shared); !told)
    return end_with("serve", options.console, told.error());
  over.get_future().wait();
  (void)engine->close(Deadline::in(closing_time));
  return end_with_signal("serve", options.console, interrupt.signal());
}

}  // namespace weft::tool
