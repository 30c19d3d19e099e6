#include "look/comparison.hpp"

namespace weft::tool {
namespace {

Json bytes_to_json(const std::optional<std::uint64_t>& bytes) {
  return bytes ? Json(*bytes) : Json();
}

std::optional<std::uint64_t> bytes_from_json(const Json& json) {
  if (json.is_null()) return std::nullopt;
  return json.get<std::uint64_t>();
}

Json row_to_json(const Comparison::Row& row) {
  return {{"what", row.what},
          {"by", row.by},
          {"side", row.side},
          {"declared", bytes_to_json(row.declared)},
          {"ledger", bytes_to_json(row.ledger)},
          {"known", row.known}};
}

Comparison::Row row_from_json(const Json& json) {
  return {json.at("what").get<std::string>(), json.at("by").get<std::string>(),
          json.at("side").get<std::string>(), bytes_from_json(json.at("declared")),
          bytes_from_json(json.at("ledger")), json.at("known").get<std::string>()};
}

Json nic_to_json(const Comparison::Nic& nic) {
  return {{"nic", nic.name},
          {"by_rdma", bytes_to_json(nic.by_rdma)},
          {"in_messages", bytes_to_json(nic.in_messages)},
          {"in_all", bytes_to_json(nic.in_all)}};
}

}  // namespace

Json to_json(const Comparison& comparison) {
  Json rows = Json::array(), nics = Json::array();
  for (const auto& row : comparison.rows) rows.push_back(row_to_json(row));
  for (const auto& nic : comparison.nics) nics.push_back(nic_to_json(nic));
  return {{"path", comparison.path},
          {"hops", std::move(rows)},
          {"copies_declared", comparison.copies_declared},
          {"copies_in_ledger", comparison.copies_in_ledger},
          {"rails_declared", comparison.rails_declared},
          {"rails_used", comparison.rails_used},
          {"seconds_queued", to_json(comparison.queued)},
          {"seconds_under_way", to_json(comparison.under_way)},
          {"retries", comparison.retries},
          {"nics", std::move(nics)},
          {"differences", comparison.differences}};
}

Comparison comparison_from_json(const Json& json) {
  Comparison read;
  read.path = json.at("path").get<std::string>();
  for (const Json& row : json.at("hops")) read.rows.push_back(row_from_json(row));
  read.copies_declared = json.at("copies_declared").get<double>();
  read.copies_in_ledger = json.at("copies_in_ledger").get<double>();
  read.rails_declared = json.at("rails_declared").get<std::vector<std::string>>();
  read.rails_used = json.at("rails_used").get<std::vector<std::string>>();
  read.queued = spread_from_json(json.at("seconds_queued"));
  read.under_way = spread_from_json(json.at("seconds_under_way"));
  read.retries = json.at("retries").get<std::uint64_t>();
  for (const Json& nic : json.at("nics"))
    read.nics.push_back({nic.at("nic").get<std::string>(), bytes_from_json(nic.at("by_rdma")),
                         bytes_from_json(nic.at("in_messages")),
                         bytes_from_json(nic.at("in_all"))});
  read.differences = json.at("differences").get<std::vector<std::string>>();
  return read;
}

}  // namespace weft::tool
