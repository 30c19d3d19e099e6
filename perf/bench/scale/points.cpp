#include "scale/points.hpp"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <memory>
#include <sstream>
#include <utility>
#include <weft/engine.hpp>

#include "scale/heap.hpp"
#include "scale/work.hpp"
#include "shared/holdings.hpp"
#include "shared/null_endpoint.hpp"
#include "shared/sides.hpp"

namespace weft::perf {
namespace {

constexpr std::size_t page = 4096;
constexpr const char* published = "memory";

/// Enough of the cheap things that one of them can be told from the clock's grain.
constexpr std::size_t carried = 2000, looks = 20'000;

/// What `work` costs, for each of so many units.
template <typename Work>
Result<void> measure(Costs& costs, const std::string& what, std::size_t units, Work&& work) {
  const std::size_t pages = holdings().resident;
  const Heap before = heap();
  const auto begin = Clock::now();
  Result<void> done = work();
  const auto time = Clock::now() - begin;
  const Heap after = heap();
  const std::size_t pages_after = holdings().resident;
  if (!done) return done;
  const auto of_unit = [&](auto now, auto then) {
    return (static_cast<double>(now) - static_cast<double>(then)) / static_cast<double>(units);
  };
  costs[what] = {of_unit(std::chrono::nanoseconds(time).count(), 0),
                 of_unit(after.bytes, before.bytes), of_unit(pages_after, pages),
                 of_unit(after.allocations, before.allocations)};
  return {};
}

/// Nobody but the caller drives it, so that nothing else is counted. With as many peers as may
/// come, none is taken for dead because its machine is busy.
Result<Engine> open_engine(std::size_t rails = 1) {
  Config config;
  config.providers = {"tcp"};
  config.rails = static_cast<unsigned>(rails);
  config.progress = Progress::manual;
  config.death_after = std::chrono::minutes(2);
  return open_over_nothing(config);
}

/// Pages that nobody has touched: rails that move nothing do not either.
class Pages {
 public:
  explicit Pages(std::size_t bytes) : bytes_(bytes) {
    void* mapped = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    data_ = mapped == MAP_FAILED ? nullptr : static_cast<std::byte*>(mapped);
  }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;
  ~Pages() {
    if (data_ != nullptr) ::munmap(data_, bytes_);
  }
  std::byte* data() const noexcept { return data_; }

 private:
  std::size_t bytes_;
  std::byte* data_ = nullptr;
};

/// Engines to be met, each with a page that it has granted. They live until `life` is closed.
void host_peers(std::size_t count, int answer, int life) {
  std::vector<Engine> engines;
  std::vector<Segment> segments;
  std::vector<Grant> grants;
  std::string addresses;
  for (std::size_t i = 0; i < count; ++i) {
    const auto published_by_one = [&]() -> Result<void> {
      auto engine = open_engine();
      if (!engine) return fail(std::move(engine.error()));
      addresses += engine->address() + ' ';
      auto segment = engine->add(Memory::own(page));
      if (!segment) return fail(std::move(segment.error()));
      auto granted = segment->grant({}, Rights::read_write);
      if (!granted) return fail(std::move(granted.error()));
      auto done = engine->publish(published, *granted);
      engines.push_back(std::move(*engine));
      segments.push_back(std::move(*segment));
      grants.push_back(std::move(*granted));
      return done;
    }();
    if (!published_by_one)
      return write_line(answer, "error " + published_by_one.error().to_string());
  }
  write_line(answer, addresses);
  wait_for_end(life);
}

/// Processes with engines to be met: what they need is not counted here.
class Crews {
 public:
  Result<std::vector<std::string>> start(std::size_t count, Deadline deadline) {
    constexpr std::size_t most = 50;  // Their addresses fit a line.
    for (std::size_t left = count; left > 0;) {
      const std::size_t here = std::min(most, left);
      auto answer = std::make_unique<Pipe>();
      sides_.push_back(std::make_unique<Side>([&] {
        life_.close_write();
        host_peers(here, answer->write_end(), life_.read_end());
      }));
      answers_.push_back(std::move(answer));
      left -= here;
    }
    std::vector<std::string> addresses;
    for (const auto& answer : answers_) {
      const auto line = read_line(answer->read_end(), deadline);
      if (!line) return fail(line.error());
      std::istringstream words(*line);
      for (std::string address; words >> address;) addresses.push_back(std::move(address));
    }
    return addresses;
  }

 private:
  Pipe life_;
  std::vector<std::unique_ptr<Pipe>> answers_;
  std::vector<std::unique_ptr<Side>> sides_;
};

Result<Costs> of_peers(std::size_t count, Deadline deadline) {
  Crews crews;
  const auto addresses = crews.start(count, deadline);
  if (!addresses) return fail(addresses.error());
  auto engine = open_engine();
  if (!engine) return fail(std::move(engine.error()));
  auto segment = engine->add(Memory::own(page));
  if (!segment) return fail(std::move(segment.error()));
  const Pair whole{0, 0, page};
  const std::size_t writes = std::max(carried, count);  // All have their turn.
  std::vector<Peer> peers;
  std::vector<Remote> remotes;
  std::vector<Prepared> prepared;
  peers.reserve(count), remotes.reserve(count), prepared.reserve(count);
  Costs costs;
  return measure(costs, "meet", count,
                 [&] { return work::connect(*engine, *addresses, deadline, peers); })
      .and_then([&] {
        return measure(costs, "look up its grant", count,
                       [&] { return work::lookup(peers, published, deadline, remotes); });
      })
      .and_then([&] {
        return measure(costs, "prepare", count, [&] {
          return work::prepare(*engine, {&*segment, 1}, remotes, {&whole, 1}, prepared);
        });
      })
      .and_then([&] { return work::carry(*engine, prepared, std::max(count, looks / 20)); })
      .and_then([&] {
        return measure(costs, "write to one", carried,
                       [&] { return work::carry(*engine, std::span(prepared).first(1), carried); });
      })
      .and_then([&] {
        return measure(costs, "write to each in turn", writes,
                       [&] { return work::carry(*engine, prepared, writes); });
      })
      .and_then(
          [&] { return measure(costs, "look", looks, [&] { return work::look(*engine, looks); }); })
      .map([&] { return costs; });
}

Result<Costs> of_segments(std::size_t count, Deadline deadline) {
  auto owner = open_engine(), user = open_engine();
  if (!owner || !user) return fail(owner ? user.error() : owner.error());
  if (auto met = user->connect(owner->address(), deadline); !met) return fail(met.error());
  const Pages pages(count * page);
  auto local = user->add(Memory::own(page));
  if (!local) return fail(std::move(local.error()));
  const Pair whole{0, 0, page};
  const std::size_t writes = std::max(carried, count);  // All have their turn.
  std::vector<Segment> segments;
  std::vector<Grant> grants;
  std::vector<Remote> remotes;
  std::vector<Prepared> prepared;
  segments.reserve(count), grants.reserve(count), remotes.reserve(count), prepared.reserve(count);
  Costs costs;
  auto done =
      measure(costs, "add", count,
              [&] { return work::add(*owner, pages.data(), page, count, segments); })
          .and_then([&] {
            return measure(costs, "grant", count, [&] { return work::grant(segments, grants); });
          })
          .and_then([&] {
            std::vector<Blob> blobs;
            blobs.reserve(count);
            for (const Grant& each : grants) blobs.push_back(each.blob());
            return measure(costs, "import (both sides)", count,
                           [&] { return work::import(*user, blobs, remotes); });
          })
          .and_then([&] {
            return measure(costs, "prepare", count, [&] {
              return work::prepare(*user, {&*local, 1}, remotes, {&whole, 1}, prepared);
            });
          })
          .and_then([&] { return work::carry(*user, prepared, writes); })
          .and_then([&] {
            return measure(costs, "write to each in turn", writes,
                           [&] { return work::carry(*user, prepared, writes); });
          });
  if (!done) return fail(std::move(done.error()));
  prepared.clear();
  remotes.clear();
  // The owner is not driven meanwhile, and holders of grants are asked to release them.
  grants.clear();
  return measure(costs, "release", count, [&] { return work::release(segments, deadline); })
      .map([&] { return costs; });
}

/// Pieces of 64 bytes, as far from each other.
std::vector<Pair> blocks(std::size_t count, std::uint64_t stride) {
  constexpr std::uint64_t block = 64;
  std::vector<Pair> pairs(count);
  for (std::size_t i = 0; i < count; ++i) pairs[i] = {i * stride, i * stride, block};
  return pairs;
}

Result<Costs> of_blocks(std::size_t count, Deadline deadline) {
  auto owner = open_engine(), user = open_engine();
  if (!owner || !user) return fail(owner ? user.error() : owner.error());
  if (auto met = user->connect(owner->address(), deadline); !met) return fail(met.error());
  const Pages ours(count * 128), theirs(count * 128);
  auto local = user->add(Memory::adopt(ours.data(), count * 128));
  if (!local) return fail(std::move(local.error()));
  auto far = owner->add(Memory::adopt(theirs.data(), count * 128));
  if (!far) return fail(std::move(far.error()));
  auto granted = far->grant({}, Rights::write);
  if (!granted) return fail(std::move(granted.error()));
  auto remote = user->import(granted->blob());
  if (!remote) return fail(std::move(remote.error()));
  const std::vector<Pair> apart = blocks(count, 128), neighbours = blocks(count, 64);
  std::vector<Prepared> lists;
  lists.reserve(2);
  const std::size_t transfers = std::max<std::size_t>(1, 200'000 / count);
  const auto prepare = [&](const std::vector<Pair>& pairs) {
    return work::prepare(*user, {&*local, 1}, {&*remote, 1}, pairs, lists);
  };
  const auto carry = [&](std::size_t which) {
    return work::carry(*user, std::span(lists).subspan(which, 1), transfers);
  };
  Costs costs;
  return measure(costs, "prepare", count, [&] { return prepare(apart); })
      .and_then([&] { return prepare(neighbours); })
      .and_then([&] { return work::carry(*user, lists, lists.size()); })
      .and_then(
          [&] { return measure(costs, "write", count * transfers, [&] { return carry(0); }); })
      .and_then([&] {
        return measure(costs, "write neighbours", count * transfers, [&] { return carry(1); });
      })
      .map([&] { return costs; });
}

/// So many transfers under way at a time.
Result<Costs> of_transfers(std::size_t count, Deadline deadline) {
  auto owner = open_engine(), user = open_engine();
  if (!owner || !user) return fail(owner ? user.error() : owner.error());
  if (auto met = user->connect(owner->address(), deadline); !met) return fail(met.error());
  auto local = user->add(Memory::own(page)), far = owner->add(Memory::own(page));
  if (!local || !far) return fail(local ? far.error() : local.error());
  auto granted = far->grant({}, Rights::write);
  if (!granted) return fail(std::move(granted.error()));
  auto remote = user->import(granted->blob());
  if (!remote) return fail(std::move(remote.error()));
  const Pair whole{0, 0, page};
  auto prepared = user->prepare(*local, *remote, Direction::write, {&whole, 1});
  if (!prepared) return fail(std::move(prepared.error()));
  const std::size_t rounds = std::max<std::size_t>(1, carried / count);
  const auto rounds_of_all = [&]() -> Result<void> {
    for (std::size_t round = 0; round < rounds; ++round)
      if (auto done = work::carry_together(*user, {&*prepared, 1}, count); !done) return done;
    return {};
  };
  Costs costs;
  return rounds_of_all()
      .and_then([&] { return measure(costs, "write", count * rounds, rounds_of_all); })
      .map([&] { return costs; });
}

Result<Costs> of_rails(std::size_t count, Deadline deadline) {
  auto owner = open_engine(count);
  if (!owner) return fail(owner.error());
  Costs costs;
  std::vector<Engine> engines;
  auto done = measure(costs, "open", count, [&] {
    return open_engine(count).map([&](Engine&& made) { engines.push_back(std::move(made)); });
  });
  if (!done) return fail(std::move(done.error()));
  Engine& user = engines.front();
  const std::vector<std::string> address{owner->address()};
  std::vector<Peer> peers;
  std::vector<Segment> segments;
  std::vector<Remote> remotes;
  std::vector<Prepared> prepared;
  constexpr std::size_t some = 100;
  const Pages pages(some * page);
  segments.reserve(some);
  const Pair whole{0, 0, page};
  auto far = owner->add(Memory::own(page));
  if (!far) return fail(std::move(far.error()));
  auto granted = far->grant({}, Rights::write);
  if (!granted) return fail(std::move(granted.error()));
  const std::vector<Blob> blobs{granted->blob()};
  return measure(costs, "meet a peer", count,
                 [&] { return work::connect(user, address, deadline, peers); })
      .and_then([&] {
        return measure(costs, "add a segment", some * count,
                       [&] { return work::add(user, pages.data(), page, some, segments); });
      })
      .and_then([&] { return work::import(user, blobs, remotes); })
      .and_then([&] {
        return work::prepare(user, std::span(segments).first(1), remotes, {&whole, 1}, prepared);
      })
      .and_then([&] { return work::carry(user, prepared, carried / 2); })
      .and_then([&] {
        return measure(costs, "write", carried * count,
                       [&] { return work::carry(user, prepared, carried); });
      })
      .and_then([&] {
        return measure(costs, "look", looks * count, [&] { return work::look(user, looks); });
      })
      .map([&] { return costs; });
}

}  // namespace

const std::vector<Dimension>& dimensions() {
  static const std::vector<Dimension> all{
      {"peers", "engines that are met, in other processes", {1, 10, 100, 1000}, 5000, of_peers},
      {"segments",
       "segments of a page, granted and imported",
       {1, 10, 100, 1000, 10'000, 100'000},
       1'000'000,
       of_segments},
      {"blocks",
       "blocks in one transfer",
       {1, 10, 100, 1000, 10'000, 100'000, 1'000'000, 10'000'000},
       100'000'000,
       of_blocks},
      {"transfers",
       "transfers of a block that are under way together",
       {1, 10, 100, 1000, 10'000, 50'000},
       60'000,
       of_transfers},
      {"rails", "rails on both sides", {1, 2, 4, 8, 16, 32}, 64, of_rails},
  };
  return all;
}

}  // namespace weft::perf
