// What comes from outside and is no friend.
#include <sys/resource.h>

#include <random>
#include <thread>

#include "fixture.hpp"

namespace weft::core::test {
namespace {

void expect_mismatch(const Result<LinkId>& link, std::string_view part) {
  ASSERT_FALSE(link);
  EXPECT_EQ(link.error().code(), Code::protocol_mismatch);
  EXPECT_NE(link.error().message().find(part), std::string::npos) << link.error().message();
}

std::string text_of(const Blob& blob) {
  return std::string(reinterpret_cast<const char*>(blob.data()), blob.size());
}

void expect_still_meets(Engine& engine) {
  Engine friendly("friendly", 1, quick(""));
  const Result<LinkId> link = friendly.connect(engine);
  EXPECT_TRUE(link) << link.error().message();
}

/// Plays a server that answers `reply` to whatever it gets, and closes.
Result<LinkId> connect_to_server(std::string_view reply, ControlConfig config = quick("")) {
  Raw listener = Raw::listen();
  std::thread server([&] {
    Raw connection = listener.accept();
    connection.receive();
    connection.send(reply);
  });
  Engine client("client", 1, config);
  Result<LinkId> link = client.connect(listener.address());
  server.join();
  return link;
}

TEST(Stranger, HttpServerAtTheAddress) {
  expect_mismatch(connect_to_server("HTTP/1.1 400 Bad Request\r\nServer: x\r\n\r\n"),
                  "does not speak Weft's protocol (got 'HTTP/1.1 400 Bad Request...')");
}

TEST(Stranger, SshServerAtTheAddress) {
  expect_mismatch(connect_to_server("SSH-2.0-OpenSSH_9.2\r\n"), "(got 'SSH-2.0-OpenSSH_9.2...')");
}

TEST(Stranger, ThePreambleEndsALineForServersThatReadLines) {
  Raw listener = Raw::listen();
  std::thread server([&] {
    Raw connection = listener.accept();
    std::string got;
    while (got.find("\r\n\r\n") == std::string::npos) got += text_of(connection.receive());
    connection.send("HTTP/1.0 400\r\n");
  });
  Engine client("client", 1, quick(""));
  expect_mismatch(client.connect(listener.address()), "HTTP/1.0 400");
  server.join();
}

TEST(Stranger, ServerThatClosesAtOnce) {
  const Result<LinkId> link = connect_to_server("");
  ASSERT_FALSE(link);
  EXPECT_EQ(link.error().code(), Code::unavailable);
  EXPECT_NE(link.error().message().find("closed the connection without a word"), std::string::npos)
      << link.error().message();
}

TEST(Stranger, ServerThatSaysNothing) {
  ControlConfig config = quick("");
  config.handshake_time = 200ms;
  Raw listener = Raw::listen();
  Engine client("client", 1, config);
  const Result<LinkId> link = client.connect(listener.address());
  ASSERT_FALSE(link);
  EXPECT_EQ(link.error().code(), Code::timed_out);
  EXPECT_NE(link.error().message().find("did not say a word within 0.2 s"), std::string::npos)
      << link.error().message();
}

TEST(Stranger, ForeignClients) {
  Engine engine("engine");
  const std::pair<std::string, std::string> clients[] = {
      {"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "(got 'GET / HTTP/1.1...')"},
      {std::string("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11), "(got '\\x16\\x03\\x01"},
      {"SSH-2.0-x\r\n", "(got 'SSH-2.0-x...')"},
      {std::string("WEFT\x02\x00\x01\x00\r\n\r\n", 12), "(got 'WEFT\\x02\\x00\\x01\\x00...')"},
      {std::string("WEFT\x01\x00\x01\x00oops", 12), "does not speak"}};
  for (const auto& [hello, sentence] : clients) {
    Raw raw = Raw::connect(engine.plane->address());
    ASSERT_TRUE(raw.send(hello));
    EXPECT_NE(text_of(raw.receive_all()).find("Weft's control protocol only"), std::string::npos);
    EXPECT_TRUE(engine.wait_for_trouble(sentence)) << sentence;
  }
  using enum LinkEnd;
  EXPECT_EQ(engine.refusals(),
            (std::vector<LinkEnd>{not_weft, credentials, not_weft, not_weft, not_weft}));
  expect_still_meets(engine);
}

TEST(Stranger, AMegabyteOfNoise) {
  Engine engine("engine");
  std::mt19937 random(1);
  std::string noise(1 << 20, ' ');
  for (char& c : noise) c = static_cast<char>(random());
  Raw raw = Raw::connect(engine.plane->address());
  raw.send(noise);  // may be cut off
  raw.receive_all();
  EXPECT_TRUE(engine.wait_for_trouble("does not speak Weft's protocol"));
  expect_still_meets(engine);
}

TEST(Stranger, AMegabyteAfterAGoodPreamble) {
  Engine engine("engine");
  Raw raw = Raw::connect(engine.plane->address());
  raw.send_preamble();
  raw.send(std::string(1 << 20, '\xff'));
  raw.receive_all();
  EXPECT_TRUE(engine.wait_for_trouble("announced a frame of 4294967295 bytes, more than 65536"));
  expect_still_meets(engine);
}

TEST(Stranger, OversizeFrameOnALinkThatIsUp) {
  Engine engine("engine");
  Raw raw = Raw::connect(engine.plane->address());
  raw.meet(introduce("raw"));
  ASSERT_TRUE(engine.recorder->wait(Event::up));
  raw.send(std::string("\x01\x10\x10\x00", 4));  // limits::frame + 1
  const auto down = engine.recorder->wait(Event::down);
  ASSERT_TRUE(down);
  EXPECT_EQ(down->why->code(), Code::protocol_mismatch);
  EXPECT_EQ(down->how, LinkEnd::violation);
  EXPECT_NE(down->why->message().find("announced a frame of 1052673 bytes"), std::string::npos)
      << down->why->message();
}

TEST(Stranger, TruncatedFrame) {
  Engine engine("engine");
  {
    Raw raw = Raw::connect(engine.plane->address());
    raw.send_preamble();
    const Blob hello = encode(Hello{introduce("raw"), {}}).value();
    raw.send(Bytes(hello).first(hello.size() / 2));
  }
  EXPECT_TRUE(engine.wait_for_trouble("closed the connection without a goodbye"));
  EXPECT_EQ(engine.recorder->count(Event::meet), 0u);
  expect_still_meets(engine);
}

TEST(Stranger, BytesOneByOne) {
  Engine engine("engine");
  Raw raw = Raw::connect(engine.plane->address());
  const Preamble preamble = write_preamble(spoken_versions);
  for (const std::byte& byte : preamble) raw.send(Bytes(&byte, 1));
  const Blob hello = encode(Hello{introduce("a"), {}}).value();
  for (const std::byte& byte : hello) raw.send(Bytes(&byte, 1));
  ASSERT_TRUE(raw.receive_preamble());
  EXPECT_TRUE(raw.receive_kind<Proof>());
}

TEST(Stranger, MessagesOutOfTurn) {
  Engine engine("engine");
  const auto expect_goodbye = [&](const ControlMessage& early) {
    Raw raw = Raw::connect(engine.plane->address());
    raw.send_preamble();
    raw.send(early);
    ASSERT_TRUE(raw.receive_preamble());
    EXPECT_TRUE(raw.receive_kind<Goodbye>());
    EXPECT_FALSE(raw.receive_message());
  };
  expect_goodbye(Proof{});
  expect_goodbye(Choice{});
  expect_goodbye(Duplicate{1});
  expect_goodbye(Lost{});
  expect_goodbye(Ready{});
  expect_goodbye(Heartbeat{});
  const Notice notice = RevokeRequest{1};
  expect_goodbye(notice);
  EXPECT_EQ(engine.recorder->count(Event::meet), 0u);
  EXPECT_EQ(engine.refusals(), std::vector<LinkEnd>(7, LinkEnd::violation));
  // A follower that chooses, and a peer that is ready and talks before it was heard.
  Raw raw = Raw::connect(engine.plane->address());
  raw.meet(introduce("a"));
  raw.send(Choice{});
  EXPECT_TRUE(raw.receive_kind<Goodbye>());
  EXPECT_TRUE(engine.recorder->wait(Event::down));
  expect_still_meets(engine);
}

TEST(Stranger, MutatedIntroductions) {
  Engine engine("engine");
  const Blob good = encode(Hello{introduce("raw"), {1, 2}}).value();
  std::mt19937 random(7);
  for (int i = 0; i < 300; ++i) {
    Blob bad = good;
    for (auto n = random() % 4 + 1; n > 0; --n)
      bad[limits::frame_header + random() % (bad.size() - limits::frame_header)] =
          static_cast<std::byte>(random());
    Raw raw = Raw::connect(engine.plane->address());
    raw.send_preamble();
    raw.send(Bytes(bad));
    ASSERT_TRUE(raw.receive_preamble());
    ASSERT_TRUE(raw.receive_kind<Hello>());
    // Refused, or harmless.
    const std::optional<ControlMessage> answer = raw.receive_message();
    ASSERT_TRUE(answer);
    EXPECT_TRUE(std::holds_alternative<Goodbye>(*answer) || std::holds_alternative<Proof>(*answer));
  }
  EXPECT_EQ(engine.recorder->count(Event::meet), 0u);
  expect_still_meets(engine);
}

TEST(Stranger, IdleConnectionsKeepNobodyOut) {
  ControlConfig config = quick();
  config.handshake_time = 60s;
  Engine engine("engine", 1, config);
  std::vector<Raw> idle;
  for (int i = 0; i < 300; ++i) idle.push_back(Raw::connect(engine.plane->address()));
  expect_still_meets(engine);
  EXPECT_TRUE(engine.wait_for_trouble("was turned away: 256 connections wait"));
  EXPECT_EQ(engine.refusals().front(), LinkEnd::crowded);
  EXPECT_TRUE(idle.front().receive().empty()) << "the oldest is dropped";
}

TEST(Stranger, IdleConnectionsAreClosedInTime) {
  ControlConfig config = quick();
  config.handshake_time = 100ms;
  Engine engine("engine", 1, config);
  Raw silent = Raw::connect(engine.plane->address());
  EXPECT_TRUE(silent.receive_all().empty());
  Raw greeted = Raw::connect(engine.plane->address());
  greeted.send_preamble();
  greeted.receive_all();
  EXPECT_TRUE(engine.wait_for_trouble("did not say a word within 0.1 s"));
  EXPECT_TRUE(engine.wait_for_trouble("did not finish meeting within 0.1 s"));
  EXPECT_EQ(engine.refusals(), std::vector<LinkEnd>(2, LinkEnd::late));
}

// Versions.

TEST(Version, NoneInCommon) {
  Engine engine("engine", 1, quick(), {.versions = {5, 6}});
  Engine client("client", 1, quick(""), {.versions = {0, 1}});
  expect_mismatch(client.connect(engine),
                  "speaks versions 5..6 of Weft's protocol, this engine versions 0..1");
  EXPECT_TRUE(engine.wait_for_trouble(
      "speaks versions 0..1 of Weft's protocol, this engine versions 5..6"));
  EXPECT_EQ(engine.refusals(), std::vector<LinkEnd>(1, LinkEnd::version));
}

TEST(Version, TheOneBeforeIsUnderstood) {
  Engine engine("engine", 1, quick(), {.versions = {1, 2}});
  Engine client("client", 1, quick(""), {.versions = {0, 1}});
  EXPECT_TRUE(client.connect(engine));
}

/// A heartbeat that claims to be a message of a kind not known yet.
Blob unknown_message() {
  const Blob frame = encode(Heartbeat{}).value();
  for (std::size_t i = limits::frame_header; i < frame.size(); ++i) {
    Blob changed = frame;
    changed[i] = std::byte{200};
    const Result<ControlMessage> read = decode(changed);
    if (read && std::holds_alternative<UnknownMessage>(*read)) return changed;
  }
  ADD_FAILURE() << "no byte of a frame tells its kind";
  return {};
}

TEST(Version, UnknownMessagesOfNewerPeersAreSkipped) {
  for (const bool newer : {true, false}) {
    Engine engine("engine");
    Raw raw = Raw::connect(engine.plane->address());
    VersionRange versions = spoken_versions;
    versions.newest = static_cast<std::uint16_t>(versions.newest + (newer ? 1 : 0));
    raw.send_preamble(versions);
    ASSERT_TRUE(raw.receive_preamble());
    raw.send(Bytes(unknown_message()));
    raw.send(Hello{introduce("raw"), {}});
    EXPECT_EQ(raw.receive_kind<Proof>().has_value(), newer);
  }
}

}  // namespace
}  // namespace weft::core::test
