// New weights for a running rank: `weights rank ADDRESS`, `weights trainer ADDRESS`. ADDRESS is the
// trainer's. The rank reads all the time; the trainer publishes three steps.
#include <algorithm>
#include <cstdio>
#include <string_view>
#include <weft/weft.hpp>

using namespace weft;
using namespace std::chrono_literals;

namespace {

constexpr std::uint64_t rows = 1024, columns = 1024, last_step = 3;
constexpr auto patience = 30s;

weights::Rank whole_matrix(const char* name) {
  const weights::Dims shape{rows, columns};
  return {.name = name,
          .shards = {{.name = "w",
                      .dtype = weights::DType::int8,
                      .shape = shape,
                      .begin = {0, 0},
                      .extent = shape}}};
}

Result<weights::Segments> memory(Engine& engine) {
  auto segment = engine.add(Memory::shared(rows * columns));
  if (!segment) return fail(segment.error());
  return weights::Segments{std::make_shared<Segment>(std::move(*segment))};
}

Result<void> rank(const char* trainer) {
  auto engine = Engine::open({.listen = "127.0.0.1:0"});
  if (!engine) return fail(engine.error());
  auto one = memory(*engine), other = memory(*engine);
  if (!one || !other) return fail(one ? other.error() : one.error());
  const std::vector<weights::Segments> sets{*one, *other};
  auto subscriber =
      weights::Subscriber::open(*engine, whole_matrix("rank"), sets, {.leader = trainer});
  if (!subscriber) return fail(subscriber.error());
  for (std::uint64_t step = 1; step <= last_step; ++step) {
    if (auto came = subscriber->wait(step, Deadline::in(patience)); !came) return came;
    const auto reading = subscriber->read();  // Of this step, or of a newer one.
    if (!reading) return fail(reading.error());
    const std::byte* bytes = sets[reading->set()][0]->data();
    const auto right = std::count(bytes, bytes + rows * columns, std::byte(reading->step()));
    std::printf("%ld of %lu bytes are right\n", right, static_cast<unsigned long>(rows * columns));
  }
  return {};
}

Result<void> trainer(const char* address) {
  auto engine = Engine::open({.listen = address});
  if (!engine) return fail(engine.error());
  auto segments = memory(*engine);
  if (!segments) return fail(segments.error());
  auto publisher = weights::Publisher::open(*engine, whole_matrix("trainer"), *segments, {});
  if (!publisher) return fail(publisher.error());
  for (std::uint64_t step = 1; step <= last_step; ++step) {
    std::fill_n((*segments)[0]->data(), rows * columns, std::byte(step));
    auto published = publisher->publish(step, Deadline::in(patience));
    if (!published) return fail(published.error());
  }
  return {};
}

}  // namespace

int main(int count, char** values) {
  const std::string_view role = count == 3 ? values[1] : "";
  if (role != "rank" && role != "trainer") return std::puts("see the first line"), 2;
  const auto done = role == "rank" ? rank(values[2]) : trainer(values[2]);
  if (!done) std::puts(done.error().to_string().c_str());
  return done ? 0 : 1;
}
