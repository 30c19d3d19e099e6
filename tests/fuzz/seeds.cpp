// Writes one valid input of each kind for each target, by the encoders as they are: where fuzzing
// begins. corpus.tar.xz has what was found besides.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <string>
#include <weft/weights_plan.hpp>

#include "control/preamble.hpp"
#include "control/tls.hpp"
#include "guards.hpp"
#include "hwloc_xml.hpp"
#include "kv/known_configs.hpp"
#include "machines.hpp"
#include "target.hpp"
#include "wire/control_codec.hpp"
#include "wire/grant_codec.hpp"

namespace {

using namespace weft;
using namespace weft::core;
namespace fs = std::filesystem;

class Seeds {
 public:
  Seeds(const fs::path& root, const std::string& target) : folder_(root / target) {
    fs::create_directories(folder_);
  }
  void add(const std::string& name, std::string_view contents) const {
    std::ofstream(folder_ / name, std::ios::binary) << contents;
  }
  void add(const std::string& name, const Blob& contents) const {
    add(name, std::string_view(reinterpret_cast<const char*>(contents.data()), contents.size()));
  }

 private:
  const fs::path folder_;
};

Introduction introduction(std::string name) {
  Introduction self;
  self.name = std::move(name);
  self.incarnation = 2;
  self.address = "127.0.0.1:7000";
  self.rails.push_back({.provider = "tcp",
                        .protocol = 7,
                        .address_format = 1,
                        .address = Blob(16),
                        .mbps = 100'000,
                        .packet = 8224});
  self.rails.push_back({.provider = "shm", .same_host_only = true, .address = Blob(8)});
  self.token = 3;
  self.max_message = 8192;
  self.message_credits = 32;
  self.bounce_buffers = 4;
  self.bounce_buffer_bytes = 1 << 18;
  return self;
}

struct Named {
  std::string name;
  ControlMessage message;
};

std::vector<Named> notices() {
  return {
      {"lookup", Notice(LookupRequest{1, "kv"})},
      {"abandoned", Notice(LookupAbandoned{1})},
      {"reply", Notice(LookupReply{1, Blob(40)})},
      {"signal-failed", Notice(SignalFailed{1, Code::stale, "old", true, 4096})},
      {"revoke", Notice(RevokeRequest{2})},
      {"revoked", Notice(RevokeConfirmed{2})},
      {"lease-renewed", Notice(LeaseRenewed{2})},
      {"query", Notice(GrantQuery{1, 2})},
      {"status", Notice(GrantStatus{1, true, std::chrono::seconds(5)})},
      {"fallback-message", Notice(FallbackMessage{Blob(48)})},
      {"fallback-taken", Notice(FallbackTaken{})},
      {"followed", Notice(RailFollowed{1})},
      {"check", Notice(CheckRequest{1, 2, {{0, 4096}, {8192, 1}}})},
      {"checked", Notice(CheckReply{1, Code{}, 3})},
      {"lent", Notice(GrantStatus{1, true, unlimited, {}, Lent{Blob(64), 5, 6}, ""})},
      {"renewed", Notice(GrantStatus{1, true, unlimited, {{2, 0, 8, 3, 4}}})},
      {"lost-key", Notice(RailMoved{1, Blob(32), {{2, 1, 8, 3, 4}, {5, 1, 9, 0, 7, "no room"}}})},
      {"moved", Notice(RailMoved{1, Blob(32), {{2, 1, 8, 3, 4}, {5, 1, 9, 6, 7}}})},
      {"replaced", Notice(KeysReplaced{1, {{2, 1, 8, 3, 4}}})},
      {"drained", Notice(KeysDrained{1})},
      {"credits-given-back", Notice(CreditsGivenBack{28})},
      {"bounce-credits", Notice(BounceCredits{BounceCredits::Step::wanted, 1, 2, 4})}};
}

std::vector<Named> messages() {
  std::vector<Named> all = {{"hello", Hello{introduction("a"), {1, 2, "boot", "weft-1", {}}}},
                            {"proof", Proof{.proven = true}},
                            {"no-proof", Proof{.reason = "another host"}},
                            {"choice", Choice{}},
                            {"duplicate", Duplicate{1}},
                            {"lost", Lost{}},
                            {"ready", Ready{}},
                            {"rail-out", Ready{{{1, "no slot is free"}}}},
                            {"refusal", Refusal{Code::unavailable, "no rail in common"}},
                            {"heartbeat", Heartbeat{true}},
                            {"goodbye", Goodbye{"it was closed"}}};
  for (Named& notice : notices()) all.push_back(std::move(notice));
  return all;
}

void append(Blob& conversation, std::initializer_list<ControlMessage> messages) {
  for (const ControlMessage& message : messages) {
    const Blob frame = encode(message).value();
    conversation.insert(conversation.end(), frame.begin(), frame.end());
  }
}

/// Up to the preamble. `side` as the target has it.
Blob greeting(std::uint8_t side) {
  const Preamble preamble = write_preamble(spoken_versions);
  Blob begun{std::byte{side}};
  begun.insert(begun.end(), preamble.begin(), preamble.end());
  return begun;
}

/// As somebody whose name is smaller than the engine's, and who therefore chooses; or greater.
Blob conversation(std::uint8_t side, const std::string& name) {
  Blob all = greeting(side);
  append(all, {Hello{introduction(name), {1, 2}}, Proof{.reason = "another host"}});
  if (name < "m") append(all, {Choice{}});
  append(all, {Ready{}, Heartbeat{true}});
  return all;
}

void write_plain_handshakes(const Seeds& seeds, const std::string& how, std::uint8_t side) {
  seeds.add("greeting-" + how, greeting(side));
  for (const char* name : {"a", "z"}) {
    Blob all = conversation(side, name);
    seeds.add("meets-" + how + "-" + name, all);
    for (const Named& notice : notices()) append(all, {notice.message});
    append(all, {Goodbye{"enough"}});
    seeds.add("talks-" + how + "-" + name, all);
  }
  Blob duplicate = greeting(side);
  append(duplicate, {Hello{introduction("a"), {}}, Proof{}, Duplicate{1}, Lost{}});
  seeds.add("duplicate-" + how, duplicate);
}

/// Of TLS the first flights alone: what follows depends on what both sides draw.
void write_tls_handshakes(const Seeds& seeds, const std::string& by, std::uint8_t guard) {
  const fuzz::Guards guards;
  const auto credentials = Credentials::load(guards.of(guard)).value();
  Tls client(*credentials, Tls::Role::dials, ""), server(*credentials, Tls::Role::accepts, "");
  std::vector<std::byte> none;
  const auto answer_of = [&](Tls& side, Bytes received, std::uint8_t to) {
    fuzz::require(side.receive(received, none).has_value(), "a handshake among friends fails");
    Blob answer = side.take_output();
    answer.insert(answer.begin(), std::byte{to});
    return answer;
  };
  const Blob hello = answer_of(client, {}, guard);
  seeds.add("tls-hello-" + by, hello);
  seeds.add("tls-answer-" + by, answer_of(server, Bytes(hello).subspan(1), guard | 0x80));
  const std::string alert("\x15\x03\x03\x00\x02\x02\x31", 7);
  seeds.add("tls-alert-" + by, static_cast<char>(guard | 0x80) + alert);
  seeds.add("plain-" + by, greeting(guard));
}

void write_handshakes(const Seeds& seeds) {
  write_plain_handshakes(seeds, "accepts", 0x00);
  write_plain_handshakes(seeds, "dials", 0x80);
  seeds.add("http", std::string(1, '\0') + "GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  write_tls_handshakes(seeds, "secret", 1);
  write_tls_handshakes(seeds, "certificate", 2);
}

void write_grants(const Seeds& seeds) {
  GrantDescription grant;
  grant.engine = "decode";
  grant.incarnation = 1;
  grant.address = "127.0.0.1:7000";
  grant.segment = 1;
  grant.segment_size = 1 << 20;
  grant.lease = 1;
  grant.ranges = {{0, 4096}};
  grant.epoch = 2;
  grant.keys = {{0, 0, 1, {0, 4096}}};
  grant.epoch_keys = {{0, 64, 3}};
  seeds.add("one-range", encode_grant(grant));
  grant.rights = Rights::read_write;
  grant.place = {MemoryKind::device, 1, 2};
  grant.ranges = {{0, 4096}, {4096, 1}, {8192, (1 << 20) - 8192}};
  grant.ttl = std::chrono::seconds(30);
  grant.extent_bytes = 1 << 19;
  grant.keys = {
      {0, 0, 1, {0, 1 << 19}}, {0, 0, 5, {1 << 19, 1 << 19}}, {3, 1ULL << 40, ~0ULL, {0, 1 << 19}}};
  grant.epoch_keys.push_back({3, 1ULL << 41, 4});
  grant.bounced = {{1}, {2}};
  seeds.add("three-ranges", encode_grant(grant));
  grant.bounced = {{1, "no room for keys"}, {2, "no room for keys"}};
  seeds.add("why-bounced", encode_grant(grant));
  grant.block_bytes = 4096;
  seeds.add("whole-blocks", encode_grant(grant));
}

/// Trainers with half a matrix each, and an inference rank with columns of it.
void write_weights(const Seeds& seeds) {
  using namespace weights;
  Shard upper{.name = "w", .shape = {4, 8}, .begin = {0, 0}, .extent = {2, 8}};
  Shard lower = upper, columns = upper;
  lower.begin = {2, 0};
  columns.begin = {0, 2};
  columns.extent = {4, 3};
  World world;
  world.publishers = {{.name = "trainer0", .host = "a", .shards = {upper}},
                      {.name = "trainer1", .shards = {lower}}};
  world.subscribers = {{.name = "rank0", .host = "a", .shards = {columns}},
                       {.name = "rank1", .host = "b", .shards = {columns}}};
  seeds.add("columns", to_json(world));
}

void write_settings(const Seeds& seeds) {
  const std::string file =
      "# A comment.\n"
      "providers = [\"efa\", '^tcp']\n"
      "spin = '250us'\n"
      "chunk_bytes = 65536\n"
      "peer_events = true\n"
      "name = \"\"\"two\nlines\"\"\"\n";
  const std::string environment =
      "WEFT_RAILS=2\nWEFT_WINDOW=4KiB\nWEFT_DEATH_AFTER=3s\nWEFT_PROGRESS=manual\n"
      "WEFT_TRANSPORT=bounce\nWEFT_NICS=rdmap*, ^eth0\nWEFT_ALLOW_EMULATION=0\n";
  seeds.add("file", file);
  seeds.add("environment", std::string(1, '\0') + environment);
  seeds.add("both", file + '\0' + environment);
  seeds.add("table", "[rails]\ncount = 1.5\ndate = 2026-01-01T00:00:00Z\n");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: fuzz-seeds FOLDER\n", stderr);
    return 2;
  }
  const fs::path root = argv[1];
  write_handshakes({root, "handshake"});
  const Seeds control(root, "control");
  for (const Named& each : messages()) control.add(each.name, encode(each.message).value());
  write_grants({root, "grant"});
  write_settings({root, "settings"});
  const Seeds configs(root, "kv_config");
  for (const kv::KnownConfig& known : kv::known_configs())
    configs.add(std::string(known.name), known.json);
  write_weights({root, "weights"});
  const Seeds topology(root, "topology");
  for (const char* name : {"laptop", "g5", "c5n"})
    topology.add(name, facts::hwloc_xml(*facts::find_machine(name)));
  return 0;
}
