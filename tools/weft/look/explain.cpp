// weft explain: the path that a transfer would take.
#include <fmt/format.h>
#include <unistd.h>

#include <optional>

#include "command/ending.hpp"
#include "common/interrupt.hpp"
#include "common/local_address.hpp"
#include "common/output.hpp"
#include "common/printable.hpp"
#include "look/commands.hpp"
#include "look/graphviz.hpp"
#include "look/path_views.hpp"
#include "look/topology_views.hpp"

namespace weft::tool {
namespace {

std::string own_name() {
  char host[256] = "host";
  gethostname(host, sizeof host - 1);
  return fmt::format("{}{}-{}", explainer_prefix, host, getpid());
}

struct Answer {
  Result<Path> path;
  int signal = 0;  ///< That came meanwhile.
};

/// Asks an engine about the path to the one that listens at `address`.
Answer ask(const ExplainOptions& options, Engine& engine, const std::string& address) {
  const Interrupt interrupt([&] { (void)engine.close(Deadline::in(closing_time)); });
  auto path = engine.connect(address, Deadline::in(options.timeout)).and_then([&](Peer peer) {
    TransferOptions transfer;
    transfer.priority = options.priority;
    transfer.policy = options.policy;
    return peer.explain(options.memory, options.peer_memory.value_or(options.memory),
                        options.direction, transfer);
  });
  return {std::move(path), interrupt.signal()};
}

/// With an engine of its own, and another one if there is none to connect to.
Answer explained(const ExplainOptions& options) {
  Config config = engine_config(options.engine);
  std::string address = options.peer;
  std::optional<Engine> other;
  if (address.empty()) {
    auto opened = Engine::open(config);
    if (!opened) return {fail(std::move(opened.error()))};
    address = opened->address();
    other = std::move(*opened);
  }
  config.name = own_name();
  config.listen.clear();
  if (config.rail_address.empty()) config.rail_address = local_address_towards(address);
  auto own = Engine::open(config);
  if (!own) return {fail(std::move(own.error()))};
  return ask(options, *own, address);
}

}  // namespace

int run_explain(const ExplainOptions& options) {
  const auto [path, signal] = explained(options);
  if (signal != 0) return end_with_signal("explain", options.console, signal);
  if (!path) return end_with("explain", options.console, path.error());
  if (auto drawn = render_to(options.svg, to_dot(*path), "svg"); !drawn)
    return end_with_cause("explain", options.console, drawn.error());
  const bool refused = !path->refused.empty();
  nlohmann::ordered_json document = to_json(*path);
  // As every error has them in JSON.
  if (refused)
    document.update({{"error", path->refused}, {"code", to_string(Code::policy_refused)}});
  if (options.svg != standard_output)
    print(options.console.json ? dump(document) : path_text(*path));
  if (!refused) return exit_success;
  if (!options.console.json || !options.console.quiet)
    complain(fmt::format("weft explain: refused: {}\n", printable(path->refused)));
  return exit_failure;
}

}  // namespace weft::tool
