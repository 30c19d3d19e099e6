// All that a port on a network has to bear, at once, with and without credentials.
#include <sys/resource.h>

#include <random>

#include "certificates.hpp"
#include "control/tls.hpp"
#include "fixture.hpp"

namespace weft::core::test {
namespace {

using weft::test::Authority;
using weft::test::CertificateFiles;
using weft::test::Folder;

/// As many open files as the system lets this process have.
rlim_t raise_open_files() {
  rlimit files{};
  getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
  return files.rlim_cur;
}

std::string noise(std::size_t bytes, unsigned seed) {
  std::mt19937 random(seed);
  std::string made(bytes, ' ');
  for (char& c : made) c = static_cast<char>(random());
  return made;
}

enum class Guard : std::uint8_t { none, secret, certificate };

class Strangers : public testing::TestWithParam<Guard> {
 protected:
  CredentialFiles credentials(Guard guard) const {
    if (guard == Guard::none) return {};
    if (guard == Guard::secret) return {.secret_file = secret};
    return {.tls_certificate = files.certificate,
            .tls_key = files.key,
            .tls_authorities = files.authorities};
  }
  ControlConfig config(std::string listen = "127.0.0.1:0") const {
    ControlConfig config = quick(std::move(listen));
    config.credentials = credentials(GetParam());
    config.handshake_time = 60s;  // nobody is helped by it
    return config;
  }
  std::string tls_hello(Guard guard) const {
    const auto of = Credentials::load(credentials(guard)).value();
    Tls tls(*of, Tls::Role::dials, "");
    std::vector<std::byte> none;
    EXPECT_TRUE(tls.receive({}, none));
    const Blob hello = tls.take_output();
    return {reinterpret_cast<const char*>(hello.data()), hello.size()};
  }

  const Folder folder;
  const std::string secret = folder.write("secret", noise(32, 1));
  const Authority authority{folder, "authority"};
  const CertificateFiles files = authority.issue("engine");
};

TEST_P(Strangers, LeaveTheEngineServing) {
  constexpr std::size_t idle_connections = 1000;
  if (raise_open_files() < idle_connections + 512)
    GTEST_SKIP() << "this process may not open enough files";
  Engine engine("engine", 1, config());
  Engine early("early", 1, config(""));
  const Result<LinkId> link = early.connect(engine);
  ASSERT_TRUE(link) << link.error().message();

  const std::string address = engine.plane->address();
  std::vector<Raw> idle;
  for (std::size_t i = 0; i < idle_connections; ++i) {
    idle.push_back(Raw::connect(address));
    if (i % 10 == 0) Raw::connect(address);  // as a port scan does
    if (i % 10 == 5) Raw::connect(address).reset();
  }
  std::vector<Raw> talking;
  for (const std::string& said :
       {std::string("GET / HTTP/1.1\r\nHost: engine\r\n\r\n"), tls_hello(Guard::secret),
        tls_hello(Guard::certificate), tls_hello(Guard::secret).substr(0, 50), noise(1 << 20, 2),
        "\x16\x03\x01" + noise(1 << 20, 3)}) {
    talking.push_back(Raw::connect(address));
    talking.back().send(said);  // may be cut off
  }

  Engine late("late", 1, config(""));
  const Result<LinkId> other = late.connect(engine);
  EXPECT_TRUE(other) << other.error().message();
  early.plane->send(*link, RevokeRequest{7});
  EXPECT_TRUE(engine.recorder->wait(Event::received));
  EXPECT_EQ(engine.recorder->count(Event::down), 0u);
  EXPECT_EQ(engine.recorder->count(Event::meet), 2u);
  EXPECT_TRUE(idle.front().receive().empty()) << "the oldest are dropped";
}

std::string name_of(const testing::TestParamInfo<Guard>& of) {
  if (of.param == Guard::none) return "none";
  return of.param == Guard::secret ? "secret" : "certificate";
}

INSTANTIATE_TEST_SUITE_P(Guards, Strangers,
                         testing::Values(Guard::none, Guard::secret, Guard::certificate), name_of);

}  // namespace
}  // namespace weft::core::test
