// weft info: what this build and this machine have.
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <weft/process.hpp>
#include <weft/version.hpp>

#include "command/ending.hpp"
#include "common/layout.hpp"
#include "common/units.hpp"
#include "look/commands.hpp"

namespace weft::tool {
namespace {

using nlohmann::json;

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
          {"window", tuning.window},
          {"rails", tuning.rails},
          {"rails_sharing", tuning.rails_sharing},
          {"share", tuning.share},
          {"few_cores",
           {{"window_on_host", few.window_on_host},
            {"one_core", few.one_core},
            {"one_for_mapped", few.one_for_mapped},
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
          {"pins_memory", record.pins_memory},
          {"registration_pages", record.registration_pages},
          {"keys_enforced", record.keys_enforced},
          {"fence", to_string(record.fence)},
          {"max_message", record.max_message},
          {"max_send", record.max_send},
          {"window", record.window},
          {"receive_queue", record.receive_queue},
          {"rma_pieces", record.rma_pieces},
          {"shared_doorbell", record.shared_doorbell},
          {"write", to_string(record.write)},
          {"read", to_string(record.read)},
          {"proof", to_string(record.proof)},
          {"path_failures", record.path_failures},
          {"device_memory", record.device_memory},
          {"dmabuf", record.dmabuf},
          {"gbps", record.gbps},
          {"maps_memory", record.maps_memory},
          {"device_memory_problem", record.device_memory_problem},
          {"write_carriage", to_json(record.write_carriage)},
          {"read_carriage", to_json(record.read_carriage)},
          {"message_carriage", to_json(record.message_carriage)},
          {"fills_alone", record.fills_alone},
          {"tuning", to_json(record.tuning)}};
}

std::string libfabric_version(const LibfabricInfo& libfabric) {
  return libfabric.version.empty() ? "not in use" : libfabric.version;
}

const char* set_by_name(ProcessVariable::SetBy set_by) {
  switch (set_by) {
    case ProcessVariable::SetBy::application:
      return "set before";
    case ProcessVariable::SetBy::prepared:
      return "set by prepare_process()";
    case ProcessVariable::SetBy::late:
      break;
  }
  return "set as libfabric was first used";
}

nlohmann::ordered_json to_json(const LibfabricInfo& libfabric) {
  return {{"version", libfabric.version}, {"file", libfabric.file},
          {"found", libfabric.found},     {"warning", libfabric.warning},
          {"problem", libfabric.problem}, {"others", libfabric.others}};
}

nlohmann::ordered_json to_json(const ProcessInfo& process) {
  nlohmann::ordered_json variables = json::array();
  for (const ProcessVariable& each : process.variables)
    variables.push_back(
        {{"name", each.name}, {"value", each.value}, {"set", set_by_name(each.set_by)}});
  return {{"libfabric", to_json(process.libfabric)}, {"variables", std::move(variables)}};
}

nlohmann::ordered_json count_json(const NicCounters::Count& count) {
  return count ? nlohmann::ordered_json(*count) : nlohmann::ordered_json();
}

/// Unknown counts are null.
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
    rails.push_back({{"name", rail.name},
                     {"thread", rail.thread},
                     {"capability", to_json(rail.capability)},
                     {"message_buffer_bytes", rail.message_buffer_bytes},
                     {"bounce_buffer_bytes", rail.bounce_buffer_bytes},
                     {"receives_promised", rail.receives_promised},
                     {"receives_posted", rail.receives_posted}});
  nlohmann::ordered_json settings = json::array();
  for (const Setting& each : info.settings)
    settings.push_back({{"name", each.name},
                        {"value", each.value},
                        {"source", to_string(each.source)},
                        {"place", each.place}});
  return {{"command", "info"},
          {"weft", WEFT_VERSION},
          {"libfabric", libfabric_version(info.libfabric)},
          {"candidates", std::move(candidates)},
          {"fallback", info.fallback},
          {"settings", std::move(settings)},
          {"rails", std::move(rails)},
          {"process", to_json(process_info())},
          {"nic_counters", to_json(nics)}};
}

std::string text(const Candidate& candidate) {
  return hanging(fmt::format("  {:<9} {:<21} {:<10} ", candidate.taken ? "used" : "not used",
                             candidate.provider, candidate.domain),
                 candidate.reason);
}

std::string text(const Setting& setting) {
  const std::string place = setting.place.empty() ? "" : " " + setting.place;
  return hanging(fmt::format("  {:<30} ", setting.name),
                 fmt::format("{:<22} {}{}", setting.value.empty() ? "(empty)" : setting.value,
                             to_string(setting.source), place));
}

/// Those that are not as always, or all.
std::string settings_text(const std::vector<Setting>& settings, bool all) {
  std::string out;
  for (const Setting& each : settings)
    if (all || each.source != Setting::Source::standard) out += text(each);
  if (settings.empty()) return out;
  if (out.empty()) return "\nSettings: all have their defaults (--verbose shows them)\n";
  return "\nSettings, and where they come from" +
         std::string(all ? "" : "; all others have their defaults (--verbose shows them)") + "\n" +
         out;
}

std::string copies_text(const Carriage& carriage) {
  const int copies = (carriage.initiator_copies ? 1 : 0) + (carriage.target_copies ? 1 : 0);
  return copies == 0 ? "none" : fmt::format("{} by the {}", copies, to_string(carriage.by));
}

std::string rail_line(const std::string& name, const std::string& device, const std::string& speed,
                      const std::string& copies, const std::string& gpu_memory,
                      const std::string& thread) {
  return fmt::format("  {:<14} {:<16} {:<14} {:<18} {:<11} {}\n", name, device, speed, copies,
                     gpu_memory, thread);
}

std::string rails_text(const std::vector<RailInfo>& rails) {
  std::string out = "\nRails (--verbose shows what each can do)\n" +
                    rail_line("rail", "on", "speed", "copies of a write", "GPU memory", "thread");
  for (const RailInfo& rail : rails)
    out += rail_line(rail.name, rail.capability.domain,
                     rail.capability.gbps > 0 ? bit_rate(rail.capability.gbps) : "unknown",
                     copies_text(rail.capability.write_carriage),
                     rail.capability.device_memory ? "yes" : "no", std::to_string(rail.thread));
  return out;
}

std::string value_text(const nlohmann::ordered_json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (!value.is_object()) return value.dump();
  std::string text;
  for (const auto& [name, each] : value.items())
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name, value_text(each));
  return text;
}

/// What it holds for peers.
std::string buffers_text(const RailInfo& rail) {
  const std::size_t most = rail.capability.receive_queue;
  return fmt::format("{} bytes for messages, {} for bounce buffers{}; {} of {} receives promised",
                     grouped(rail.message_buffer_bytes), grouped(rail.bounce_buffer_bytes),
                     rail.capability.local_registration ? ", pinned" : "", rail.receives_promised,
                     most > 0 ? grouped(most) : "any number of");
}

std::string record_text(const RailInfo& rail) {
  std::string out = fmt::format("\nRail {}, on progress thread {}\n", rail.name, rail.thread);
  out += hanging(fmt::format("  {:<22} ", "buffers"), buffers_text(rail));
  const nlohmann::ordered_json record = to_json(rail.capability);
  for (const auto& [name, value] : record.items())
    out += hanging(fmt::format("  {:<22} ", name), value_text(value));
  return out;
}

/// The counts of one NIC, a line each.
std::string text(const nlohmann::ordered_json& nic) {
  std::string out =
      fmt::format("\nNIC {}, bytes of all processes\n", nic["nic"].get<std::string>());
  for (const auto& [name, count] : nic.items())
    if (count.is_number()) out += fmt::format("  {:<22} {}\n", name, grouped(count));
  return out;
}

/// Which libfabric is called, and why, or why none is.
std::string text(const LibfabricInfo& libfabric) {
  if (!libfabric.problem.empty()) return hanging("because ", libfabric.problem);
  if (libfabric.file.empty()) return {};
  std::string out = hanging("libfabric: ", fmt::format("{} ({})", libfabric.file, libfabric.found));
  if (!libfabric.warning.empty()) out += hanging("Warning: ", libfabric.warning);
  for (const std::string& other : libfabric.others)
    out += hanging("Another libfabric is loaded, and not used: ", other);
  return out;
}

/// The variables that libfabric sees.
std::string text(const std::vector<ProcessVariable>& variables) {
  std::string out = "\nEnvironment variables that libfabric needs for Weft\n";
  for (const ProcessVariable& each : variables)
    out += hanging(fmt::format("  {:<30} ", each.name),
                   fmt::format("{:<22} {}", each.value, set_by_name(each.set_by)));
  return out;
}

std::string text(const Info& info, const std::vector<NicCounters>& nics, bool verbose) {
  std::string out =
      fmt::format("Weft {}, libfabric {}\n", WEFT_VERSION, libfabric_version(info.libfabric)) +
      text(info.libfabric) + "\nProviders and NICs\n";
  for (const Candidate& each : info.candidates) out += text(each);
  if (!info.fallback.empty()) out += "\n" + hanging("A slower way is used: ", info.fallback);
  out += settings_text(info.settings, verbose);
  if (verbose) out += text(process_info().variables);
  if (!info.rails.empty() && !verbose) out += rails_text(info.rails);
  for (const RailInfo& rail : info.rails)
    if (verbose) out += record_text(rail);
  for (const auto& nic : to_json(nics)) out += text(nic);
  return out;
}

/// An engine could not be opened: what was looked at says why.
int without_rails(const InfoOptions& options, const Config& config, const Error& error) {
  if (!options.console.json)
    if (const auto found = discover(config)) {
      Info info;
      info.candidates = *found;
      info.libfabric = process_info().libfabric;
      print(text(info, {}, options.verbose));
    }
  return end_with("info", options.console, error);
}

}  // namespace

int run_info(const InfoOptions& options) {
  const Config config = engine_config(options.engine);
  auto engine = Engine::open(config);
  if (!engine) return without_rails(options, config, engine.error());
  const Info info = engine->info();
  const std::vector<NicCounters> nics = engine->nic_counters();
  print(options.console.json ? to_json(info, nics).dump(2) + "\n"
                             : text(info, nics, options.verbose));
  return exit_success;
}

}  // namespace weft::tool
