#include "weights/side.hpp"

#include <fmt/format.h>

#include <string>
#include <vector>
#include <weft/weights.hpp>

#include "common/helper.hpp"
#include "common/pattern.hpp"
#include "protocol/must.hpp"
#include "weights/shared.hpp"

namespace weft::perf {
namespace {

using nlohmann::json;

/// Calls `visit(place, from, bytes)` for each run of a slice: its offset in the segment, and that
/// in the whole tensor.
template <typename Visit>
void visit_runs(const weights::Shard& shard, Visit visit) {
  const std::size_t dimensions = shard.shape.size();
  std::size_t outer = dimensions;  // dimensions that a run does not cover
  std::uint64_t run = weights::bytes_of(shard.dtype);
  while (outer > 0) {
    run *= shard.extent[--outer];
    if (shard.extent[outer] != shard.shape[outer]) break;
  }
  std::uint64_t runs = 1;
  for (std::size_t d = 0; d < outer; ++d) runs *= shard.extent[d];
  for (std::uint64_t i = 0; i < runs; ++i) {
    // The first element of run i in the whole tensor.
    std::uint64_t left = i, from = 0, stride = weights::bytes_of(shard.dtype);
    for (std::size_t d = dimensions; d-- > 0; stride *= shard.shape[d]) {
      std::uint64_t index = shard.begin[d];
      if (d < outer) {
        index += left % shard.extent[d];
        left /= shard.extent[d];
      }
      from += index * stride;
    }
    visit(shard.offset + i * run, from, run);
  }
}

std::uint64_t seed_of(const weights::Shard& shard, std::uint64_t content) {
  return std::hash<std::string>()(shard.name) ^ (content * 0x9e37'79b9'7f4a'7c15);
}

void fill_shards(const weights::Rank& rank, const Segment& segment, std::uint64_t content) {
  for (const weights::Shard& shard : rank.shards)
    visit_runs(shard, [&](std::uint64_t place, std::uint64_t from, std::uint64_t bytes) {
      tool::pattern(seed_of(shard, content), from, {segment.data() + place, bytes});
    });
}

json check_shards(const weights::Rank& rank, const Segment& segment, std::uint64_t content) {
  std::uint64_t checked = 0, wrong = 0;
  for (const weights::Shard& shard : rank.shards)
    visit_runs(shard, [&](std::uint64_t place, std::uint64_t from, std::uint64_t bytes) {
      checked += bytes;
      wrong +=
          tool::difference({segment.data() + place, bytes}, seed_of(shard, content), from).count;
    });
  return {{"checked", checked}, {"wrong", wrong}};
}

class RankSide {
 public:
  RankSide(const json& told, const WeightsOptions& options, const weights::World& world)
      : options_(options),
        trains_(told.at("trains").get<bool>()),
        number_(told.at("number").get<std::uint32_t>()),
        rank_((trains_ ? world.publishers : world.subscribers).at(number_)),
        engine_(must(Engine::open(
            {.name = rank_.name, .listen = "127.0.0.1:0", .providers = options.providers}))) {
    const std::string leader = told.at("leader").get<std::string>();
    for (unsigned i = 0; i < (trains_ ? 1 : options.sets); ++i)
      sets_.push_back({std::make_shared<Segment>(
          must(engine_.add(Memory::shared(std::max<std::uint64_t>(1, bytes_of(rank_))))))});
    if (trains_)
      publisher_.emplace(must(weights::Publisher::open(
          engine_, rank_, sets_.front(),
          {.rank = number_,
           .publishers = static_cast<std::uint32_t>(world.publishers.size()),
           .leader = leader,
           .subscribers = static_cast<std::uint32_t>(world.subscribers.size()),
           .verify = options.verify,
           .fan_out = options.fan_out,
           .chunk_bytes = options.chunk_bytes})));
    else
      subscriber_.emplace(must(
          weights::Subscriber::open(engine_, rank_, sets_, {.rank = number_, .leader = leader})));
  }

  std::string address() const { return engine_.address(); }

  json answer(const json& question) {
    const auto verb = question.at("verb").get<std::string>();
    const auto number = question.at("number").get<std::uint64_t>();
    if (verb == "fill") {
      fill_shards(rank_, *sets_.front().front(), number);
      return json::object();
    }
    if (verb == "publish") {
      const auto done = must(publisher_.value().publish(number, Deadline::in(options_.timeout)));
      return {{"bytes", done.bytes},
              {"seconds", std::chrono::duration<double>(done.elapsed).count()}};
    }
    if (verb == "check") {
      const auto reading = must(subscriber_.value().read());
      return check_shards(rank_, *sets_[reading.set()].front(), number);
    }
    throw std::runtime_error(fmt::format("'{}' is not known", verb));
  }

 private:
  const WeightsOptions options_;
  const bool trains_;
  const std::uint32_t number_;
  const weights::Rank rank_;
  Engine engine_;
  std::vector<weights::Segments> sets_;
  std::optional<weights::Publisher> publisher_;
  std::optional<weights::Subscriber> subscriber_;
};

}  // namespace

std::optional<int> serve_weights_side(int count, char** words) {
  const auto caller = tool::Talk::of_helper(weights_side_argument, count, words);
  if (!caller) return std::nullopt;
  const Deadline furthest = Deadline::in(Deadline::furthest);
  try {
    const json told = must(caller->hear(furthest));
    const auto options = told.at("options").get<WeightsOptions>();
    const auto world = must(world_of(options));
    RankSide side(told, options, world.world);
    must(caller->say({{"address", side.address()}}));
    while (const auto question = caller->hear(furthest)) must(caller->say(side.answer(*question)));
    return 0;
  } catch (const std::exception& error) {
    (void)caller->say({{"error", error.what()}});
    return 1;
  }
}

}  // namespace weft::perf
