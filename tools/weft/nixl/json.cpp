#include <weft/version.hpp>

#include "nixl/views.hpp"

namespace weft::tool {
namespace {

using OrderedJson = nlohmann::ordered_json;

const char* name_of(NixlChange change) {
  switch (change) {
    case NixlChange::linked:
      return "linked";
    case NixlChange::linked_already:
      return "linked_already";
    case NixlChange::led_elsewhere:
      return "led_elsewhere";
    case NixlChange::took_name:
      return "took_name";
    case NixlChange::completed:
      return "completed";
    case NixlChange::removed:
      return "removed";
    case NixlChange::given_back:
      return "given_back";
    case NixlChange::nothing:
      return "nothing";
  }
  return "?";
}

const char* name_of(NixlLinkState state) {
  switch (state) {
    case NixlLinkState::linked:
      return "linked";
    case NixlLinkState::dangling:
      return "dangling";
    case NixlLinkState::interrupted:
      return "interrupted";
    case NixlLinkState::renewed:
      return "renewed";
  }
  return "?";
}

OrderedJson text_or_null(const std::string& text) {
  return text.empty() ? OrderedJson() : OrderedJson(text);
}

OrderedJson wheel_json(const NixlWheel& wheel) {
  return {{"package", wheel.package},
          {"version", wheel.version},
          {"checked", is_checked(wheel)},
          {"folder", wheel.folder}};
}

OrderedJson to_json(const NixlLink& link) {
  return {{"name", link.name},
          {"path", link.path},
          {"target", text_or_null(link.target)},
          {"state", name_of(link.state)},
          {"kept", text_or_null(link.kept)}};
}

OrderedJson to_json(const NixlChanged& changed) {
  return {{"name", changed.link.name},
          {"path", changed.link.path},
          {"target", text_or_null(changed.link.target)},
          {"change", name_of(changed.change)},
          {"before", text_or_null(changed.before)},
          {"kept", text_or_null(changed.link.kept)}};
}

OrderedJson to_json(const NixlOpening& opening) {
  return {{"name", opening.name},
          {"plugins", opening.plugins},
          {"memory", opening.memory},
          {"loaded", opening.loaded},
          {"bytes", opening.bytes},
          {"wrong", opening.wrong},
          {"problem", text_or_null(opening.problem)},
          {"log", opening.log}};
}

OrderedJson to_json(const NixlWheelChanges& wheel);
OrderedJson to_json(const NixlWheelStatus& status);

template <typename Element>
OrderedJson list_json(const std::vector<Element>& elements) {
  OrderedJson list = OrderedJson::array();
  for (const Element& each : elements) list.push_back(to_json(each));
  return list;
}

OrderedJson to_json(const NixlWheelChanges& wheel) {
  OrderedJson json = wheel_json(wheel.wheel);
  json["changes"] = list_json(wheel.changes);
  return json;
}

OrderedJson to_json(const NixlWheelStatus& status) {
  OrderedJson json = wheel_json(status.wheel);
  json["links"] = list_json(status.links);
  json["opened"] = list_json(status.openings);
  return json;
}

}  // namespace

OrderedJson to_json(const NixlPython& python) {
  return {{"executable", python.executable},
          {"version", python.version},
          {"nixl", text_or_null(python.nixl)}};
}

OrderedJson to_json(const std::vector<NixlWheelChanges>& wheels) {
  return list_json(wheels);
}

OrderedJson to_json(const NixlStatus& status) {
  return {{"weft", WEFT_VERSION},
          {"plugin", text_or_null(status.plugin)},
          {"python", to_json(status.python)},
          {"takes", text_or_null(status.choice.module)},
          {"import_problem", text_or_null(status.choice.problem)},
          {"plugin_dir", text_or_null(status.plugin_dir)},
          {"wheels", list_json(status.wheels)}};
}

}  // namespace weft::tool
