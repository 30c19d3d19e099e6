// Both sides in one process, over real rails.
#include <gmock/gmock.h>

#include <deque>
#include <filesystem>
#include <map>
#include <stdexcept>
#include <thread>

#include "baseline/raw_baseline.hpp"
#include "folder.hpp"
#include "measure/sweep.hpp"
#include "raw/usage.hpp"
#include "report/summary.hpp"
#include "report/title.hpp"
#include "sides/target.hpp"

namespace weft::perf {
namespace {

using testing::HasSubstr;

using Meddle = std::function<void(std::span<std::byte>)>;

Site short_of_patience() {
  Site site;
  site.listen = "127.0.0.1:0";
  site.timeout = std::chrono::seconds(30);
  return site;
}

Point point_of(const std::string& provider, Operation operation) {
  Point point;
  point.fabric.provider = provider;
  point.work.operation = operation;
  point.work.size = 6000;
  point.work.window = 4;
  return point;
}

Json prepare_question(const Point& point) {
  return {{"point", point}, {"seed", 1}, {"verify", true}, {"initiators", Json::array({"nobody"})}};
}

SweepOptions counted(std::uint64_t operations) {
  SweepOptions options;
  options.run.length = {std::chrono::seconds(20), operations};
  options.run.warm_up = Nanoseconds::zero();
  options.run.verify = true;
  options.repeats = 2;
  return options;
}

/// Other sides on threads of their own, until the test is over.
class PerfSides : public testing::TestWithParam<std::string> {
 protected:
  void start(Meddle meddle = {}) { sides_.targets.push_back(started(std::move(meddle))); }
  void start_initiators(int count) {
    for (int i = 0; i < count; ++i) sides_.initiators.push_back({started()});
  }
  Control started(Meddle meddle = {}) {
    auto opened = Target::open(site_, std::move(meddle));
    if (!opened) throw std::runtime_error(opened.error().to_string());
    Target& target = targets_.emplace_back(std::move(*opened));
    serving_.emplace_back([&] {
      const auto served = target.serve(Deadline::in(site_.timeout));
      if (!served) ++failed_;
    });
    auto control = Control::connect(site_, target.address());
    if (!control) throw std::runtime_error(control.error().to_string());
    // Once it has answered, it serves.
    if (auto facts = control->ask("facts"); !facts)
      throw std::runtime_error(facts.error().to_string());
    return std::move(*control);
  }
  /// The other sides see this one leave.
  void finish() {
    sides_.targets.clear();
    sides_.initiators.clear();
    serving_.clear();
    targets_.clear();
  }
  void TearDown() override {
    for (Target& target : targets_) target.interrupt();
    finish();
  }

  Result<std::vector<PointResult>> sweep(std::vector<Point> points, const SweepOptions& options) {
    Sweep all(sides_, site_, options, std::move(points));
    if (auto swept = all.run(stop_.get_token()); !swept) return fail(std::move(swept.error()));
    return all.results();
  }

  Site site_ = short_of_patience();
  std::deque<Target> targets_;
  Sides sides_;
  std::vector<std::jthread> serving_;
  std::atomic<int> failed_{0};
  std::stop_source stop_;
};

TEST_P(PerfSides, EveryOperationIsVerified) {
  start();
  std::vector<Point> points;
  for (const Operation operation :
       {Operation::write, Operation::read, Operation::signal, Operation::message, Operation::mixed})
    points.push_back(point_of(GetParam(), operation));
  Point scattered = point_of(GetParam(), Operation::write);
  scattered.work.pieces = 100;
  scattered.work.pattern = Pattern::random;
  points.push_back(scattered);
  Point kv = point_of(GetParam(), Operation::signal);
  kv.work.kv = {"gpt-oss-20b", "bf16", 40, 16, 5, 2, 1};
  points.push_back(kv);
  Point open = point_of(GetParam(), Operation::write);
  open.work.rate = 2000;
  points.push_back(open);
  for (const Priority priority : {Priority::latency, Priority::bulk}) {
    points.push_back(point_of(GetParam(), Operation::write));
    points.back().work.priority = priority;
  }
  const auto results = sweep(points, counted(20));
  ASSERT_TRUE(results) << results.error().to_string();
  ASSERT_EQ(results->size(), points.size());
  for (const PointResult& result : *results) {
    ASSERT_EQ(result.runs.size(), 2U);
    for (const perf::Run& run : result.runs) {
      EXPECT_EQ(run.operations, 20U) << title(result.point);
      EXPECT_EQ(run.latency.count(), 20U);
      EXPECT_GT(run.seconds, 0);
      EXPECT_GE(run.findings.checked, 4 * 6000U) << title(result.point);
      EXPECT_EQ(run.findings.wrong, 0U) << title(result.point) << ": " << run.findings.first;
      if (result.point.work.operation == Operation::message) continue;
      std::uint64_t carried = 0;
      for (const auto& [rail, bytes] : run.rails) carried += bytes;
      // Rails may count a chunk a moment after its transfer has ended.
      EXPECT_NEAR(static_cast<double>(carried), static_cast<double>(run.bytes),
                  static_cast<double>(run.bytes) / 20 * result.point.work.window)
          << title(result.point);
      EXPECT_GE(run.copies.per_byte, 1) << title(result.point);
      if (GetParam() == "shm") {
        EXPECT_DOUBLE_EQ(run.copies.per_byte, 1) << title(result.point);
        EXPECT_TRUE(run.copies.known);
      }
    }
  }
  finish();
  EXPECT_EQ(failed_, 0);
}

/// Each side with its own kind, so that no two are taken for each other.
TEST_P(PerfSides, EveryMemoryIsVerified) {
  std::atomic<std::size_t> flipped{0};
  std::atomic<bool> meddle{false};
  start([&](std::span<std::byte> memory) {
    if (meddle) memory[4000] ^= std::byte{1}, ++flipped;
  });
  std::vector<Point> points;
  for (const char* memory : {"host", "shared"})
    for (const char* peer_memory : {"shared", "host"})
      for (const Operation operation : {Operation::write, Operation::mixed}) {
        points.push_back(point_of(GetParam(), operation));
        points.back().work.memory = memory;
        points.back().work.peer_memory = peer_memory;
      }
  const auto results = sweep(points, counted(20));
  ASSERT_TRUE(results) << results.error().to_string();
  for (const PointResult& result : *results)
    EXPECT_EQ(summarize(result).findings.wrong, 0U) << title(result.point);
  meddle = true;
  const auto wrong = sweep({points.front()}, counted(20));
  ASSERT_TRUE(wrong) << wrong.error().to_string();
  EXPECT_EQ(summarize(wrong->front()).findings.wrong, flipped);
}

/// Files of either side, direct and buffered, with all that they are compared with.
TEST_P(PerfSides, FilesAreVerified) {
  const test::Folder folder;
  const std::string here = folder.at("here"), there = folder.at("there");
  site_.files = {here, there};
  start();
  std::vector<Point> points;
  for (const char* way : {"", ",buffered"})
    for (const Operation operation : {Operation::read, Operation::write, Operation::mixed}) {
      points.push_back(point_of(GetParam(), operation));
      points.back().work.peer_memory = "file:" + there + way;
      points.push_back(points.back());
      points.back().work.memory = "file:" + here + way;
    }
  points.push_back(point_of(GetParam(), Operation::read));
  points.back().work.memory = "file:" + here;
  SweepOptions options = counted(20);
  options.repeats = 1;
  options.run.length.time = std::chrono::milliseconds(50);
  options.baselines = {Baseline{Baseline::Kind::disk}, Baseline{Baseline::Kind::wire}};
  const auto results = sweep(points, options);
  ASSERT_TRUE(results) << results.error().to_string();
  for (const PointResult& result : *results) {
    EXPECT_EQ(result.runs.front().findings.wrong, 0U)
        << title(result.point) << ": " << result.runs.front().findings.first;
    EXPECT_GE(result.runs.front().findings.checked, 4 * 6000U);
    for (const char* name : {"disk", "wire"})
      EXPECT_GT(result.baselines.at(name).front(), 0) << title(result.point);
  }
}

TEST_P(PerfSides, AFileThatIsNotLentIsNotTouched) {
  const test::Folder folder;
  start();
  Point point = point_of(GetParam(), Operation::read);
  point.work.peer_memory = "file:" + folder.at("there");
  const auto results = sweep({point}, counted(20));
  ASSERT_FALSE(results);
  EXPECT_EQ(results.error().code(), Code::remote_failed);
  EXPECT_THAT(results.error().message(), HasSubstr("--files"));
  SweepOptions options = counted(20);
  for (const Baseline::Kind kind : {Baseline::Kind::disk, Baseline::Kind::fio}) {
    options.baselines = {Baseline{kind}};
    EXPECT_EQ(sweep({point}, options).error().code(), Code::remote_failed);
    EXPECT_EQ(sweep({point_of(GetParam(), Operation::read)}, options).error().code(),
              Code::invalid_argument);
  }
  EXPECT_FALSE(std::filesystem::exists(folder.at("there")));
}

TEST_P(PerfSides, ContiguousIsMeasuredBesideEachRun) {
  start();
  Point kv = point_of(GetParam(), Operation::read);
  kv.work.kv = {"GPT-OSS-20B", "bf16", 40, 16, 5, 1, 1};
  kv.work.size = bytes_of_request(kv.work.kv).value();
  SweepOptions options = counted(20);
  options.baselines = {Baseline{Baseline::Kind::contiguous}};
  const auto results = sweep({kv}, options);
  ASSERT_TRUE(results) << results.error().to_string();
  const PointResult& result = results->front();
  ASSERT_EQ(result.runs.size(), 2U);
  EXPECT_EQ(result.runs[0].findings.wrong, 0U);
  const auto& beside = result.baselines.at("contiguous");
  ASSERT_EQ(beside.size(), 2U);
  EXPECT_GT(beside[0], 0);
  EXPECT_GT(summarize(result).ratios.at("contiguous").low, 0);
}

/// As the environment may have it: nobody but this process's loops drives the rails.
TEST_P(PerfSides, ManualProgress) {
  ::setenv("WEFT_PROGRESS", "manual", 1);
  start();
  std::vector<Point> points;
  for (const Operation operation : {Operation::write, Operation::signal, Operation::message})
    points.push_back(point_of(GetParam(), operation));
  Point open = point_of(GetParam(), Operation::write);
  open.work.rate = 2000;
  points.push_back(open);
  const auto results = sweep(points, counted(20));
  ::unsetenv("WEFT_PROGRESS");
  ASSERT_TRUE(results) << results.error().to_string();
  for (const PointResult& result : *results)
    for (const perf::Run& run : result.runs) {
      EXPECT_EQ(run.operations, 20U) << title(result.point);
      EXPECT_EQ(run.findings.wrong, 0U) << run.findings.first;
    }
}

/// The first of them, and no more than there are.
TEST_P(PerfSides, NumbersOfTargetsInOneSweep) {
  for (int i = 0; i < 3; ++i) start();
  std::vector<Point> points;
  for (const std::uint32_t peers : {1U, 3U, 2U}) {
    points.push_back(point_of(GetParam(), Operation::write));
    points.back().peers = peers;
  }
  const auto results = sweep(points, counted(60));
  ASSERT_TRUE(results) << results.error().to_string();
  for (const PointResult& result : *results)
    for (const perf::Run& run : result.runs) {
      EXPECT_EQ(run.operations, 60U) << title(result.point);
      EXPECT_EQ(run.findings.wrong, 0U) << run.findings.first;
      // 4 operations of 6000 bytes at each of the targets, and those they came from.
      const std::uint64_t of_one = results->front().runs.front().findings.checked;
      EXPECT_EQ(run.findings.checked, result.point.peers * of_one) << title(result.point);
    }
  points.front().peers = 4;
  const auto too_many = sweep(points, counted(60));
  ASSERT_FALSE(too_many);
  EXPECT_THAT(too_many.error().message(), HasSubstr("there are no 4 targets, but 3"));
  finish();
  EXPECT_EQ(failed_, 0);
}

std::vector<Point> points_of_initiators(const std::string& provider, std::uint32_t initiators) {
  std::vector<Point> points;
  for (const Operation operation : {Operation::write, Operation::read, Operation::signal,
                                    Operation::message, Operation::mixed}) {
    points.push_back(point_of(provider, operation));
    points.back().initiators = initiators;
  }
  Point kv = points[2];
  kv.work.kv = {"gpt-oss-20b", "bf16", 40, 16, 5, 2, 1};
  points.push_back(kv);
  Point open = points[0];
  open.work.rate = 2000;
  points.push_back(open);
  return points;
}

/// Each has its own memory at each target, and streams of its own in it.
void expect_equal_shares(const PointResult& result, const perf::Run& run) {
  const std::uint32_t initiators = result.point.initiators;
  EXPECT_EQ(run.operations, 60U) << title(result.point);
  EXPECT_EQ(run.latency.count(), 60U);
  EXPECT_EQ(run.findings.wrong, 0U) << title(result.point) << ": " << run.findings.first;
  EXPECT_GE(run.findings.checked, initiators * result.point.peers * 4 * 6000U)
      << title(result.point);
  ASSERT_EQ(run.shares.size(), initiators);
  for (const perf::Share& share : run.shares) {
    EXPECT_EQ(share.operations, 60 / initiators);
    EXPECT_EQ(share.bytes, run.bytes / initiators);
    EXPECT_GE(run.seconds, share.begun + share.seconds);
  }
}

TEST_P(PerfSides, SeveralInitiatorsAtOnce) {
  start();
  start_initiators(3);
  SweepOptions options = counted(60);
  options.repeats = 1;
  const auto hold = [&](std::uint32_t initiators, std::uint32_t targets) {
    auto points = points_of_initiators(GetParam(), initiators);
    for (Point& point : points) point.peers = targets;
    const auto results = sweep(std::move(points), options);
    ASSERT_TRUE(results) << results.error().to_string();
    for (const PointResult& result : *results) expect_equal_shares(result, result.runs.at(0));
  };
  hold(3, 1);
  start();
  hold(2, 2);
  finish();
  EXPECT_EQ(failed_, 0);
}

/// Whose clocks are set against this one's. The first of them measures where there is one.
TEST_P(PerfSides, InitiatorsElsewhere) {
  start();
  start_initiators(3);
  for (const std::size_t i : {0U, 2U}) sides_.initiators[i].at = "host" + std::to_string(i) + ":7";
  sides_.one_is_this = false;
  for (const std::uint32_t initiators : {1U, 3U}) {
    std::vector<Point> points{point_of(GetParam(), Operation::write),
                              point_of(GetParam(), Operation::message)};
    for (Point& point : points) point.initiators = initiators;
    const auto results = sweep(points, counted(60));
    ASSERT_TRUE(results) << results.error().to_string();
    for (const PointResult& result : *results) {
      const perf::Run& run = result.runs.at(0);
      expect_equal_shares(result, run);
      for (std::uint32_t i = 0; i < initiators; ++i) {
        EXPECT_EQ(run.shares[i].at, sides_.initiators[i].at);
        EXPECT_EQ(run.shares[i].clock_error > 0, i != 1);
      }
    }
  }
  finish();
  EXPECT_EQ(failed_, 0);
}

TEST_P(PerfSides, AWrongByteIsItsInitiators) {
  std::atomic<unsigned> looked{0};
  start([&](std::span<std::byte> memory) {
    if (looked++ == 1) memory[17] ^= std::byte{1};
  });
  start_initiators(3);
  Point point = point_of(GetParam(), Operation::write);
  point.initiators = 3;
  const auto results = sweep({point}, counted(30));
  ASSERT_TRUE(results) << results.error().to_string();
  const Findings found = summarize(results->front()).findings;
  EXPECT_EQ(found.wrong, 1U);
  EXPECT_THAT(found.first, HasSubstr("at the target, initiator 1's byte 17 is"));
  EXPECT_EQ(looked, 6U);  // Each initiator's memory in each run.
}

TEST_P(PerfSides, SeveralInitiatorsNeedWhatTheyNeed) {
  start();
  start_initiators(2);
  Point point = point_of(GetParam(), Operation::write);
  point.initiators = 3;
  EXPECT_THAT(sweep({point}, counted(30)).error().to_string(), HasSubstr("no 3 initiators"));
  point.initiators = 2;
  EXPECT_THAT(sweep({point}, counted(1)).error().to_string(), HasSubstr("fewer operations"));
  point.fabric.provider = "no-such-provider";
  EXPECT_THAT(sweep({point}, counted(2)).error().to_string(), HasSubstr("no-such-provider"));
}

/// Where it can tell before it waits for anyone.
TEST_P(PerfSides, NonsenseIsRefusedByAnInitiator) {
  start_initiators(1);
  Control& initiator = sides_.initiators.front().control;
  EXPECT_FALSE(initiator.ask("initiate"));
  for (const char* step : {"dance", "prepare", "warm up", "measure", "finish"})
    EXPECT_FALSE(initiator.ask("initiate", {{"step", step}})) << step;
  const Json addresses = Json::array();
  EXPECT_FALSE(initiator.ask("initiate", {{"step", "open"}, {"point", 5}}));
  const auto alone = initiator.ask("initiate", {{"step", "open"},
                                                {"point", point_of(GetParam(), Operation::write)},
                                                {"addresses", addresses}});
  ASSERT_FALSE(alone);
  EXPECT_THAT(alone.error().to_string(), HasSubstr("no target"));
  const auto crowd = initiator.ask("initiate", {{"step", "open"},
                                                {"point", point_of(GetParam(), Operation::write)},
                                                {"addresses", Json(65, "127.0.0.1:1")}});
  ASSERT_FALSE(crowd);
  EXPECT_THAT(crowd.error().to_string(), HasSubstr("64 at most"));
}

/// From who has come as far as to be ready.
TEST_P(PerfSides, TimesBeyondAllBoundsAreRefusedByAnInitiator) {
  start();
  start_initiators(1);
  const Point point = point_of(GetParam(), Operation::message);
  const auto initiate = [&](const char* step, Json details) {
    details["step"] = step;
    return sides_.initiators.front().control.ask("initiate", details);
  };
  const auto target = sides_.targets[0].ask("open", {{"point", point}});
  ASSERT_TRUE(target) << target.error().to_string();
  ASSERT_TRUE(initiate("open", {{"point", point}, {"addresses", {target->at("address")}}}));
  ASSERT_TRUE(initiate("prepare", {{"of", Task{point, 0, 1, false}}}));
  const Nanoseconds::rep day = Nanoseconds(std::chrono::hours(24)).count();
  for (const Nanoseconds::rep time : {Nanoseconds::rep{-1}, day + 1}) {
    EXPECT_THAT(initiate("warm up", {{"time_ns", time}}).error().to_string(),
                HasSubstr("24 hours"));
    EXPECT_THAT(initiate("measure", {{"time_ns", time}, {"operations", 1}}).error().to_string(),
                HasSubstr("24 hours"));
  }
}

/// The target of a single initiator, or the last of several initiators.
TEST_P(PerfSides, ASideThatLeavesIsAnError) {
  for (const std::uint32_t initiators : {1U, 3U}) {
    start();
    if (initiators > 1) start_initiators(static_cast<int>(initiators));
    SweepOptions options = counted(0);
    Point point = point_of(GetParam(), Operation::write);
    point.initiators = initiators;
    Sweep all(sides_, site_, options, {point});
    std::jthread leaving;
    all.before_run = [&](const Step&) {
      if (!leaving.joinable()) leaving = std::jthread([&] { targets_.back().interrupt(); });
    };
    const auto swept = all.run(stop_.get_token());
    ASSERT_FALSE(swept);
    EXPECT_NE(swept.error().code(), Code::timed_out) << swept.error().to_string();
    leaving.join();
    finish();
  }
}

/// It would go on for an hour.
TEST_P(PerfSides, AnInitiatorStopsWhenNobodyMeasures) {
  start();
  start_initiators(2);
  SweepOptions options = counted(0);
  options.run.warm_up = std::chrono::hours(1);
  Point point = point_of(GetParam(), Operation::write);
  point.initiators = 2;
  Sweep all(sides_, site_, options, {point});
  std::jthread leaving;
  all.before_run = [&](const Step&) {
    leaving = std::jthread([&](const std::stop_token& stop) {
      // Nothing tells that they warm up, but what they spend on it.
      const double begun = cpu_seconds();
      while (!stop.stop_requested() && cpu_seconds() < begun + 0.5)
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
      for (OtherInitiator& other : sides_.initiators) other.control.interrupt();
    });
  };
  EXPECT_FALSE(all.run(stop_.get_token()));
  // The target is still there: what they do would not end by itself.
  for (const std::size_t initiator : {1U, 2U}) serving_[initiator].join();
  finish();
  EXPECT_EQ(failed_, 0);
}

/// No transfer of class latency may be copied here, and each is.
TEST_P(PerfSides, TransfersHaveThePriorityOfTheirPoint) {
  start();
  ::setenv("WEFT_LATENCY_POLICY", "max_copies=0", 1);
  std::map<Priority, Result<std::vector<PointResult>>> results;
  for (const Priority priority : {Priority::normal, Priority::bulk, Priority::latency}) {
    Point point = point_of(GetParam(), Operation::write);
    point.work.priority = priority;
    results.emplace(priority, sweep({point}, counted(20)));
  }
  ::unsetenv("WEFT_LATENCY_POLICY");
  EXPECT_TRUE(results.at(Priority::normal));
  EXPECT_TRUE(results.at(Priority::bulk));
  ASSERT_FALSE(results.at(Priority::latency));
  EXPECT_EQ(results.at(Priority::latency).error().code(), Code::policy_refused);
}

/// The operations in flight at a time write the same bytes, or read them.
TEST_P(PerfSides, OneBufferIsVerified) {
  std::atomic<std::size_t> size{0}, flipped{0};
  std::atomic<bool> meddle{false};
  start([&](std::span<std::byte> memory) {
    size = memory.size();
    if (meddle) memory[5999] ^= std::byte{1}, ++flipped;
  });
  std::vector<Point> points;
  for (const Operation operation : {Operation::write, Operation::read, Operation::signal}) {
    points.push_back(point_of(GetParam(), operation));
    // One thread on each side: several that write the same bytes at once are a race to a sanitizer.
    points.back().fabric.rails = 1;
    points.back().work.window = 16;
    points.back().work.one_buffer = true;
  }
  points.push_back(points.front());
  points.back().work.kv = {"gpt-oss-20b", "bf16", 40, 16, 5, 2, 1};
  const auto results = sweep(points, counted(40));
  ASSERT_TRUE(results) << results.error().to_string();
  for (const PointResult& result : *results)
    for (const perf::Run& run : result.runs) {
      EXPECT_EQ(run.operations, 40U) << title(result.point);
      EXPECT_GT(run.findings.checked, 2 * 6000U) << title(result.point);
      EXPECT_EQ(run.findings.wrong, 0U) << title(result.point) << ": " << run.findings.first;
    }
  meddle = true;
  const auto wrong = sweep({points.front()}, counted(40));
  ASSERT_TRUE(wrong) << wrong.error().to_string();
  EXPECT_EQ(size, 8192U);
  EXPECT_EQ(summarize(wrong->front()).findings.wrong, flipped);
  EXPECT_EQ(flipped, 2U);
}

/// One bit, in a piece or next to it.
TEST_P(PerfSides, AWrongByteAtTheTargetIsFound) {
  std::atomic<std::size_t> at{0};
  start([&](std::span<std::byte> memory) { memory[at % memory.size()] ^= std::byte{1}; });
  for (const std::size_t where : {std::size_t{0}, std::size_t{5999}, std::size_t{6000}}) {
    at = where;
    const auto results = sweep({point_of(GetParam(), Operation::write)}, counted(10));
    ASSERT_TRUE(results) << results.error().to_string();
    const Findings found = summarize(results->front()).findings;
    EXPECT_EQ(found.wrong, 2U);  // One in each run.
    EXPECT_THAT(found.first, HasSubstr("at the target, byte " + std::to_string(where) + " is"));
  }
}

TEST_P(PerfSides, EnginesAreOpenedAsThePointSays) {
  start();
  std::vector<Point> points(2, point_of(GetParam(), Operation::write));
  points[0].fabric.rails = 1;
  points[1].fabric.rails = 2;
  points[1].fabric.chunk = 16 << 10;
  for (Point& point : points) point.work.size = 2 << 20;  // more than the caller copies itself
  // So many that both threads get to some, on a busy machine too.
  SweepOptions options = counted(40);
  options.repeats = 1;
  const auto results = sweep(points, options);
  ASSERT_TRUE(results) << results.error().to_string();
  EXPECT_EQ((*results)[0].runs[0].rails.size(), 1U);
  EXPECT_EQ((*results)[1].runs[0].rails.size(), 2U);
}

TEST_P(PerfSides, WhatCantBeDoneIsSaid) {
  start();
  Point unknown = point_of("no-such-provider", Operation::write);
  EXPECT_THAT(sweep({unknown}, counted(1)).error().to_string(), HasSubstr("no-such-provider"));
  Point huge = point_of(GetParam(), Operation::write);
  huge.work.size = std::uint64_t{1} << 40;
  EXPECT_THAT(sweep({huge}, counted(1)).error().to_string(), HasSubstr("the machine has"));
  Point nowhere = point_of(GetParam(), Operation::write);
  nowhere.work.peer_memory = "node:700";
  EXPECT_THAT(sweep({nowhere}, counted(1)).error().to_string(), HasSubstr("node 700"));
  nowhere.work.peer_memory = "moon";
  EXPECT_THAT(sweep({nowhere}, counted(1)).error().to_string(), HasSubstr("'moon' is no memory"));
  // And the target still serves.
  EXPECT_TRUE(sweep({point_of(GetParam(), Operation::write)}, counted(1)));
}

/// Sizes out of another process's message, each of which would take the target's memory, or the
/// next century.
TEST_P(PerfSides, SizesBeyondAllBoundsAreRefused) {
  start();
  const Point good = point_of(GetParam(), Operation::write);
  ASSERT_TRUE(sides_.targets[0].ask("open", {{"point", good}}));
  const auto refused = [&](const KvShape& kv, std::uint64_t size, std::uint32_t window) {
    Point point = good;
    point.work.kv = kv;
    point.work.size = size;
    point.work.window = window;
    const auto answer = sides_.targets[0].ask("prepare", prepare_question(point));
    return answer ? std::string("taken") : answer.error().to_string();
  };
  // 16 Mi blocks of 126 layers' keys and values.
  const KvShape tiny_blocks{"Llama-3.1-405B", "bf16", 1 << 24, 1, 1, 1, 1};
  EXPECT_THAT(refused(tiny_blocks, 1, 1), HasSubstr("more than 16777216 pieces"));
  EXPECT_THAT(refused(tiny_blocks, 1, 1 << 16), HasSubstr("more than 16777216 pieces"));
  const KvShape tokens{"Llama-3.1-405B", "bf16", 1 << 24, 1 << 16, 1, 2, 1};
  EXPECT_THAT(refused(tokens, 1, 1), HasSubstr("more than 16777216 pieces"));
  const KvShape large{"Llama-3.1-405B", "bf16", 1 << 24, 1 << 16, 1, 1, 1};
  EXPECT_THAT(refused(large, 1, 64), HasSubstr("more than 17592186044416 bytes"));
  EXPECT_THAT(refused(large, 1, 1), HasSubstr("the machine has"));
  EXPECT_THAT(refused({}, std::uint64_t{1} << 40, 1 << 16),
              HasSubstr("more than 17592186044416 bytes"));
  EXPECT_THAT(refused({}, std::uint64_t{1} << 40, 1), HasSubstr("the machine has"));
  // And the target still serves.
  EXPECT_TRUE(sweep({good}, counted(1)));
}

TEST_P(PerfSides, NonsenseIsRefused) {
  start();
  EXPECT_FALSE(sides_.targets[0].ask("dance"));
  EXPECT_FALSE(sides_.targets[0].ask("open"));
  EXPECT_FALSE(sides_.targets[0].ask("open", {{"point", 5}}));
  EXPECT_FALSE(sides_.targets[0].ask("prepare", prepare_question(Point{})));
  EXPECT_FALSE(sides_.targets[0].ask("end"));
  EXPECT_FALSE(sides_.targets[0].ask("begin stream", {{"bytes", 0}}));
  EXPECT_FALSE(sides_.targets[0].ask("begin stream", {{"bytes", 1 << 30}}));
  EXPECT_TRUE(sides_.targets[0].ask("facts"));
}

/// An initiator that has come and gone is not waited for: the target says why it ended.
TEST_P(PerfSides, AnInitiatorThatHasEndedIsNotWaitedFor) {
  start();
  const Point point = point_of(GetParam(), Operation::write);
  const auto opened = sides_.targets[0].ask("open", {{"point", point}});
  ASSERT_TRUE(opened) << opened.error().to_string();
  const auto address = value_of<std::string>(*opened, "address");
  ASSERT_TRUE(address);
  Json question = prepare_question(point);
  {
    auto config = data_config({}, point, "host");
    ASSERT_TRUE(config) << config.error().to_string();
    auto engine = Engine::open(*config);
    ASSERT_TRUE(engine) << engine.error().to_string();
    ASSERT_TRUE(engine->connect(*address, Deadline::in(site_.timeout)));
    question["initiators"] = {engine->name()};
  }
  const auto begun = Clock::now();
  const auto answer = sides_.targets[0].ask("prepare", question);
  EXPECT_LT(Clock::now() - begun, site_.timeout / 2);
  ASSERT_FALSE(answer);
  EXPECT_THAT(answer.error().message(), HasSubstr("an initiator's engine ended before the run"));
  EXPECT_THAT(answer.error().message(), testing::Not(HasSubstr("timed_out")));
}

/// One that never comes is, and the error names the setting.
TEST_P(PerfSides, AnInitiatorThatNeverComesIsATimeout) {
  site_.timeout = std::chrono::milliseconds(500);
  start();
  const Point point = point_of(GetParam(), Operation::write);
  ASSERT_TRUE(sides_.targets[0].ask("open", {{"point", point}}, std::chrono::seconds(30)));
  const auto answer =
      sides_.targets[0].ask("prepare", prepare_question(point), std::chrono::seconds(30));
  ASSERT_FALSE(answer);
  EXPECT_THAT(answer.error().message(), HasSubstr("has not come within 0.5 s (--timeout)"));
}

/// Of which processes, memory and cores would be taken.
TEST_P(PerfSides, NonsenseIsNoPlainLoop) {
  start();
  Point point = point_of(GetParam(), Operation::write);
  RawTask task{point, 1, {}, 1'000'000, 30'000'000'000, false};
  const auto refused = [&](const char* step) {
    const auto answer = sides_.targets[0].ask("raw", {{"step", step}, {"of", task}});
    return answer ? std::string("taken") : answer.error().to_string();
  };
  EXPECT_THAT(refused("open"), HasSubstr("can't do 'raw' now")) << "it has no engine";
  auto session = Session::open(sides_, site_, point, {});
  ASSERT_TRUE(session);
  EXPECT_THAT(refused("open"), HasSubstr("no rail of the kind"));
  task.kind = session->carrier().kind;
  EXPECT_FALSE(sides_.targets[0].ask("raw"));
  EXPECT_FALSE(sides_.targets[0].ask("raw", {{"step", "open"}, {"of", 5}}));
  for (const char* step : {"connect", "end", "dance"})
    EXPECT_THAT(refused(step), HasSubstr("can't do")) << step;
  task.endpoints = 1 << 30;
  EXPECT_THAT(refused("open"), HasSubstr("cores"));
  task.endpoints = 0;
  EXPECT_THAT(refused("open"), HasSubstr("endpoints go from 1"));
  task.endpoints = 1;
  task.time_ns = -1;
  EXPECT_THAT(refused("open"), HasSubstr("24 hours"));
  task.time_ns = 1'000'000;
  task.point.work.size = std::uint64_t{1} << 40;
  task.point.work.window = 1 << 16;
  EXPECT_THAT(refused("open"), HasSubstr("the machine has"));
  task.point.initiators = task.point.peers = 64;
  EXPECT_THAT(refused("open"), HasSubstr("the machine has")) << "more than 2^64";
  task.point.peers = 0;
  EXPECT_THAT(refused("open"), HasSubstr("1 to 64 targets"));
  session = fail(Code::closed, "it is over");
  // And the target still serves.
  EXPECT_TRUE(sweep({point}, counted(1)));
}

TEST_P(PerfSides, AnInterruptKeepsWhatWasMeasured) {
  start();
  SweepOptions options = counted(5);
  options.repeats = 1;
  std::vector<Point> points(3, point_of(GetParam(), Operation::write));
  points[2].work.size = 12'000;
  Sweep all(sides_, site_, options, points);
  all.point_done = [&](const PointResult&) { stop_.request_stop(); };
  const auto swept = all.run(stop_.get_token());
  ASSERT_FALSE(swept);
  EXPECT_EQ(swept.error().code(), Code::cancelled);
  EXPECT_EQ(all.results()[0].runs.size(), 1U);
  EXPECT_TRUE(all.results()[1].runs.empty());
}

INSTANTIATE_TEST_SUITE_P(, PerfSides, testing::Values("tcp", "shm"),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace weft::perf
