// Who may meet: secrets, certificates, and those who have the wrong ones or none.
#include "control/credentials.hpp"

#include <gmock/gmock.h>

#include <algorithm>

#include "certificates.hpp"
#include "control/tls.hpp"
#include "fixture.hpp"

namespace weft::core::test {
namespace {

using testing::HasSubstr;
using testing::Not;
using weft::test::Authority;
using weft::test::CertificateFiles;
using weft::test::Folder;

constexpr std::string_view good_secret = "correct horse battery staple";

CredentialFiles with_secret(const std::string& path) {
  return {.secret_file = path};
}

CredentialFiles with(const CertificateFiles& files) {
  return {.tls_certificate = files.certificate,
          .tls_key = files.key,
          .tls_authorities = files.authorities};
}

ControlConfig guarded(CredentialFiles credentials, std::string listen = "127.0.0.1:0") {
  ControlConfig config = quick(std::move(listen));
  config.credentials = std::move(credentials);
  return config;
}

/// What refuses a configuration.
std::string refusal(const CredentialFiles& files, Code code = Code::invalid_argument) {
  const auto loaded = Credentials::load(files);
  if (loaded) return "";
  EXPECT_EQ(loaded.error().code(), code) << loaded.error().message();
  return loaded.error().message();
}

/// What both sides say when `client` connects to `server`, which has to go on serving.
struct Refused {
  Error at_client{Code::internal, "it was let in"};
  std::string at_server;
};
Refused connect(const CredentialFiles& client, const CredentialFiles& server) {
  Engine listening("listening", 1, guarded(server));
  Engine dialling("dialling", 1, guarded(client, ""));
  Refused refused;
  if (const Result<LinkId> link = dialling.connect(listening); !link)
    refused.at_client = link.error();
  EXPECT_TRUE(listening.wait_for_trouble("127.0.0.1"));
  for (const Error& error : listening.troubles()) refused.at_server += error.message();
  EXPECT_THAT(listening.refusals(), testing::Each(LinkEnd::credentials));
  EXPECT_EQ(listening.recorder->count(Event::meet), 0u);
  EXPECT_EQ(dialling.recorder->count(Event::meet), 0u);
  Engine friendly("friendly", 1, guarded(server, ""));
  const Result<LinkId> link = friendly.connect(listening);
  EXPECT_TRUE(link) << link.error().message();
  return refused;
}

class Files : public testing::Test {
 protected:
  const Folder folder;
  const Authority ours{folder, "ours"}, theirs{folder, "theirs"};
  const CredentialFiles secret = with_secret(folder.write("secret", good_secret));
  const CredentialFiles certificate = with(ours.issue("engine"));
};

// What is read from files.

TEST_F(Files, SecretsAreRefusedWithoutBeingShown) {
  EXPECT_EQ(refusal(secret), "");
  const std::string none = folder.at("nothing");
  EXPECT_THAT(refusal(with_secret(none)), HasSubstr("secret_file '" + none + "' can't be read"));
  EXPECT_THAT(refusal(with_secret(folder.at(""))), HasSubstr("is no regular file"));
  const std::string brief = refusal(with_secret(folder.write("brief", "just 15 bytes..\n")));
  EXPECT_THAT(brief, HasSubstr("has 15 bytes, and must have 16 at least"));
  EXPECT_THAT(brief, Not(HasSubstr("just")));
  EXPECT_EQ(refusal(with_secret(folder.write("enough", "exactly 16 bytes\r\n"))), "");
  EXPECT_THAT(refusal(with_secret(folder.write("huge", std::string(1 << 17, 'x')))),
              HasSubstr("has more than 65536 bytes"));
}

TEST_F(Files, SecretsThatEverybodyCanReadAreRefused) {
  for (const mode_t mode : {0644, 0604, 0602})
    EXPECT_THAT(
        refusal(with_secret(folder.write("open", good_secret, mode)), Code::permission_denied),
        HasSubstr("may be read or written by everybody"));
  EXPECT_EQ(refusal(with_secret(folder.write("group", good_secret, 0640))), "");
}

TEST_F(Files, CertificatesThatAreNotWholeAreRefused) {
  EXPECT_EQ(refusal(certificate), "");
  const auto changed = [&](std::string CredentialFiles::*file, const std::string& path) {
    CredentialFiles files = certificate;
    files.*file = path;
    return files;
  };
  using F = CredentialFiles;
  const std::string noise = folder.write("noise", "noise");
  const std::string other_key = ours.issue("other").key;
  for (const auto file : {&F::tls_certificate, &F::tls_key, &F::tls_authorities}) {
    EXPECT_THAT(refusal(changed(file, "")), HasSubstr("all three or none"));
    EXPECT_THAT(refusal(changed(file, noise)), HasSubstr(noise));
    EXPECT_THAT(refusal(changed(file, folder.at("nothing"))), HasSubstr("nothing"));
  }
  EXPECT_THAT(refusal(changed(&F::tls_key, other_key)), HasSubstr("key values mismatch"));
  EXPECT_THAT(refusal(changed(&F::secret_file, noise)), HasSubstr("name one of them"));
  ::chmod(certificate.tls_key.c_str(), 0644);
  EXPECT_THAT(refusal(certificate, Code::permission_denied), HasSubstr("everybody"));
}

TEST_F(Files, AKeyBehindAPassphraseIsRefusedAndNobodyIsAsked) {
  CertificateFiles files = ours.issue("locked");
  files.key = weft::test::lock(folder, files.key, "passphrase");
  EXPECT_THAT(refusal(with(files)), HasSubstr("no private key without a passphrase"));
}

TEST_F(Files, HostsAreCheckedByCertificatesAlone) {
  CredentialFiles files = secret;
  files.tls_check_host = true;
  EXPECT_THAT(refusal(files), HasSubstr("requires tls_certificate"));
}

// Meeting.

class Guarded : public Files, public testing::WithParamInterface<Proving> {
 protected:
  const CredentialFiles& files() const {
    return GetParam() == Proving::secret ? secret : certificate;
  }
};

TEST_P(Guarded, EnginesMeetAndTalkBothWays) {
  Engine a("a", 1, guarded(files())), b("b", 1, guarded(files()));
  const Result<LinkId> link = b.connect(a);
  ASSERT_TRUE(link) << link.error().message();
  const auto up = a.recorder->wait(Event::up);
  ASSERT_TRUE(up);
  EXPECT_TRUE(a.recorder->wait(Event::meet)->near.same_host);
  const Blob large(limits::grant, std::byte{'x'});
  for (std::uint64_t i = 0; i < 8; ++i) {
    a.plane->send(up->link, LookupReply{i, large});
    b.plane->send(*link, LookupReply{i, large});
  }
  for (Engine* engine : {&a, &b})
    for (std::uint64_t i = 0; i < 8; ++i) {
      const auto received = engine->recorder->wait(Event::received, i);
      ASSERT_TRUE(received);
      const auto& reply = std::get<LookupReply>(received->notice);
      EXPECT_EQ(reply.request, i);
      EXPECT_EQ(reply.grant, large);
    }
  EXPECT_EQ(*a.connect(b), up->link) << "they have met already";
}

TEST_P(Guarded, HeartbeatsKeepALinkUp) {
  ControlConfig config = guarded(files());
  config.heartbeat = 20ms;
  config.suspect_after = config.death_after = 1s;
  Engine a("a", 1, config), b("b", 1, config);
  const Result<LinkId> link = b.connect(a);
  ASSERT_TRUE(link);
  EXPECT_FALSE(b.recorder->wait(Event::down, 0, Deadline::in(2s)));
  EXPECT_EQ(a.recorder->count(Event::down), 0u);
}

TEST_P(Guarded, APlainEngineIsRefused) {
  const Refused refused = connect({}, files());
  EXPECT_EQ(refused.at_client.code(), Code::permission_denied);
  EXPECT_THAT(refused.at_client.message(), HasSubstr("speaks TLS: it asks for a secret or a "
                                                     "certificate, and this engine has none"));
  EXPECT_THAT(refused.at_server, HasSubstr("speaks Weft's protocol without TLS, and this engine "
                                           "asks for a "));
}

TEST_P(Guarded, APlainEngineIsNotTrusted) {
  const Refused refused = connect(files(), {});
  EXPECT_EQ(refused.at_client.code(), Code::protocol_mismatch);
  EXPECT_THAT(refused.at_client.message(), HasSubstr("does not speak TLS, and this engine asks"));
  EXPECT_THAT(refused.at_client.message(), HasSubstr("(got 'This port speaks Weft's control "));
  EXPECT_THAT(refused.at_server, HasSubstr("speaks TLS: it asks for a secret or a certificate"));
}

TEST_P(Guarded, NothingIsSaidBeforeTls) {
  ControlConfig config = guarded(files());
  config.handshake_time = 200ms;
  Engine engine("engine", 1, config);
  Raw silent = Raw::connect(engine.plane->address());
  EXPECT_TRUE(silent.receive_all().empty());
  EXPECT_TRUE(engine.wait_for_trouble("did not finish the TLS handshake within 0.2 s"));

  Raw listener = Raw::listen();
  const Result<LinkId> link = engine.connect(listener.address());
  const Blob said = listener.accept().receive_all();
  ASSERT_FALSE(link);
  EXPECT_EQ(link.error().code(), Code::timed_out);
  EXPECT_TRUE(Tls::looks_like(said));
  const std::string_view magic = "WEFT", name = "engine";
  const std::string_view text(reinterpret_cast<const char*>(said.data()), said.size());
  EXPECT_EQ(text.find(magic), std::string_view::npos);
  EXPECT_EQ(text.find(name), std::string_view::npos);
}

TEST_P(Guarded, TheNetworkMayBeListenedOn) {
  ControlConfig config = guarded(files(), "0.0.0.0:0");
  config.advertise = "127.0.0.1";
  Engine a("a", 1, config), b("b", 1, guarded(files()));
  EXPECT_TRUE(b.connect(a));
}

INSTANTIATE_TEST_SUITE_P(Both, Guarded, testing::Values(Proving::secret, Proving::certificate),
                         [](const auto& of) {
                           return of.param == Proving::secret ? "secret" : "certificate";
                         });

TEST_F(Files, ALineEndBehindTheSecretDoesNotCount) {
  Engine a("a", 1, guarded(secret));
  Engine b("b", 1,
           guarded(with_secret(folder.write("ended", std::string(good_secret) + "\n")), ""));
  EXPECT_TRUE(b.connect(a));
}

TEST_F(Files, AnotherSecretIsRefused) {
  const CredentialFiles other = with_secret(folder.write("other", "wrong horse battery staple"));
  const Refused refused = connect(other, secret);
  EXPECT_EQ(refused.at_client.code(), Code::permission_denied);
  EXPECT_THAT(refused.at_client.message(), HasSubstr("has another secret than this engine"));
  EXPECT_THAT(refused.at_server, HasSubstr("has another secret than this engine"));
}

TEST_F(Files, ASecretAndACertificateDoNotGoTogether) {
  const Refused by_certificate = connect(certificate, secret);
  EXPECT_EQ(by_certificate.at_client.code(), Code::permission_denied);
  EXPECT_THAT(by_certificate.at_client.message(), HasSubstr("does not take a certificate"));
  EXPECT_THAT(by_certificate.at_server,
              HasSubstr("proves itself by a certificate, and this engine asks for a secret"));
  const Refused by_secret = connect(secret, certificate);
  EXPECT_EQ(by_secret.at_client.code(), Code::permission_denied);
  EXPECT_THAT(by_secret.at_client.message(), HasSubstr("does not take a secret"));
  EXPECT_THAT(by_secret.at_server,
              HasSubstr("proves itself by a secret, and this engine asks for a certificate"));
}

TEST_F(Files, ACertificateOfAnotherAuthorityIsRefused) {
  CredentialFiles foreign = with(theirs.issue("engine"));
  // The client does not know the server's authority.
  const Refused by_client = connect(foreign, certificate);
  EXPECT_EQ(by_client.at_client.code(), Code::permission_denied);
  EXPECT_THAT(by_client.at_client.message(),
              HasSubstr("has a certificate that this engine does not take: unable to get local "
                        "issuer certificate"));
  EXPECT_THAT(by_client.at_server,
              HasSubstr("does not take this engine's certificate: unknown CA"));
  // It does, and the server does not know its own.
  foreign.tls_authorities = certificate.tls_authorities;
  const Refused by_server = connect(foreign, certificate);
  EXPECT_EQ(by_server.at_client.code(), Code::permission_denied);
  EXPECT_THAT(by_server.at_client.message(),
              HasSubstr("does not take this engine's certificate: unknown CA"));
  EXPECT_THAT(by_server.at_server,
              HasSubstr("has a certificate that this engine does not take: unable to get"));
}

TEST_F(Files, AnExpiredCertificateIsRefused) {
  const CredentialFiles expired = with(ours.issue("old", "", true));
  const Refused as_client = connect(expired, certificate);
  EXPECT_EQ(as_client.at_client.code(), Code::permission_denied);
  EXPECT_THAT(as_client.at_client.message(),
              HasSubstr("does not take this engine's certificate: certificate expired"));
  EXPECT_THAT(as_client.at_server, HasSubstr("certificate has expired"));

  Engine listening("listening", 1, guarded(expired));
  Engine dialling("dialling", 1, guarded(certificate, ""));
  const Result<LinkId> link = dialling.connect(listening);
  ASSERT_FALSE(link);
  EXPECT_EQ(link.error().code(), Code::permission_denied);
  EXPECT_THAT(link.error().message(), HasSubstr("certificate has expired"));
  EXPECT_TRUE(listening.wait_for_trouble("certificate expired"));
}

TEST_F(Files, TheNameOfTheHostIsCheckedWhereThatIsAskedFor) {
  const CredentialFiles elsewhere = with(ours.issue("far", "far.example"));
  CredentialFiles careful = certificate;
  careful.tls_check_host = true;
  Engine here("here", 1, guarded(certificate)), far("far", 1, guarded(elsewhere));
  Engine dialling("dialling", 1, guarded(careful, "")), by_name("by-name", 1, guarded(careful, ""));
  EXPECT_TRUE(dialling.connect(here));
  const std::string port = here.plane->address().substr(here.plane->address().find(':'));
  EXPECT_TRUE(by_name.connect("localhost" + port));
  const Result<LinkId> link = dialling.connect(far);
  ASSERT_FALSE(link);
  EXPECT_EQ(link.error().code(), Code::permission_denied);
  EXPECT_THAT(link.error().message(), HasSubstr("IP address mismatch"));
  Engine trusting("trusting", 1, guarded(certificate, ""));
  EXPECT_TRUE(trusting.connect(far));
}

// Bounds.

/// Whether somebody who belongs here gets in, where the time for that is short: on a loaded machine
/// not at once.
bool gets_in(Engine& engine, const CredentialFiles& files) {
  for (const Deadline deadline = soon(); deadline.left() > Nanoseconds::zero();) {
    Engine friendly("friendly", 1, guarded(files, ""));
    if (friendly.connect(engine)) return true;
  }
  return false;
}

/// The first words of a side that dials.
Blob client_hello(const Credentials& credentials) {
  Tls tls(credentials, Tls::Role::dials, "");
  std::vector<std::byte> none;
  EXPECT_TRUE(tls.receive({}, none));
  return tls.take_output();
}

TEST_P(Guarded, ASlowHandshakeIsCut) {
  ControlConfig config = guarded(files());
  config.handshake_time = 200ms;
  Engine engine("engine", 1, config);
  const Blob hello = client_hello(*Credentials::load(files()).value());
  Raw half = Raw::connect(engine.plane->address());
  half.send(Bytes(hello).first(hello.size() / 2));
  EXPECT_TRUE(half.receive_all().empty());
  EXPECT_TRUE(engine.wait_for_trouble("did not finish the TLS handshake within 0.2 s"));
  Raw unfinished = Raw::connect(engine.plane->address());
  unfinished.send(Bytes(hello));
  EXPECT_TRUE(Tls::looks_like(unfinished.receive_all()));
  EXPECT_TRUE(gets_in(engine, files()));
}

TEST_P(Guarded, APeerThatFallsSilentIsDead) {
  ControlConfig config = guarded(files());
  config.heartbeat = 100ms;
  config.suspect_after = config.death_after = 1500ms;
  Engine engine("engine", 1, config);
  Raw raw = Raw::connect(engine.plane->address());
  const auto credentials = Credentials::load(files()).value();
  Tls tls(*credentials, Tls::Role::dials, "");
  std::vector<std::byte> heard;
  ASSERT_TRUE(tls.receive({}, heard));
  raw.send(Bytes(tls.take_output()));
  while (!tls.established()) {
    const Blob bytes = raw.receive();
    ASSERT_FALSE(bytes.empty());
    ASSERT_TRUE(tls.receive(bytes, heard));
  }
  tls.send(write_preamble(spoken_versions));
  for (const ControlMessage& message :
       {ControlMessage(Hello{introduce("a"), {}}), ControlMessage(Proof{.reason = "a raw socket"}),
        ControlMessage(Choice{}), ControlMessage(Ready{})})
    tls.send(encode(message).value());
  raw.send(Bytes(tls.take_output()));
  ASSERT_TRUE(engine.recorder->wait(Event::up));
  const auto down = engine.recorder->wait(Event::down);
  ASSERT_TRUE(down);
  EXPECT_EQ(down->why->code(), Code::peer_down);
  EXPECT_THAT(down->why->message(), HasSubstr("nothing was heard from the peer"));
}

TEST_P(Guarded, AHugeHandshakeIsCut) {
  Engine engine("engine", 1, guarded(files()));
  const std::string record("\x16\x03\x01\x40\x00", 5);
  // The length of the hello: more than OpenSSL takes, and less.
  for (const auto& [size, sentence] :
       {std::pair(std::string("\x01\xff\xff\xff", 4), "excessive message size"),
        std::pair(std::string("\x01\x01\xff\x00", 4), "sent more than 65536 bytes")}) {
    Raw raw = Raw::connect(engine.plane->address());
    raw.send(record + size + std::string((1 << 14) - 4, '\0'));
    for (int i = 0; i < 16 && raw.send(record + std::string(1 << 14, '\0')); ++i) {
    }
    raw.receive_all();
    EXPECT_TRUE(engine.wait_for_trouble(sentence));
  }
  Engine friendly("friendly", 1, guarded(files(), ""));
  EXPECT_TRUE(friendly.connect(engine));
}

TEST_P(Guarded, MutatedHellosAreRefusedOrHarmless) {
  ControlConfig config = guarded(files());
  config.handshake_time = 100ms;
  Engine engine("engine", 1, config);
  const auto credentials = Credentials::load(files()).value();
  std::vector<Raw> raws;
  for (unsigned i = 0; i < 100; ++i) {
    Blob hello = client_hello(*credentials);
    hello[(i * 37) % hello.size()] ^= static_cast<std::byte>(1 + i);
    raws.push_back(Raw::connect(engine.plane->address()));
    raws.back().send(Bytes(hello));
  }
  for (Raw& raw : raws) raw.receive_all();
  EXPECT_EQ(engine.recorder->count(Event::meet), 0u);
  EXPECT_TRUE(gets_in(engine, files()));
}

/// Two sides of a connection without a socket.
class Tunnel {
 public:
  explicit Tunnel(const Credentials& credentials)
      : client_(credentials, Tls::Role::dials, ""), server_(credentials, Tls::Role::accepts, "") {
    EXPECT_TRUE(client_.receive({}, ignored_));
    for (int i = 0; i < 4; ++i) {
      EXPECT_TRUE(pass(client_, server_, ignored_));
      EXPECT_TRUE(pass(server_, client_, ignored_));
    }
    EXPECT_TRUE(client_.established() && server_.established());
  }
  /// What arrives; `sealed` is what was on the way.
  std::vector<std::byte> carry(Bytes plain, Blob& sealed) {
    std::vector<std::byte> out;
    client_.send(plain);
    sealed = client_.take_output();
    EXPECT_TRUE(server_.receive(sealed, out));
    return out;
  }

 private:
  static Result<void> pass(Tls& from, Tls& to, std::vector<std::byte>& out) {
    const Blob bytes = from.take_output();
    return bytes.empty() ? Result<void>() : to.receive(bytes, out);
  }
  std::vector<std::byte> ignored_;
  Tls client_, server_;
};

TEST_P(Guarded, WhatIsSentIsSealedAlsoBehindChangesOfKeys) {
  const auto credentials = Credentials::load(files()).value();
  Tunnel tunnel(*credentials);
  const Blob plain(200, std::byte{'p'});
  Blob sealed;
  std::size_t usual = 0, changes = 0;
  for (int i = 0; i < 3 * (1 << 16); ++i) {
    ASSERT_EQ(tunnel.carry(plain, sealed), plain) << i;
    if (i == 0) {
      usual = sealed.size();
      EXPECT_EQ(std::search(sealed.begin(), sealed.end(), plain.begin(), plain.begin() + 8),
                sealed.end());
    }
    changes += sealed.size() > usual ? 1 : 0;
  }
  EXPECT_EQ(changes, 3u);
}

TEST_P(Guarded, WhatWasChangedOnTheWayIsRefused) {
  const auto credentials = Credentials::load(files()).value();
  Tls client(*credentials, Tls::Role::dials, ""), server(*credentials, Tls::Role::accepts, "");
  std::vector<std::byte> none;
  ASSERT_TRUE(client.receive({}, none));
  ASSERT_TRUE(server.receive(client.take_output(), none));
  Blob answer = server.take_output();
  answer.back() ^= std::byte{1};
  const Result<void> changed = client.receive(answer, none);
  ASSERT_FALSE(changed);
  EXPECT_FALSE(client.established());
}

}  // namespace
}  // namespace weft::core::test
