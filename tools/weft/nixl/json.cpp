#include "nixl/json.hpp"

#include <weft/version.hpp>

namespace weft::tool {
namespace {

using Json = nlohmann::ordered_json;

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

Json known(const std::string& text) {
  return text.empty() ? Json() : Json(text);
}

Json wheel_json(const NixlWheel& wheel) {
  return {{"package", wheel.package},
          {"version", wheel.version},
          {"checked", is_checked(wheel)},
          {"folder", wheel.folder}};
}

Json to_json(const NixlLink& link) {
  return {{"name", link.name},
          {"path", link.path},
          {"target", known(link.target)},
          {"state", name_of(link.state)},
          {"kept", known(link.kept)}};
}

Json to_json(const NixlChanged& changed) {
  return {{"name", changed.link.name},
          {"path", changed.link.path},
          {"target", known(changed.link.target)},
          {"change", name_of(changed.change)},
          {"before", known(changed.before)},
          {"kept", known(changed.link.kept)}};
}

Json to_json(const NixlOpening& opening) {
  return {{"name", opening.name},
          {"plugins", opening.plugins},
          {"memory", opening.memory},
          {"loaded", opening.loaded},
          {"bytes", opening.bytes},
          {"wrong", opening.wrong},
          {"problem", known(opening.problem)},
          {"log", opening.log}};
}

Json to_json(const NixlWheelChanges& wheel);
Json to_json(const NixlWheelStatus& status);

template <typename Element>
Json list_json(const std::vector<Element>& elements) {
  Json list = Json::array();
  for (const Element& each : elements) list.push_back(to_json(each));
  return list;
}

Json to_json(const NixlWheelChanges& wheel) {
  Json json = wheel_json(wheel.wheel);
  json["changes"] = list_json(wheel.changes);
  return json;
}

Json to_json(const NixlWheelStatus& status) {
  Json json = wheel_json(status.wheel);
  json["links"] = list_json(status.links);
  json["opened"] = list_json(status.openings);
  return json;
}

}  // namespace

Json to_json(const NixlPython& python) {
  return {
      {"executable", python.executable}, {"version", python.version}, {"nixl", known(python.nixl)}};
}

Json to_json(const std::vector<NixlWheelChanges>& wheels) {
  return list_json(wheels);
}

Json to_json(const NixlStatus& status) {
  return {{"weft", WEFT_VERSION},
          {"plugin", known(status.plugin)},
          {"python", to_json(status.python)},
          {"takes", known(status.choice.module)},
          {"import_problem", known(status.choice.problem)},
          {"plugin_dir", known(status.plugin_dir)},
          {"wheels", list_json(status.wheels)}};
}

}  // namespace weft::tool
