// weft topo: what a machine has, and which NICs serve what.
#include <fmt/format.h>

#include <cstdlib>
#include <optional>
#include <weft/engine.hpp>

#include "command/ending.hpp"
#include "common/output.hpp"
#include "common/printable.hpp"
#include "look/commands.hpp"
#include "look/graphviz.hpp"
#include "look/nic_pairing.hpp"
#include "look/topology_views.hpp"

namespace weft::tool {
namespace {

/// Empty: this machine.
std::string chosen_file(const TopoOptions& options) {
  if (!options.xml.empty()) return options.xml;
  const char* named = std::getenv("WEFT_TOPO_XML");
  return named == nullptr ? "" : named;
}

Result<Machine> load(const std::string& xml) {
  // Of this machine libfabric knows more.
  auto topology = xml.empty() ? machine_topology(Config{}) : load_topology(xml);
  if (!topology) return fail(std::move(topology.error()));
  return examine(std::move(*topology));
}

int capture(const TopoOptions& options) {
  const auto written = capture_topology().and_then(
      [&](const std::string& xml) { return write_output(options.capture, xml); });
  if (!written) return end_with("topo", options.console, written.error());
  const nlohmann::ordered_json json = {{"captured", options.capture}};
  if (options.capture == standard_output) return exit_success;
  print(options.console.json ? dump(json) : fmt::format("wrote {}\n", printable(options.capture)));
  return exit_success;
}

Result<void> draw(const Machine& machine, const TopoOptions& options) {
  const std::string graph = to_dot(machine);
  return render_to(options.svg, graph, "svg").and_then([&] {
    return render_to(options.png, graph, "png");
  });
}

std::string as_json(const Machine& machine, const std::optional<Machine>& peer) {
  nlohmann::ordered_json json = to_json(machine);
  if (peer) json["pairing"] = pairing_json(pair_machines(machine, *peer), machine, *peer);
  return dump(json);
}

std::string as_text(const Machine& machine, const std::optional<Machine>& peer) {
  std::string text = tree_text(machine.topology) + serving_text(machine);
  if (peer) text += pairing_text(pair_machines(machine, *peer), machine, *peer);
  return text;
}

int show(const TopoOptions& options) {
  auto machine = load(chosen_file(options));
  if (!machine) return end_with("topo", options.console, machine.error());
  std::optional<Machine> peer;
  if (!options.peer_xml.empty()) {
    auto loaded = load(options.peer_xml);
    if (!loaded) return end_with("topo", options.console, loaded.error());
    peer = std::move(*loaded);
  }
  if (auto drawn = draw(*machine, options); !drawn)
    return end_with_cause("topo", options.console, drawn.error());
  if (options.svg == standard_output || options.png == standard_output) return exit_success;
  print(options.console.json ? as_json(*machine, peer) : as_text(*machine, peer));
  return exit_success;
}

}  // namespace

int run_topo(const TopoOptions& options) {
  return options.capture.empty() ? show(options) : capture(options);
}

}  // namespace weft::tool
