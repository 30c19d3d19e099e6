#include "group.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <mutex>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <thread>
#include <weft/weights.hpp>

namespace weft::weights::test {
namespace {

using namespace std::chrono_literals;
using weft::test::Line;

constexpr auto patience = 60s;
constexpr std::uint64_t rows = 240, columns = 480;  // both are divisible by 1 to 6
enum Tensor : std::uint64_t { matrix, vector };

template <typename T>
T must(Result<T> result) {
  if (!result) throw std::runtime_error(result.error().to_string());
  if constexpr (!std::is_void_v<T>) return std::move(*result);
}

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

Config config_for(const std::string& provider, const std::string& name) {
  Config config;
  config.use_environment = false;
  config.name = name;
  config.providers = {provider};
  config.rails = 1;
  config.threads = 1;
  config.default_timeout = 10s;
  config.death_after = 20s;
  return config;
}

std::shared_ptr<Segment> make_segment(Engine& engine, const Part& part) {
  return std::make_shared<Segment>(must(engine.add(Memory::shared(part.elements() * 8))));
}

/// "publish STEP MILLISECONDS": answers "done", or the error.
WEFT_ROLE(weights_trainer) {
  const std::string provider = arguments.at(0), leader = arguments.at(3);
  const auto rank = static_cast<std::uint32_t>(std::stoul(arguments.at(1)));
  const auto count = static_cast<std::uint32_t>(std::stoul(arguments.at(2)));
  const auto ranks = static_cast<std::uint32_t>(std::stoul(arguments.at(4)));
  const std::string name = "trainer" + arguments.at(1);
  Config config = config_for(provider, name);
  if (rank == 0) config.listen = leader;
  Engine engine = must(Engine::open(config));
  const Part part{rank * rows / count, rows / count, 0, columns};
  const auto segment = make_segment(engine, part);
  Publisher publisher = must(
      Publisher::open(engine, part.describe(name), {segment},
                      {.rank = rank, .publishers = count, .leader = leader, .subscribers = ranks}));
  parent.say("there");
  while (true) {
    std::istringstream said(parent.hear(Deadline::in(600s)));
    std::string verb;
    std::uint64_t step = 0;
    std::int64_t time = 0;
    said >> verb >> step >> time;
    if (verb == "end") return 0;
    for (std::uint64_t i = 0; i < part.elements(); ++i) words(*segment)[i] = part.at(step, i);
    const auto published = publisher.publish(step, Deadline::in(milliseconds(time)));
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

/// "standing"; "wrong"; "why"; "wait STEP MILLISECONDS"; "pin" and "unpin".
WEFT_ROLE(weights_rank) {
  const std::string provider = arguments.at(0);
  const auto rank = static_cast<std::uint32_t>(std::stoul(arguments.at(1)));
  const auto count = static_cast<std::uint32_t>(std::stoul(arguments.at(2)));
  const std::string name = "rank" + arguments.at(1);
  Engine engine = must(Engine::open(config_for(provider, name)));
  const Part part{0, rows, rank * columns / count, columns / count};
  std::vector<Segments> sets;
  for (std::size_t i = 0; i < std::stoul(arguments.at(4)); ++i)
    sets.push_back({make_segment(engine, part)});
  Subscriber subscriber = must(Subscriber::open(
      engine, part.describe(name), sets,
      {.rank = rank, .leader = arguments.at(3), .state_file = arguments.at(5).substr(1)}));
  Watcher watcher(subscriber, sets, part);
  std::optional<Reading> pinned;
  parent.say("there");
  while (true) {
    std::istringstream said(parent.hear(Deadline::in(600s)));
    std::string verb;
    std::uint64_t step = 0;
    std::int64_t time = 0;
    said >> verb >> step >> time;
    if (verb == "end") return 0;
    std::string answer = "ok";
    if (verb == "standing") answer = text_of(subscriber.standing());
    if (verb == "why") answer = subscriber.standing().why + ".";
    if (verb == "wrong") answer = watcher.wrong();
    if (verb == "looks") answer = std::to_string(watcher.looks());
    if (verb == "pin") pinned = must(subscriber.read());
    if (verb == "unpin") pinned.reset();
    if (verb == "wait") {
      const auto came = subscriber.wait(step, Deadline::in(milliseconds(time)));
      if (!came) answer = came.error().to_string();
    }
    parent.say(answer);
  }
}

/// A port of loopback that the system gives to nobody by itself.
std::string free_address() {
  static std::atomic<unsigned> next{static_cast<unsigned>(getpid())};
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
  trainers_[i] = std::make_unique<weft::test::Child>(
      "weights_trainer", std::vector<std::string>{options_.provider, std::to_string(i),
                                                  std::to_string(trainers_.size()), leader_,
                                                  std::to_string(ranks_.size())});
  trainers_[i]->hear();
}

void Group::start_rank(std::size_t i) {
  ranks_[i] = std::make_unique<weft::test::Child>(
      "weights_rank",
      std::vector<std::string>{options_.provider, std::to_string(i), std::to_string(ranks_.size()),
                               leader_, std::to_string(options_.sets),
                               "=" + (i == 0 ? options_.state_file : std::string())});
  ranks_[i]->hear();
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

}  // namespace weft::weights::test
