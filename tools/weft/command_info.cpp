// weft info: what this build and this machine have.
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <weft/version.hpp>

#include "commands.hpp"
#include "console.hpp"
#include "nic_counters_json.hpp"
#include "units.hpp"

namespace weft::tool {
namespace {

using nlohmann::json;

const char* fence_name(FenceScope scope) {
  switch (scope) {
    case FenceScope::grant:
      return "grant";
    case FenceScope::segment:
      return "segment";
    case FenceScope::rail:
      return "rail";
  }
  return "?";
}

const char* origin_name(Origin origin) {
  return origin == Origin::native ? "native" : "emulated";
}

const char* proof_name(CompletionProof proof) {
  return proof == CompletionProof::visible ? "visible" : "received";
}

const char* progress_name(ProgressMode mode) {
  return mode == ProgressMode::automatic ? "automatic" : "manual";
}

const char* source_name(Setting::Source source) {
  switch (source) {
    case Setting::Source::standard:
      return "default";
    case Setting::Source::file:
      return "file";
    case Setting::Source::environment:
      return "environment";
    case Setting::Source::call:
      return "call";
  }
  return "?";
}

nlohmann::ordered_json to_json(const Carriage& carriage) {
  return {{"initiator_copies", carriage.initiator_copies},
          {"target_copies", carriage.target_copies},
          {"by", to_string(carriage.by)},
          {"bounced_below", carriage.bounced_below},
          {"initiator_bounces", carriage.initiator_bounces},
          {"target_bounces", carriage.target_bounces}};
}

nlohmann::ordered_json to_json(const Tuning& tuning) {
  const Tuning::FewCores& few = tuning.few_cores;
  return {{"chunk", tuning.chunk},
          {"chunk_alone", tuning.chunk_alone},
          {"window", tuning.window},
          {"rails", tuning.rails},
          {"rails_sharing", tuning.rails_sharing},
          {"share", tuning.share},
          {"few_cores",
           {{"window_on_host", few.window_on_host},
            {"one_core", few.one_core},
            {"one_for_mapped", few.one_for_mapped},
            {"share", few.share},
            {"part", few.part}}}};
}

/// The whole record, in the order of its declaration.
nlohmann::ordered_json to_json(const Capability& record) {
  return {{"provider", record.provider},
          {"domain", record.domain},
          {"address_format", record.address_format},
          {"protocol", record.protocol},
          {"same_host_only", record.same_host_only},
          {"application_keys", record.application_keys},
          {"virtual_addresses", record.virtual_addresses},
          {"local_registration", record.local_registration},
          {"keys_enforced", record.keys_enforced},
          {"fence", fence_name(record.fence)},
          {"max_message", record.max_message},
          {"max_send", record.max_send},
          {"window", record.window},
          {"iov_limit", record.iov_limit},
          {"rma_pieces", record.rma_pieces},
          {"shared_doorbell", record.shared_doorbell},
          {"inject", record.inject},
          {"completion_data", record.completion_data},
          {"write", origin_name(record.write)},
          {"read", origin_name(record.read)},
          {"proof", proof_name(record.proof)},
          {"ordered_messages", record.ordered_messages},
          {"path_failures", record.path_failures},
          {"wait_descriptor", record.wait_descriptor},
          {"progress", progress_name(record.progress)},
          {"device_memory", record.device_memory},
          {"dmabuf", record.dmabuf},
          {"cancels", record.cancels},
          {"gbps", record.gbps},
          {"maps_memory", record.maps_memory},
          {"device_memory_problem", record.device_memory_problem},
          {"write_carriage", to_json(record.write_carriage)},
          {"read_carriage", to_json(record.read_carriage)},
          {"message_carriage", to_json(record.message_carriage)},
          {"fills_alone", record.fills_alone},
          {"tuning", to_json(record.tuning)}};
}

std::string libfabric_version(const Info& info) {
  for (const RailInfo& rail : info.rails)
    if (!rail.capability.libfabric_version.empty()) return rail.capability.libfabric_version;
  return "not in use";
}

nlohmann::ordered_json to_json(const Info& info, const std::vector<NicCounters>& nics) {
  nlohmann::ordered_json candidates = json::array();
  for (const Candidate& each : info.candidates)
    candidates.push_back({{"provider", each.provider},
                          {"domain", each.domain},
                          {"fabric", each.fabric},
                          {"taken", each.taken},
                          {"reason", each.reason}});
  nlohmann::ordered_json rails = json::array();
  for (const RailInfo& rail : info.rails)
    rails.push_back(
        {{"name", rail.name}, {"thread", rail.thread}, {"capability", to_json(rail.capability)}});
  nlohmann::ordered_json settings = json::array();
  for (const Setting& each : info.settings)
    settings.push_back({{"name", each.name},
                        {"value", each.value},
                        {"source", source_name(each.source)},
                        {"place", each.place}});
  return {{"command", "info"},
          {"weft", WEFT_VERSION},
          {"libfabric", libfabric_version(info)},
          {"candidates", std::move(candidates)},
          {"fallback", info.fallback},
          {"settings", std::move(settings)},
          {"rails", std::move(rails)},
          {"nic_counters", tool::to_json(nics)}};
}

std::string text(const Setting& setting) {
  const std::string place = setting.place.empty() ? "" : fmt::format(" {}", setting.place);
  return fmt::format("  {:<30} {:<22} {}{}\n", setting.name,
                     setting.value.empty() ? "(empty)" : setting.value, source_name(setting.source),
                     place);
}

/// What one NIC has counted, a line each.
std::string text(const nlohmann::ordered_json& nic) {
  std::string out =
      fmt::format("\nNIC {}, bytes of all processes\n", nic["nic"].get<std::string>());
  for (const auto& [name, count] : nic.items())
    if (count.is_number()) out += fmt::format("  {:<22} {}\n", name, grouped(count));
  return out;
}

std::string text(const Info& info, const std::vector<NicCounters>& nics) {
  std::string out =
      fmt::format("Weft {}, libfabric {}\n\nLooked at\n", WEFT_VERSION, libfabric_version(info));
  for (const Candidate& each : info.candidates)
    out += fmt::format("  {:<7} {:<21} {:<14} {}\n", each.taken ? "taken" : "passed", each.provider,
                       each.domain, each.reason);
  if (!info.fallback.empty()) out += fmt::format("\nA slower way is taken: {}\n", info.fallback);
  if (!info.settings.empty()) out += "\nSettings, and where they come from\n";
  for (const Setting& each : info.settings) out += text(each);
  for (const RailInfo& rail : info.rails) {
    out += fmt::format("\nRail {}, on progress thread {}\n", rail.name, rail.thread);
    const nlohmann::ordered_json record = to_json(rail.capability);
    for (const auto& [name, value] : record.items())
      out += fmt::format("  {:<20} {}\n", name,
                         value.is_string() ? value.get<std::string>() : value.dump());
  }
  for (const auto& nic : tool::to_json(nics)) out += text(nic);
  return out;
}

/// An engine could not be opened: what was looked at says why.
int without_rails(const InfoOptions& options, const Config& config, const Error& error) {
  if (!options.console.json)
    if (const auto found = discover(config)) {
      Info info;
      info.candidates = *found;
      print(text(info, {}));
    }
  return end_with("info", options.console, error);
}

}  // namespace

int run_info(const InfoOptions& options) {
  const Config config = engine_config(options.fabric);
  auto engine = Engine::open(config);
  if (!engine) return without_rails(options, config, engine.error());
  const Info info = engine->info();
  const std::vector<NicCounters> nics = engine->nic_counters();
  print(options.console.json ? to_json(info, nics).dump(2) + "\n" : text(info, nics));
  return exit_success;
}

}  // namespace weft::tool
