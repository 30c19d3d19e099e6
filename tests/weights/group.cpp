#include "group.hpp"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <mutex>
#include <optional>
#include <random>
#include <sstream>
#include <stdexcept>
#include <thread>
#include <weft/testkit.hpp>

#include "engines.hpp"

namespace weft::weights::test {
namespace {

using namespace std::chrono_literals;
using weft::test::Line;
using weft::test::must;

constexpr std::uint64_t rows = 240, columns = 480;  // both are divisible by 1 to 6
enum Tensor : std::uint64_t { matrix, vector };

/// The element at `index` of a tensor in a step: unlike every other.
std::uint64_t value(std::uint64_t step, Tensor tensor, std::uint64_t index) {
  return (step << 32 | std::uint64_t{tensor} << 31 | index) * 0x9e37'79b9'7f4a'7c15;
}

/// The part of the model that a rank has, and where its elements lie.
struct Part {
  std::uint64_t first_row, row_count, first_column, column_count;

  std::uint64_t elements() const { return row_count * column_count + columns; }
  Rank describe(const std::string& name) const {
    return {.name = name,
            .host = "here",
            .shards = {{.name = "matrix",
                        .dtype = DType::int64,
                        .shape = {rows, columns},
                        .begin = {first_row, first_column},
                        .extent = {row_count, column_count}},
                       {.name = "vector",
                        .dtype = DType::int64,
                        .shape = {columns},
                        .begin = {0},
                        .extent = {columns},
                        .offset = row_count * column_count * 8}}};
  }
  std::uint64_t at(std::uint64_t step, std::uint64_t i) const {
    if (i >= row_count * column_count) return value(step, vector, i - row_count * column_count);
    const std::uint64_t row = first_row + i / column_count,
                        column = first_column + i % column_count;
    return value(step, matrix, row * columns + column);
  }
};

std::uint64_t* words(Segment& segment) {
  return reinterpret_cast<std::uint64_t*>(segment.data());
}

/// What a child is told of its group.
struct Settings : GroupOptions {
  explicit Settings(const std::vector<std::string>& arguments) {
    std::istringstream words(arguments.at(0));
    int how = 0;
    words >> provider >> index >> trainers >> ranks >> sets >> replicas >> how >> chunk_bytes >>
        verify >> rails >> faulty;
    fan_out = static_cast<FanOut>(how);
    leader = arguments.at(1);
    state_file = arguments.at(2).substr(1);
  }
  static std::vector<std::string> text(const GroupOptions& options, std::size_t index,
                                       const std::string& leader) {
    std::ostringstream words;
    words << options.provider << ' ' << index << ' ' << options.trainers << ' ' << options.ranks
          << ' ' << options.sets << ' ' << options.replicas << ' '
          << static_cast<int>(options.fan_out) << ' ' << options.chunk_bytes << ' '
          << options.verify << ' ' << options.rails << ' ' << options.faulty;
    return {words.str(), leader, "=" + (index == 0 ? options.state_file : std::string())};
  }

  std::uint32_t index = 0;
  std::string leader;
};

Config config_for(const Settings& settings, const std::string& name) {
  Config config;
  config.use_environment = false;
  config.name = name;
  config.providers = {settings.provider};
  config.rails = static_cast<unsigned>(settings.rails);
  config.threads = 1;
  config.default_timeout = 10s;
  config.death_after = 20s;
  return config;
}

std::shared_ptr<Segment> make_segment(Engine& engine, const Part& part) {
  return std::make_shared<Segment>(must(engine.add(Memory::shared(part.elements() * 8))));
}

/// "publish STEP MILLISECONDS": answers "done", or the error; "sent": bytes of the last that was.
WEFT_ROLE(weights_trainer) {
  const Settings settings(arguments);
  const std::string name = "trainer" + std::to_string(settings.index);
  Config config = config_for(settings, name);
  if (settings.index == 0) config.listen = settings.leader;
  Engine engine = must(Engine::open(config));
  const Part part{settings.index * rows / settings.trainers, rows / settings.trainers, 0, columns};
  const auto segment = make_segment(engine, part);
  Publisher publisher =
      must(Publisher::open(engine, part.describe(name), {segment},
                           {.rank = settings.index,
                            .publishers = static_cast<std::uint32_t>(settings.trainers),
                            .leader = settings.leader,
                            .subscribers = static_cast<std::uint32_t>(settings.ranks),
                            .verify = settings.verify,
                            .fan_out = settings.fan_out,
                            .chunk_bytes = settings.chunk_bytes}));
  std::uint64_t sent = 0;
  parent.say("there");
  while (true) {
    std::istringstream said(parent.hear(Deadline::in(600s)));
    std::string verb;
    std::uint64_t step = 0;
    std::int64_t time = 0;
    said >> verb >> step >> time;
    if (verb == "end") return 0;
    if (verb == "sent") {
      parent.say(std::to_string(sent));
      continue;
    }
    for (std::uint64_t i = 0; i < part.elements(); ++i) words(*segment)[i] = part.at(step, i);
    const auto published = publisher.publish(step, Deadline::in(milliseconds(time)));
    if (published) sent = published->bytes;
    parent.say(published ? "done" : published.error().to_string());
  }
}

/// Reads all the time, and compares every element with what its step must be.
class Watcher {
 public:
  Watcher(Subscriber& subscriber, std::vector<Segments>& sets, const Part& part)
      : thread_([this, &subscriber, &sets, part] {
          while (!stop_) look(subscriber, sets, part);
        }) {}
  ~Watcher() {
    stop_ = true;
    thread_.join();
  }
  std::string wrong() {
    const std::lock_guard lock(mutex_);
    return wrong_;
  }
  std::uint64_t looks() const { return looks_; }

 private:
  void look(Subscriber& subscriber, std::vector<Segments>& sets, const Part& part) {
    const auto reading = subscriber.read();
    if (!reading) return std::this_thread::yield();
    const std::uint64_t* at = words(*sets[reading->set()][0]);
    for (std::uint64_t i = 0; i < part.elements(); ++i)
      if (at[i] != part.at(reading->step(), i)) return complain(reading->step(), i);
    if (reading->step() < last_) complain(reading->step(), 0);
    last_ = reading->step();
    ++looks_;
  }
  void complain(std::uint64_t step, std::uint64_t index) {
    const std::lock_guard lock(mutex_);
    wrong_ = "step " + std::to_string(step) + " is wrong at " + std::to_string(index);
  }

  std::atomic<bool> stop_ = false;
  std::atomic<std::uint64_t> looks_ = 0;
  std::uint64_t last_ = 0;
  std::mutex mutex_;
  std::string wrong_;
  std::thread thread_;
};

std::string text_of(const Standing& standing) {
  constexpr const char* names[] = {"none", "ready", "in_doubt", "unusable"};
  return std::string(names[static_cast<std::size_t>(standing.state)]) + " " +
         std::to_string(standing.step);
}

/// Says so when the first operation was dropped.
std::string wait_dropped(const testkit::Faults& faults, Deadline deadline) {
  while (faults.counts().dropped == 0)
    if (deadline.passed())
      return "nothing was dropped";
    else
      std::this_thread::sleep_for(1ms);  // A count tells nobody.
  return "ok";
}

/// Its links with the others break, or with one of that name.
void cut(Engine& engine, const std::string& name) {
  for (const Peer& peer : engine.peers())
    if (name.empty() || peer.name() == name)
      (void)peer.disconnect();  // It may have gone by itself.
}

/// "standing"; "wrong"; "why"; "looks"; "wait STEP MILLISECONDS"; "pin" and "unpin"; "cut" and "cut
/// NAME"; of one that is faulty "drop", "dropped MILLISECONDS", "kill RAIL" and "mend".
WEFT_ROLE(weights_rank) {
  const Settings settings(arguments);
  const std::string name = "rank" + std::to_string(settings.index);
  const Config config = config_for(settings, name);
  testkit::Faults faults;
  Engine engine = must(settings.faulty ? testkit::open(config, faults) : Engine::open(config));
  const std::uint64_t parts = settings.ranks / settings.replicas;
  const Part part{0, rows, settings.index % parts * columns / parts, columns / parts};
  std::vector<Segments> sets;
  for (std::size_t i = 0; i < settings.sets; ++i) sets.push_back({make_segment(engine, part)});
  Subscriber subscriber = must(Subscriber::open(
      engine, part.describe(name), sets,
      {.rank = settings.index, .leader = settings.leader, .state_file = settings.state_file}));
  Watcher watcher(subscriber, sets, part);
  std::optional<Reading> pinned;
  parent.say("there");
  while (true) {
    std::istringstream said(parent.hear(Deadline::in(600s)));
    std::string verb, word;
    said >> verb >> word;
    if (verb == "end") return 0;
    std::string answer = "ok";
    if (verb == "standing") answer = text_of(subscriber.standing());
    if (verb == "why") answer = subscriber.standing().why + ".";
    if (verb == "wrong") answer = watcher.wrong();
    if (verb == "looks") answer = std::to_string(watcher.looks());
    if (verb == "pin") pinned = must(subscriber.read());
    if (verb == "unpin") pinned.reset();
    if (verb == "cut") cut(engine, word);
    if (verb == "drop") faults.set({.drop = 1});
    if (verb == "dropped")
      answer = wait_dropped(faults, Deadline::in(milliseconds(std::stoll(word))));
    if (verb == "kill") faults.kill(std::stoul(word));
    if (verb == "mend") faults.clear();
    if (verb == "wait") {
      std::int64_t time = 0;
      said >> time;
      const auto came = subscriber.wait(std::stoull(word), Deadline::in(milliseconds(time)));
      if (!came) answer = came.error().to_string();
    }
    parent.say(answer);
  }
}

/// A port of loopback that the system gives to nobody by itself.
std::string free_address() {
  static std::atomic<unsigned> next{std::random_device{}()};  // Those of neighbours would meet.
  for (int tries = 0; tries < 20'000; ++tries) {
    const auto port = static_cast<std::uint16_t>(10'000 + next++ % 20'000);
    const int made = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const bool free =
        ::bind(made, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
    ::close(made);
    if (free) return "127.0.0.1:" + std::to_string(port);
  }
  throw std::runtime_error("no port is free");
}

}  // namespace

Group::Group(const GroupOptions& options)
    : options_(options),
      leader_(free_address()),
      trainers_(options.trainers),
      ranks_(options.ranks),
      publishing_(options.trainers) {
  for (std::size_t i = 0; i < trainers_.size(); ++i) start_trainer(i);
  for (std::size_t i = 0; i < ranks_.size(); ++i) start_rank(i);
}

Group::~Group() {
  for (auto* side : {&ranks_, &trainers_})
    for (auto& child : *side)
      if (child && !child->ended()) child->say("end");
  for (auto* side : {&ranks_, &trainers_})
    for (auto& child : *side)
      if (child) child->join();
}

void Group::start_trainer(std::size_t i) {
  trainers_[i] = std::make_unique<weft::test::Child>("weights_trainer", arguments(i));
  trainers_[i]->hear();
}

void Group::start_rank(std::size_t i) {
  ranks_[i] = std::make_unique<weft::test::Child>("weights_rank", arguments(i));
  ranks_[i]->hear();
}

std::vector<std::string> Group::arguments(std::size_t index) const {
  return Settings::text(options_, index, leader_);
}

std::uint64_t Group::model_bytes() noexcept {
  return (rows * columns + columns) * 8;
}

std::uint64_t Group::sent_bytes() {
  std::uint64_t bytes = 0;
  for (const auto& each : trainers_) bytes += std::stoull(each->ask("sent"));
  return bytes;
}

void Group::begin(std::uint64_t step, milliseconds time) {
  for (std::size_t i = 0; i < trainers_.size(); ++i) {
    publishing_[i] = trainer_lives(i);
    if (publishing_[i])
      trainers_[i]->say("publish " + std::to_string(step) + " " + std::to_string(time.count()));
  }
}

std::vector<std::string> Group::heard() {
  std::vector<std::string> answers(trainers_.size(), "dead");
  for (std::size_t i = 0; i < trainers_.size(); ++i)
    if (publishing_[i] && trainer_lives(i)) try {
        answers[i] = trainers_[i]->hear();
      } catch (const std::runtime_error&) {
        if (trainer_lives(i)) throw;  // It died after it was asked.
      }
  return answers;
}

std::string Group::wait(std::size_t rank, std::uint64_t step, milliseconds time) {
  return rank_ask(rank, "wait " + std::to_string(step) + " " + std::to_string(time.count()));
}

void expect_all_done(const std::vector<std::string>& heard) {
  for (const std::string& each : heard) EXPECT_EQ(each, "done");
}

bool comes_to_say(Group& group, std::size_t rank, const std::string& question,
                  const std::string& part) {
  const auto deadline = Deadline::in(long_enough);
  while (group.rank_ask(rank, question).find(part) == std::string::npos)
    if (deadline.passed()) return false;
  return true;
}

void expect_all_at(Group& group, std::uint64_t step) {
  for (std::size_t i = 0; i < group.ranks(); ++i) {
    if (!group.rank_lives(i)) continue;
    EXPECT_EQ(group.standing(i), "ready " + std::to_string(step)) << "rank " << i;
    EXPECT_EQ(group.wrong(i), "") << "rank " << i;
  }
}

}  // namespace weft::weights::test
