// Engines that prove themselves before they move anything.
#include "certificates.hpp"
#include "engines.hpp"

namespace weft::test {
namespace {

class Credentials : public testing::TestWithParam<std::string> {
 protected:
  Config with_secret(std::string_view secret) const {
    Config config = config_for(GetParam());
    config.secret_file = folder.write(std::string(secret), secret);
    return config;
  }
  Config with_certificate(const Authority& authority) const {
    const CertificateFiles files = authority.issue("engine");
    Config config = config_for(GetParam());
    config.tls_certificate = files.certificate;
    config.tls_key = files.key;
    config.tls_authorities = files.authorities;
    return config;
  }
  static void expect_to_move(const Config& config) {
    Couple pair = couple(config);
    Board board(pair, 100'000, 100'000);
    const Pair piece[] = {{0, 1000, 99'000}};
    board.expect_moved(Direction::write, piece);
    board.expect_moved(Direction::read, piece);
  }
  static void expect_refused(const Config& client, const Config& server) {
    Engine listening = must(Engine::open(server)), dialling = must(Engine::open(client));
    const Result<Peer> peer = dialling.connect(listening.address(), soon());
    EXPECT_TRUE(fails_with(peer, Code::permission_denied));
    EXPECT_TRUE(listening.peers().empty());
    const Result<Peer> nobody = listening.accept(Deadline::in(100ms));
    ASSERT_TRUE(fails_with(nobody, Code::timed_out));
    EXPECT_NE(nobody.error().message().find("came to nothing, the last: "), std::string::npos)
        << nobody.error().to_string();
    Engine friendly = must(Engine::open(server));
    EXPECT_TRUE(succeeds(friendly.connect(listening.address(), soon())));
  }

  const Folder folder;
  const Authority ours{folder, "ours"}, theirs{folder, "theirs"};
};

TEST_P(Credentials, ASecretLetsEnginesMove) {
  expect_to_move(with_secret("a secret of all of them"));
}

TEST_P(Credentials, CertificatesLetEnginesMove) {
  expect_to_move(with_certificate(ours));
}

TEST_P(Credentials, AnotherSecretIsRefused) {
  expect_refused(with_secret("a secret of others alone"), with_secret("a secret of all of them"));
}

TEST_P(Credentials, AnotherAuthorityIsRefused) {
  expect_refused(with_certificate(theirs), with_certificate(ours));
}

TEST_P(Credentials, NoneAreRefused) {
  expect_refused(config_for(GetParam()), with_secret("a secret of all of them"));
}

TEST_P(Credentials, WhoComesBackHasToProveItselfAgain) {
  Engine engine = must(Engine::open(with_secret("a secret of all of them")));
  Config service = with_secret("a secret of all of them");
  service.name = "service";
  service.listen = lasting_address();
  std::optional<Peer> before;
  for (int life = 0; life < 3; ++life) {
    Engine serving = must(Engine::open(service));
    if (!before) must(engine.keep_connected(serving.address(), soon()));
    const Peer peer = must(engine.peer("service", soon()));
    if (before) {
      EXPECT_NE(peer.incarnation(), before->incarnation());
    }
    before = peer;
    must(serving.close(soon()));
    EXPECT_TRUE(fails_with(must(peer.expect(1, 1)).wait(soon()), Code::peer_down));
  }
  Config impostor = with_secret("a secret of others alone");
  impostor.name = "service";
  impostor.listen = service.listen;
  const Engine posing = must(Engine::open(impostor));
  EXPECT_TRUE(fails_with(engine.peer("service", Deadline::in(500ms)), Code::timed_out));
  EXPECT_TRUE(posing.peers().empty());
}

TEST_P(Credentials, TheSecretIsNotShown) {
  const std::string secret = "a secret of all of them";
  Config config = config_for(GetParam());
  config.secret_file = folder.write("secret", secret);
  Engine engine = must(Engine::open(config));
  for (const Setting& setting : engine.info().settings) {
    EXPECT_EQ(setting.value.find(secret), std::string::npos);
    if (setting.name == "secret_file") {
      EXPECT_EQ(setting.value, config.secret_file);
    }
  }
}

TEST_P(Credentials, AFileThatCannotBeReadIsNamed) {
  Config config = config_for(GetParam());
  config.secret_file = folder.at("nothing");
  const Result<Engine> engine = Engine::open(config);
  ASSERT_TRUE(fails_with(engine, Code::invalid_argument));
  EXPECT_NE(engine.error().message().find(config.secret_file), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(Providers, Credentials, testing::ValuesIn(all_providers()),
                         [](const auto& of) { return name_of(of.param); });

}  // namespace
}  // namespace weft::test
