// Messages by somebody who never met the engine, to the receives that it has posted for its peers.
#include <cstring>
#include <random>

#include "message_generated.h"
#include "providers/shm/mail.hpp"
#include "scene.hpp"

namespace weft::test {
namespace {

using wire::BounceHead;
using wire::MessageHead;

// The engine draws 64 bits for each peer.
constexpr std::uint64_t guessed_token = 0x1234'5678'9abc'def0;
constexpr std::uint64_t forged_signal = 77;
constexpr std::size_t payload = 100;

template <typename Head>
Blob message(const Head& head) {
  Blob bytes(sizeof head + payload, std::byte{0xee});
  std::memcpy(bytes.data(), &head, sizeof head);
  return bytes;
}

Blob noise(std::size_t length) {
  std::mt19937 random(static_cast<unsigned>(length));
  Blob bytes(length);
  for (std::byte& each : bytes) each = static_cast<std::byte>(random());
  return bytes;
}

class RogueMessages : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    const Range all[] = {{0, Scene::segment_bytes}};
    aim = scene.grant(all, Rights::read_write);
  }
  bool is_fabric() const { return GetParam() != "shm"; }
  /// Nothing came of it, and the engine works as before.
  void expect_nothing_happened() {
    scene.expect_untouched();
    scene.expect_no_signal(forged_signal);
    scene.expect_friends_served();
    scene.expect_untouched();
    scene.end();
  }

  Scene scene{GetParam()};
  Aim aim;
};

TEST_P(RogueMessages, NoiseIsIgnored) {
  constexpr std::size_t lengths[] = {0,
                                     1,
                                     8,
                                     sizeof(MessageHead) - 1,
                                     sizeof(MessageHead),
                                     41,
                                     sizeof(BounceHead) - 1,
                                     sizeof(BounceHead),
                                     49,
                                     1000,
                                     8192};
  for (const std::size_t length : lengths)
    for (const Class type : {Class::message, Class::bounce})
      EXPECT_EQ(scene.send(type, noise(length)).how, Ending::done) << length;
  expect_nothing_happened();
}

TEST_P(RogueMessages, ForgedHeadsAreIgnored) {
  for (std::uint8_t kind = 0; kind < 6; ++kind) {
    const MessageHead head(guessed_token, forged_signal, payload, 1, kind, false, 4096);
    EXPECT_EQ(scene.send(Class::message, message(head)).how, Ending::done) << int(kind);
  }
  // The lease is in the grant, and so known; the token is not.
  for (std::uint8_t kind = 0; kind < 6; ++kind) {
    const BounceHead head(guessed_token, 1, scene.lease(), payload, 0, kind, 0, 0);
    EXPECT_EQ(scene.send(Class::bounce, message(head)).how, Ending::done) << int(kind);
  }
  expect_nothing_happened();
}

TEST_P(RogueMessages, ThatAreTooLongUseUpNoReceives) {
  if (GetParam() == "fi_shm") GTEST_SKIP() << "one such message stops libfabric's shm (1.17)";
  // More than there are receives, and longer than they are. ofi_rxm has long messages fetched by
  // their receiver, and whoever sends one that does not fit never hears of it.
  const bool hears = GetParam() != "verbs" && GetParam() != "tcp;ofi_rxm";
  const auto send = [&](Class type, std::size_t length) {
    const auto ending = scene.send(type, noise(length), hears ? 30s : 50ms);
    if (hears) {
      EXPECT_NE(ending.how, Ending::silent);
    }
  };
  for (int i = 0; i < 100; ++i) send(Class::message, 20'000);
  for (int i = 0; i < 50; ++i) send(Class::bounce, 300'000);
  expect_nothing_happened();
}

TEST_P(RogueMessages, ThatNobodyReceivesHarmNobody) {
  constexpr auto other_class = static_cast<Class>(99);
  // They may wait at the target for ever, and so may whoever sends them.
  for (int i = 0; i < 10; ++i) scene.send(other_class, noise(1000), 100ms);
  if (is_fabric()) {
    for (int i = 0; i < 10; ++i) scene.send(Class::none, noise(1000), 100ms);
  }
  expect_nothing_happened();
}

TEST_P(RogueMessages, ThatComeWithAWriteAreIgnored) {
  if (!is_fabric()) GTEST_SKIP() << "there are no such writes";
  if (scene.fabric() == "efa-direct") GTEST_SKIP() << "a stranger's writes are refused";
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(scene.attack("write_data", aim, 1000, 30s).how, Ending::done);
    scene.expect_moved(Direction::write, 0, 1000);
  }
  expect_nothing_happened();
}

TEST_P(RogueMessages, RingsThatAreScribbledOverAreIgnored) {
  if (is_fabric()) GTEST_SKIP() << "there are no rings";
  namespace shm = providers::shm;
  constexpr std::uint64_t counts[] = {
      1, sizeof(shm::MessageHead), 1000, shm::ring_bytes, shm::ring_bytes + 1, ~std::uint64_t{0}};
  for (const std::uint64_t count : counts) scene.scribble(noise(shm::ring_bytes), count);
  // One that begins well and never ends.
  for (const std::uint64_t length : {std::uint64_t{1} << 63, ~std::uint64_t{0}}) {
    const shm::MessageHead head{1, length};
    scene.scribble(std::as_bytes(std::span(&head, 1)), shm::ring_bytes);
  }
  expect_nothing_happened();
}

INSTANTIATE_TEST_SUITE_P(All, RogueMessages, testing::ValuesIn(all_providers()),
                         [](const auto& info) { return name_of(info.param); });

}  // namespace
}  // namespace weft::test
