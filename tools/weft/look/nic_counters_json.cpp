#include "look/nic_counters_json.hpp"

namespace weft::tool {
namespace {

nlohmann::ordered_json count_json(const NicCounters::Count& count) {
  return count ? nlohmann::ordered_json(*count) : nlohmann::ordered_json();
}

}  // namespace

nlohmann::ordered_json to_json(const std::vector<NicCounters>& nics) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const NicCounters& nic : nics)
    list.push_back({{"nic", nic.nic},
                    {"rails", nic.rails},
                    {"sent", count_json(nic.sent)},
                    {"received", count_json(nic.received)},
                    {"rdma_written", count_json(nic.written)},
                    {"rdma_written_by_peers", count_json(nic.written_by_peers)},
                    {"rdma_read", count_json(nic.read)},
                    {"rdma_read_by_peers", count_json(nic.read_by_peers)},
                    {"messages_sent", count_json(nic.messages_sent)},
                    {"messages_received", count_json(nic.messages_received)}});
  return list;
}

}  // namespace weft::tool
