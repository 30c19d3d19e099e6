// weft serve: lends the files of a folder to peers, each under its name.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <future>
#include <vector>
#include <weft/engine.hpp>

#include "common/interrupt.hpp"
#include "common/options.hpp"
#include "common/printable.hpp"
#include "files/commands.hpp"

namespace weft::tool {
namespace {

namespace fs = std::filesystem;

/// What peers may use until the end.
struct Lent {
  Segment segment;
  Grant grant;
};

/// Their paths within the folder, sorted; nothing of links, devices and empty files.
Result<std::vector<std::string>> names_in(const std::string& dir) {
  std::vector<std::string> names;
  std::error_code error;
  const fs::path root(dir);
  for (auto at = fs::recursive_directory_iterator(root, error);
       !error && at != fs::recursive_directory_iterator(); at.increment(error))
    if (at->symlink_status(error).type() == fs::file_type::regular && at->file_size(error) > 0)
      names.push_back(at->path().lexically_relative(root).string());
  if (error) return fail(Code::not_found, fmt::format("the folder '{}': {}", dir, error.message()));
  std::sort(names.begin(), names.end());
  return names;
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

/// All of them, and their list.
Result<std::vector<Lent>> lend_all(const ServeOptions& options, Engine& engine) {
  const auto names = names_in(options.dir);
  if (!names) return fail(names.error());
  FileOptions file;
  file.direct = !options.buffered;
  file.read_only = !options.writable;
  file.durable = options.durable;
  const Rights rights = options.writable ? Rights::read_write : Rights::read;
  std::vector<Lent> lent;
  std::string list;
  for (const std::string& name : *names) {
    const auto path = (fs::path(options.dir) / name).string();
    const std::string shown = printable(name);
    auto made = lend(engine, Memory::file(path, 0, 0, file), shown, rights);
    if (!made) return fail(std::move(made.error()));
    list += fmt::format("{} {}\n", made->segment.size(), shown);
    lent.push_back(std::move(*made));
  }
  auto made = lend(engine, Memory::own(list.size() + 1), list_of_files, Rights::read);
  if (!made) return fail(std::move(made.error()));
  std::memset(made->segment.data(), ' ', made->segment.size());
  std::memcpy(made->segment.data(), list.data(), list.size());
  lent.push_back(std::move(*made));
  return lent;
}

Result<void> announce(const ServeOptions& options, const Engine& engine, std::size_t files) {
  if (auto told = tell_ready(options.ready_fd, engine.address()); !told) return told;
  if (options.console.json)
    print(dump({{"command", "serve"}, {"address", engine.address()}, {"files", files}}));
  else
    print(fmt::format("weft serve: {} files of {} at {}\n", files, options.dir, engine.address()));
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
  auto lent = lend_all(options, *engine);
  if (!lent) return end_with("serve", options.console, lent.error());
  if (auto told = announce(options, *engine, lent->size() - 1); !told)
    return end_with("serve", options.console, told.error());
  over.get_future().wait();
  (void)engine->close(Deadline::in(closing_time));
  return end_with_signal("serve", options.console, interrupt.signal());
}

}  // namespace weft::tool
