#include "common/names.hpp"
#include "look/path_views.hpp"

namespace weft::tool {
namespace {

using OrderedJson = nlohmann::ordered_json;

OrderedJson stop_json(const Stop& stop) {
  const auto known = [](int number) { return number < 0 ? OrderedJson() : OrderedJson(number); };
  return {{"kind", to_string(stop.kind)},
          {"side", to_string(stop.side)},
          {"numa", known(stop.numa_node)},
          {"gpu", known(stop.device)},
          {"name", stop.name.empty() ? OrderedJson() : OrderedJson(stop.name)}};
}

OrderedJson hop_json(const Hop& hop) {
  return {{"from", stop_json(hop.from)},
          {"to", stop_json(hop.to)},
          {"by", to_string(hop.by)},
          {"side", to_string(hop.side)},
          {"copies", hop.copies()}};
}

}  // namespace

OrderedJson to_json(const Path& path) {
  OrderedJson hops = OrderedJson::array();
  for (const Hop& hop : path.hops) hops.push_back(hop_json(hop));
  return {{"direction", name_of(direction_names, path.direction)},
          {"transport", name_of(transport_names, path.transport)},
          {"provider", path.provider},
          {"rails", path.rails},
          {"same_host", path.same_host},
          {"hops", std::move(hops)},
          {"copies", path.copies},
          {"copies_local", path.copies_local},
          {"copies_remote", path.copies_remote},
          {"cpu_copies", path.cpu_copies},
          {"bounced_below", path.bounced_below},
          {"bounces_local", path.bounces_local},
          {"bounces_remote", path.bounces_remote},
          {"gpudirect_local", path.gpudirect_local},
          {"gpudirect_remote", path.gpudirect_remote},
          {"gbps", path.gbps > 0 ? OrderedJson(path.gbps) : OrderedJson()},
          {"limit", path.limit},
          {"not_used", path.not_used},
          {"refused", path.refused.empty() ? OrderedJson() : OrderedJson(path.refused)}};
}

}  // namespace weft::tool
