#include "scene.hpp"

#include <rdma/fi_domain.h>

#include <sstream>

#include "../control/fixture.hpp"

namespace weft::test {
namespace {

constexpr std::size_t rogue_bytes = 1 << 20;

std::uint64_t next_seed = 1;

std::vector<std::string> victims_arguments(const std::string& provider, const std::string& path) {
  // Debian's libfabric brings a library along that otherwise makes an exit of a fatal signal.
  setenv("IPATH_NO_BACKTRACE", "1", 1);
  return {provider, path};
}

Engine engine_for(const Variant& variant) {
  Config config = config_for(variant, 1);
  config.name = name_of(variant);
  return must(Engine::open(config));
}

/// What libfabric is asked for so that an endpoint understands that of the victim.
std::uint64_t memory_mode(const Capability& capability) {
  std::uint64_t mode = 0;
  if (!capability.application_keys) mode |= FI_MR_PROV_KEY | FI_MR_ALLOCATED;
  if (capability.virtual_addresses) mode |= FI_MR_VIRT_ADDR;
  if (capability.local_registration) mode |= FI_MR_LOCAL;
  return mode;
}

Ending ending_from(const std::string& text) {
  std::istringstream words(text);
  int how = 0, error = 0;
  words >> how >> error;
  return {static_cast<Ending::How>(how), error};
}

}  // namespace

core::Introduction overhear(const std::string& address) {
  auto connection = core::test::Raw::connect(address);
  connection.send_preamble();
  connection.receive_preamble();
  const auto hello = connection.receive_kind<core::Hello>();
  if (!hello) throw std::runtime_error("the victim does not introduce itself");
  return hello->introduction;
}

Friend::Friend(const Variant& variant, const std::string& victim)
    : engine_(engine_for(variant)),
      capability_(engine_.info().rails.front().capability),
      segment_(must(engine_.add(Memory::own(Scene::segment_bytes)))),
      to_victim_(must(engine_.connect(victim, soon()))),
      shared_(must(to_victim_.lookup("shared", soon()))) {
  for (const Candidate& each : engine_.info().candidates)
    if (each.taken) fabric_ = each.fabric;
}

void Friend::expect_served(Child& victim, std::span<const std::byte> there) {
  expect_moves(victim, there);
  expect_messages(victim);
}

void Friend::expect_moves(Child& victim, std::span<const std::byte> there) {
  const Pair all[] = {{0, 0, Scene::segment_bytes}};
  const std::uint64_t seed = next_seed++;
  fill(bytes_of(segment_), seed);
  auto write = engine_.write(segment_, shared_, all, {.signal = Signal{.id = seed}});
  ASSERT_TRUE(succeeds(write));
  ASSERT_TRUE(succeeds(write->wait(soon())));
  EXPECT_EQ(victim.ask("expect " + name() + ' ' + std::to_string(seed)), "yes");
  EXPECT_TRUE(holds(there, seed));
  fill(bytes_of(segment_), next_seed++);
  auto read = engine_.read(segment_, shared_, all);
  ASSERT_TRUE(succeeds(read));
  ASSERT_TRUE(succeeds(read->wait(soon())));
  EXPECT_TRUE(holds(bytes_of(segment_), seed));
}

void Friend::write_one_byte() {
  const Pair one[] = {{0, 0, 1}};
  must(must(engine_.write(segment_, shared_, one)).wait(soon()));
}

void Friend::expect_messages(Child& victim) {
  const std::uint64_t tag = next_seed++;
  const Blob bytes = pattern(1000, tag);
  must(to_victim_.send(tag, bytes, soon()));
  const std::string place = name() + ' ' + std::to_string(tag);
  EXPECT_EQ(victim.ask("hear " + place), to_hex(bytes));
  EXPECT_EQ(victim.ask("tell " + place + ' ' + to_hex(bytes)), "yes");
  const auto back = to_victim_.recv(tag, ~0ULL, soon());
  ASSERT_TRUE(succeeds(back));
  EXPECT_EQ(back->bytes, bytes);
}

Scene::Scene(const std::string& provider)
    : victim_memory_(2 * segment_bytes),
      rogue_memory_(rogue_bytes),
      victim_("victim", victims_arguments(provider, victim_memory_.path())),
      address_(victim_.hear()),
      shared_grant_(from_hex(victim_.hear())) {
  for (const TransportKind kind : {TransportKind::one_sided, TransportKind::bounce})
    friends_.emplace_back(Variant{provider, kind}, address_);
  start_rogue(provider);
  for (const Child* each : {&victim_, &*rogue_}) leftovers_.note(each->pid());
  paint();
}

void Scene::start_rogue(const std::string& provider) {
  const core::Introduction victim = overhear(address_);
  const Friend& one = friends_.front();
  std::vector<std::string> arguments = {rogue_memory_.path(), to_hex(victim.rails.front().address)};
  same_address_space_ = provider == "shm";
  if (!same_address_space_) {
    const bool visible = capability().proof == CompletionProof::visible;
    arguments.insert(
        arguments.end(),
        {capability().provider, one.fabric(), std::to_string(memory_mode(capability())),
         std::to_string(capability().address_format), visible ? "visible" : "received"});
  }
  rogue_.emplace("rogue", arguments);
  rogue_->hear();
}

Aim Scene::grant(std::span<const Range> ranges, Rights rights) {
  std::string question = "grant " + std::to_string(static_cast<unsigned>(rights));
  for (const Range& each : ranges)
    question += ' ' + std::to_string(each.offset) + ' ' + std::to_string(each.length);
  const auto grant = must(core::decode_grant(from_hex(victim_.ask(question))));
  lease_ = grant.lease;
  return aim_at(grant);
}

Aim Scene::aim_at(const core::GrantDescription& grant) {
  const core::RailKey& rail = grant.keys.front();
  if (!same_address_space_) return {rail.base, rail.key, 0};
  return {std::stoull(rogue_->ask("base " + std::to_string(rail.key))), rail.key, 0};
}

void Scene::paint() {
  fill(attacked(), next_seed++);
  fill(rogues(), next_seed++);
  victims_picture_.assign(attacked().begin(), attacked().end());
  rogues_picture_.assign(rogues().begin(), rogues().end());
}

Ending Scene::attack(const std::string& verb, const Aim& aim, std::size_t length,
                     std::chrono::milliseconds patience) {
  std::ostringstream question;
  question << verb << ' ' << aim.address << ' ' << aim.key << ' '
           << (aim.length > 0 ? aim.length : length) << ' ' << length << ' ' << patience.count();
  return ending_from(rogue_->ask(question.str()));
}

void Scene::await_dealt_with() {
  constexpr std::size_t length = 8;
  const Aim shared = aim_at(must(core::decode_grant(shared_grant_)));
  const Deadline deadline = soon();
  Ending ending{Ending::silent};
  while (ending.how != Ending::done && !victim_.ended() && !deadline.passed())
    ending = attack("read", shared, length, 500ms);
  if (ending.how != Ending::done) {
    EXPECT_TRUE(victim_.ended()) << "the victim neither answers nor ends";
    return;
  }
  const auto read = victim_memory_.bytes().subspan(segment_bytes, length);
  EXPECT_TRUE(same_bytes(rogues().first(length), read));
  std::copy(read.begin(), read.end(), rogues_picture_.begin());
}

void Scene::give_rogue(Bytes bytes) {
  std::copy(bytes.begin(), bytes.end(), rogues().begin());
  std::copy(bytes.begin(), bytes.end(), rogues_picture_.begin());
}

void Scene::scribble(Bytes bytes, std::uint64_t count) {
  give_rogue(bytes);
  EXPECT_EQ(rogue_->ask("scribble " + std::to_string(count)), "yes");
}

Ending Scene::send(Class type, Bytes bytes, std::chrono::milliseconds patience) {
  // The victim has receives for those only while a peer needs them: the second friend does now.
  if (type == Class::bounce) friends_.back().write_one_byte();
  give_rogue(bytes);
  std::ostringstream question;
  question << "send " << static_cast<std::uint64_t>(type) << ' ' << bytes.size() << ' '
           << patience.count();
  return ending_from(rogue_->ask(question.str()));
}

void Scene::expect_untouched() {
  EXPECT_TRUE(same_bytes(attacked(), victims_picture_)) << "of the victim's";
  EXPECT_TRUE(same_bytes(rogues(), rogues_picture_)) << "of the rogue's";
}

void Scene::expect_moved(Direction direction, std::uint64_t offset, std::size_t length) {
  const Pair piece[] = {{0, offset, length}};
  Blob& written = direction == Direction::write ? victims_picture_ : rogues_picture_;
  const Blob& source = direction == Direction::write ? rogues_picture_ : victims_picture_;
  written = expected_after(written, source, direction, piece);
  expect_untouched();
}

std::size_t Scene::count_moved(Direction direction, std::uint64_t offset,
                               std::size_t length) const {
  const auto there = attacked().subspan(offset, length), here = rogues().first(length);
  const Blob& source = direction == Direction::write ? rogues_picture_ : victims_picture_;
  const auto from = source.begin() + (direction == Direction::write ? 0 : std::ptrdiff_t(offset));
  const auto written = direction == Direction::write ? there : here;
  const auto end = std::mismatch(written.begin(), written.end(), from).first;
  return static_cast<std::size_t>(end - written.begin());
}

void Scene::expect_friends_served() {
  const auto there = victim_memory_.bytes().subspan(segment_bytes);
  for (Friend& each : friends_) each.expect_served(victim_, there);
}

void Scene::expect_no_signal(std::uint64_t number) {
  for (const Friend& each : friends_)
    EXPECT_EQ(victim_.ask("nothing " + each.name() + ' ' + std::to_string(number)), "yes");
}

void Scene::end() {
  rogue_->say("end");
  EXPECT_EQ(rogue_->join(), 0);
  victim_.say("end");
  EXPECT_EQ(victim_.join(), 0);
}

}  // namespace weft::test
