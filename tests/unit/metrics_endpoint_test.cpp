// The endpoint that hands out metrics, and clients that are slow, rude or many.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <atomic>
#include <filesystem>
#include <latch>
#include <thread>

#include "folder.hpp"
#include "http_client.hpp"
#include "metrics/endpoint.hpp"

namespace weft::core {
namespace {

using namespace std::chrono_literals;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;
using weft::test::body_of;
using weft::test::http_get;
using weft::test::HttpClient;

std::vector<HttpPage> some_pages() {
  return {{"/metrics", "text/plain", [] { return "weft_answers 42\n"; }},
          {"/snapshot", "application/json", [] { return "{}"; }}};
}

/// More than the buffers of a socket take.
std::vector<HttpPage> large_page() {
  return {{"/metrics", "text/plain", [] { return std::string(std::size_t{64} << 20, 'x'); }}};
}

std::unique_ptr<MetricsEndpoint> open_endpoint(const MetricsEndpoint::Limits& limits = {},
                                               std::vector<HttpPage> pages = some_pages(),
                                               const std::string& address = "127.0.0.1:0") {
  auto endpoint = MetricsEndpoint::open(address, false, std::move(pages), limits);
  if (!endpoint) throw std::runtime_error(endpoint.error().to_string());
  return std::move(*endpoint);
}

Error refusal_of(const std::string& address) {
  const auto endpoint = MetricsEndpoint::open(address, false, some_pages());
  return endpoint ? Error(Code::internal, "it listens") : endpoint.error();
}

std::string answer_to(const MetricsEndpoint& endpoint, std::string_view request) {
  HttpClient client(endpoint.address());
  client.send(request);
  return client.receive_all();
}

TEST(MetricsEndpoint, AnswersWithThePage) {
  const auto endpoint = open_endpoint();
  const std::string response = http_get(endpoint->address(), "/metrics");
  EXPECT_THAT(response, StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(response, HasSubstr("Content-Type: text/plain\r\n"));
  EXPECT_THAT(response, HasSubstr("Content-Length: 16\r\n"));
  EXPECT_EQ(body_of(response), "weft_answers 42\n");
  EXPECT_EQ(body_of(http_get(endpoint->address(), "/snapshot?pretty=1")), "{}");
}

TEST(MetricsEndpoint, AnswersAHeadWithoutTheBody) {
  const auto endpoint = open_endpoint();
  const std::string response = answer_to(*endpoint, "HEAD /metrics HTTP/1.0\r\n\r\n");
  EXPECT_THAT(response, HasSubstr("Content-Length: 16\r\n"));
  EXPECT_EQ(body_of(response), "");
}

TEST(MetricsEndpoint, SaysWhatIsWrong) {
  const auto endpoint = open_endpoint();
  const std::string missing = http_get(endpoint->address(), "/favicon.ico");
  EXPECT_THAT(missing, StartsWith("HTTP/1.1 404 "));
  EXPECT_THAT(body_of(missing), HasSubstr("/metrics\n/snapshot\n"));
  const std::string posted = answer_to(*endpoint, "POST /metrics HTTP/1.1\r\n\r\n");
  EXPECT_THAT(posted, StartsWith("HTTP/1.1 405 "));
  EXPECT_THAT(posted, HasSubstr("Allow: GET, HEAD\r\n"));
}

TEST(MetricsEndpoint, RefusesWhatIsNoRequest) {
  const auto endpoint = open_endpoint();
  using namespace std::string_view_literals;
  for (const std::string_view garbage :
       {"\r\n\r\n"sv, "hello\r\n\r\n"sv, "GET /metrics\r\n\r\n"sv, "GET  HTTP/1.1\r\n\r\n"sv,
        " / HTTP/1.1\r\n\r\n"sv, "GET metrics HTTP/1.1\r\n\r\n"sv, "GET /a b HTTP/1.1\r\n\r\n"sv,
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"sv, "GET /\0 HTTP/1.1\r\n\r\n"sv,
        "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\r\n\r\n"sv})
    EXPECT_THAT(answer_to(*endpoint, garbage), StartsWith("HTTP/1.1 400 ")) << garbage;
  EXPECT_EQ(body_of(http_get(endpoint->address(), "/metrics")), "weft_answers 42\n");
}

TEST(MetricsEndpoint, RefusesAnOversizeRequestAndTheAnswerArrives) {
  const auto endpoint = open_endpoint();
  EXPECT_THAT(answer_to(*endpoint, "GET /metrics HTTP/1.1\r\nX: " + std::string(100'000, 'x')),
              StartsWith("HTTP/1.1 431 "));
  EXPECT_THAT(answer_to(*endpoint, "GET /metrics HTTP/1.1\r\nX: " +
                                       std::string(longest_request, 'x') + "\r\n\r\n"),
              StartsWith("HTTP/1.1 431 "));
}

TEST(MetricsEndpoint, TakesARequestInPieces) {
  const auto endpoint = open_endpoint();
  HttpClient client(endpoint->address());
  for (const char byte : std::string("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"))
    ASSERT_TRUE(client.send({&byte, 1}));
  EXPECT_THAT(client.receive_all(), EndsWith("weft_answers 42\n"));
}

TEST(MetricsEndpoint, ServesOthersWhileOneIsSlow) {
  const auto endpoint = open_endpoint();
  HttpClient slow(endpoint->address()), silent(endpoint->address());
  ASSERT_TRUE(slow.send("GET /met"));
  EXPECT_EQ(body_of(http_get(endpoint->address(), "/metrics")), "weft_answers 42\n");
  ASSERT_TRUE(slow.send("rics HTTP/1.1\r\n\r\n"));
  EXPECT_EQ(body_of(slow.receive_all()), "weft_answers 42\n");
}

TEST(MetricsEndpoint, GivesUpThoseWhoTakeTooLong) {
  const auto endpoint = open_endpoint({.time = 50ms});
  HttpClient silent(endpoint->address()), slow(endpoint->address());
  ASSERT_TRUE(slow.send("GET /met"));
  EXPECT_EQ(silent.receive_all(), "");
  EXPECT_EQ(slow.receive_all(), "");
}

TEST(MetricsEndpoint, GivesUpThoseWhoDoNotRead) {
  const auto endpoint = open_endpoint({.time = 50ms}, large_page());
  HttpClient client(endpoint->address());
  ASSERT_TRUE(client.send("GET /metrics HTTP/1.1\r\n\r\n"));
  // Nobody reads until the endpoint closes the connection, which a write tells.
  while (client.send("x")) std::this_thread::yield();
  EXPECT_LT(client.receive_all().size(), std::size_t{64} << 20);
}

TEST(MetricsEndpoint, LetsTheOldestGoWhenThereAreTooMany) {
  const auto endpoint = open_endpoint({.connections = 2});
  HttpClient first(endpoint->address()), second(endpoint->address()), third(endpoint->address());
  EXPECT_EQ(first.receive_all(), "");
  for (HttpClient* each : {&second, &third}) {
    ASSERT_TRUE(each->send("GET /metrics HTTP/1.1\r\n\r\n"));
    EXPECT_EQ(body_of(each->receive_all()), "weft_answers 42\n");
  }
}

TEST(MetricsEndpoint, ServesManyScrapersAtOnce) {
  const auto endpoint = open_endpoint({.connections = 64});
  std::vector<std::thread> scrapers;
  std::atomic<int> served{0};
  constexpr int threads = 4, times = 50;
  for (int i = 0; i < threads; ++i)
    scrapers.emplace_back([&] {
      for (int n = 0; n < times; ++n)
        served += body_of(http_get(endpoint->address(), "/metrics")) == "weft_answers 42\n";
    });
  for (std::thread& each : scrapers) each.join();
  EXPECT_EQ(served, threads * times);
}

TEST(MetricsEndpoint, ClosesWhileSomebodyReads) {
  auto endpoint = open_endpoint({}, large_page());
  HttpClient reading(endpoint->address()), asking(endpoint->address());
  ASSERT_TRUE(reading.send("GET /metrics HTTP/1.1\r\n\r\n"));
  ASSERT_TRUE(asking.send("GET /"));
  std::thread reader([&] { EXPECT_LT(reading.receive_all().size(), std::size_t{65} << 20); });
  endpoint.reset();
  reader.join();
  EXPECT_EQ(asking.receive_all(), "");
}

TEST(MetricsEndpoint, ClosesOnceThePageIsMadeThatIsBeingMade) {
  std::latch begun(1), go_on(1);
  auto endpoint = open_endpoint({}, {{"/metrics", "text/plain", [&] {
                                        begun.count_down();
                                        go_on.wait();
                                        return std::string("late");
                                      }}});
  HttpClient client(endpoint->address());
  ASSERT_TRUE(client.send("GET /metrics HTTP/1.1\r\n\r\n"));
  begun.wait();
  std::thread opener([&] { go_on.count_down(); });
  endpoint.reset();
  opener.join();
  EXPECT_THAT(client.receive_all(), testing::AnyOf("", EndsWith("late")));
}

TEST(MetricsEndpoint, SaysThatAPortIsInUse) {
  const auto endpoint = open_endpoint();
  const Error error = refusal_of(endpoint->address());
  EXPECT_EQ(error.code(), Code::unavailable);
  EXPECT_EQ(error.message(),
            "can't listen on " + endpoint->address() + ": the port is in use already");
}

// Whichever address the name has first.
TEST(MetricsEndpoint, ListensOnAllAddressesOfAName) {
  const auto endpoint = open_endpoint({}, some_pages(), "localhost:0");
  const std::string& address = endpoint->address();
  for (const std::string& each : {address, "127.0.0.1" + address.substr(address.rfind(':'))})
    EXPECT_EQ(body_of(http_get(each, "/snapshot")), "{}") << each;
}

TEST(MetricsEndpoint, ListensOnLoopbackOnlyUnlessItIsWanted) {
  const Error error = refusal_of("0.0.0.0:0");
  EXPECT_EQ(error.code(), Code::permission_denied);
  EXPECT_THAT(error.message(), HasSubstr("allow_unauthenticated_network"));
  const auto wanted = MetricsEndpoint::open("0.0.0.0:0", true, some_pages());
  ASSERT_TRUE(wanted) << wanted.error().to_string();
}

TEST(MetricsEndpoint, RefusesWhatIsNoAddress) {
  for (const char* address : {"", ":9400", "127.0.0.1:port", "unix:"})
    EXPECT_EQ(refusal_of(address).code(), Code::invalid_argument) << address;
  EXPECT_EQ(refusal_of("unix:" + std::string(200, 'x')).code(), Code::invalid_argument);
}

TEST(MetricsEndpoint, ListensOnAUnixSocketAndRemovesIt) {
  const weft::test::Folder folder;
  const std::string file = folder.at("weft.sock");
  auto endpoint = open_endpoint({}, some_pages(), "unix:" + file);
  EXPECT_EQ(endpoint->address(), "unix:" + file);
  EXPECT_EQ(std::filesystem::status(file).permissions(),
            std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  EXPECT_EQ(body_of(http_get(endpoint->address(), "/metrics")), "weft_answers 42\n");
  EXPECT_EQ(refusal_of("unix:" + file).code(), Code::unavailable);
  EXPECT_EQ(body_of(http_get(endpoint->address(), "/metrics")), "weft_answers 42\n");
  endpoint.reset();
  EXPECT_FALSE(std::filesystem::exists(file));
}

TEST(MetricsEndpoint, ReplacesAUnixSocketThatWasLeftBehind) {
  const weft::test::Folder folder;
  const std::string file = folder.at("weft.sock");
  {
    const Descriptor dead(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    file.copy(address.sun_path, sizeof address.sun_path - 1);
    ASSERT_EQ(::bind(dead.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  }
  const auto endpoint = open_endpoint({}, some_pages(), "unix:" + file);
  EXPECT_EQ(body_of(http_get(endpoint->address(), "/metrics")), "weft_answers 42\n");
}

TEST(MetricsEndpoint, LeavesAFileAloneThatIsNoSocket) {
  const weft::test::Folder folder;
  const std::string file = folder.write("precious", "text");
  EXPECT_EQ(refusal_of("unix:" + file).code(), Code::unavailable);
  EXPECT_EQ(std::filesystem::file_size(file), 4U);
}

}  // namespace
}  // namespace weft::core
