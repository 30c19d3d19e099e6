// What fork does to publishers and subscribers.
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <weft/weights.hpp>

#include "engines.hpp"
#include "forked.hpp"

namespace weft::weights::test {
namespace {

using namespace std::chrono_literals;
using weft::test::in_forked_child;
using weft::test::must;

constexpr std::uint64_t size = 4096;

Engine engine_named(const std::string& name) {
  Config config;
  config.name = name;
  config.providers = {"tcp"};
  config.listen = "127.0.0.1:0";
  return must(Engine::open(config));
}

Segments memory_of(Engine& engine) {
  return {std::make_shared<Segment>(must(engine.add(Memory::own(size))))};
}

Rank rank_named(const std::string& name) {
  const Dims shape{size / bytes_of(DType::bf16)};
  return {.name = name, .shards = {{.name = "w", .shape = shape, .begin = {0}, .extent = shape}}};
}

template <typename T>
bool is_forked(const Result<T>& result) {
  return !result && result.error().code() == Code::forked;
}

TEST(WeightsFork, AChildHasNoneOfItAndTheParentGoesOn) {
  Engine trainers = engine_named("trainer"), ranks = engine_named("rank");
  std::optional<Publisher> publisher =
      must(Publisher::open(trainers, rank_named("trainer"), memory_of(trainers), {}));
  std::optional<Subscriber> subscriber = must(Subscriber::open(
      ranks, rank_named("rank"), {memory_of(ranks)}, {.leader = trainers.address()}));
  ASSERT_TRUE(publisher->publish(1, Deadline::in(60s)));
  EXPECT_EQ(in_forked_child([&] {
              if (!is_forked(publisher->publish(2, Deadline::in(1h)))) return 1;
              if (!is_forked(subscriber->wait(2, Deadline::in(1h)))) return 2;
              if (!is_forked(subscriber->read())) return 3;
              publisher.reset();
              subscriber.reset();
              return 0;
            }),
            0);
  EXPECT_TRUE(publisher->publish(2, Deadline::in(60s)));
  EXPECT_EQ(subscriber->step(), 2U);
}

}  // namespace
}  // namespace weft::weights::test
