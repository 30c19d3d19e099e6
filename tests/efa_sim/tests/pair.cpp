#include "pair.hpp"

#include <fmt/format.h>
#include <rdma/fi_errno.h>

#include <cstdlib>
#include <sstream>

namespace weft::efa_sim {

void Pair::SetUp() {
  if (std::getenv(socket_variable) == nullptr) GTEST_SKIP() << "run it with with-efa";
  control_ = std::make_unique<EfaControl>(EfaControl::of_environment());
  control_->set("clear");
  if (!Node::exists(GetParam()))
    GTEST_SKIP() << "this libfabric has no fabric " << GetParam() << " (2.1 or newer has)";
  target_ = std::make_unique<test::Child>("target", std::vector{GetParam(), std::to_string(size)});
  there_ = Reach::from_text(target_->hear());
  node_ = std::make_unique<Node>(GetParam(), size);
  peer_ = node_->add(there_);
  ask("insert " + node_->reach().to_text());
}

void Pair::TearDown() {
  if (control_) control_->set("clear");
  if (target_ == nullptr) return;
  node_.reset();
  target_->say("end");
  EXPECT_EQ(target_->join(), 0);
}

ssize_t Pair::write(std::uint64_t operation, std::size_t at, std::size_t length) {
  return post(
      [&] { return node_->write(operation, at, length, peer_, there_.base + at, there_.key); });
}

ssize_t Pair::write_data(std::uint64_t operation, std::size_t at, std::size_t length,
                         std::uint64_t data) {
  return post([&] {
    return node_->write_data(operation, at, length, peer_, there_.base + at, there_.key, data);
  });
}

ssize_t Pair::read(std::uint64_t operation, std::size_t at, std::size_t length) {
  return post(
      [&] { return node_->read(operation, at, length, peer_, there_.base + at, there_.key); });
}

void Pair::gather() {
  for (const Completion& each : node_->take()) {
    if (each.received()) continue;
    order_.push_back(each.operation);
    EXPECT_TRUE(ended_.emplace(each.operation, each).second)
        << "operation " << each.operation << " ended twice";
  }
}

bool Pair::finished(std::uint64_t operation) {
  gather();
  return ended_.contains(operation);
}

Completion Pair::finish(std::uint64_t operation, std::chrono::milliseconds within) {
  const auto end = std::chrono::steady_clock::now() + within;
  while (!finished(operation) && std::chrono::steady_clock::now() < end)
    std::this_thread::sleep_for(200us);
  if (finished(operation)) return ended_.at(operation);
  ADD_FAILURE() << "operation " << operation << " does not end";
  Completion none;
  none.error = -1;
  return none;
}

void Pair::expect_there(std::uint64_t seed, std::size_t from, std::size_t length, std::size_t at) {
  EXPECT_EQ(ask(fmt::format("check {} {} {} {}", seed, from, length, at)), "yes");
}

std::string Pair::await_answer(const std::string& question, const std::string& beginning) {
  const auto end = std::chrono::steady_clock::now() + 20s;
  std::string answer = ask(question);
  while (!answer.starts_with(beginning) && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(1ms);
    answer = ask(question);
  }
  return answer;
}

namespace {

/// The other side: holds memory, and answers
///   insert REACH               takes up the address of the other node
///   fill SEED                  fills its memory
///   check SEED FROM LENGTH AT  whether LENGTH bytes at AT are those of SEED from FROM on
///   watch SEED BLOCK           from now on: at the arrival of data D, block D must hold SEED
///   data                       how much data arrived, how much of it out of order, and how much
///                              before the bytes it stands for
///   receive BYTES COUNT        posts receives (tagged 1000 and on, with "tagged" before BYTES)
///   received                   how many of these ended
///   again                      registers its memory once more: the key
///   forget                     takes that back
///   end
class Target {
 public:
  Target(const std::string& fabric, std::size_t size) : node_(fabric, size) {}

  std::string reach() const { return node_.reach().to_text(); }

  std::string answer(const std::string& question) {
    gather();
    std::istringstream words(question);
    std::string verb;
    words >> verb;
    if (verb == "insert") {
      node_.add(Reach::from_text(question.substr(verb.size() + 1)));
      return "yes";
    }
    if (verb == "receive") return post_receives(words);
    if (verb == "received") return std::to_string(received_);
    if (verb == "data") return fmt::format("{} {} {}", arrived_, inverted_, early_);
    if (verb == "again") return std::to_string(node_.register_again());
    if (verb == "forget") {
      node_.deregister_again();
      return "yes";
    }
    std::uint64_t seed = 0, from = 0, length = 0, at = 0;
    words >> seed >> from >> length >> at;
    if (verb == "watch") {
      seed_ = seed;
      block_ = from;
      return "yes";
    }
    const std::span memory(node_.memory(), node_.size());
    if (verb == "fill") {
      test::fill(memory, seed);
      return "yes";
    }
    const auto holds = test::holds(memory.subspan(at, length), seed, from);
    return holds ? "yes" : holds.message();
  }

  void gather() {
    for (const Completion& each : node_.take()) {
      if (each.error != 0) {
        std::fprintf(stderr, "target: error %d, %d\n", each.error, each.device_error);
      } else if ((each.flags & FI_REMOTE_CQ_DATA) != 0) {
        note_arrival(each.data);
      } else if ((each.flags & FI_RECV) != 0) {
        ++received_;
      }
    }
  }

 private:
  void note_arrival(std::uint64_t data) {
    ++arrived_;
    if (data < newest_) ++inverted_;
    newest_ = data;
    const std::span memory(node_.memory(), node_.size());
    if (block_ > 0 && !test::holds(memory.subspan(data * block_, block_), seed_, data * block_))
      ++early_;
  }

  std::string post_receives(std::istringstream& words) {
    std::string first;
    words >> first;
    const bool tagged = first == "tagged";
    if (tagged) words >> first;
    const std::size_t bytes = std::stoul(first);
    std::size_t count = 0;
    words >> count;
    for (std::size_t i = 0; i < count; ++i) {
      const ssize_t result = tagged ? node_.receive_tagged(i, i * bytes, bytes, 1000 + i)
                                    : node_.receive(i, i * bytes, bytes);
      if (result != 0) return "no";
    }
    return "yes";
  }

  Node node_;
  std::uint64_t seed_ = 0, block_ = 0, newest_ = 0;
  unsigned arrived_ = 0, inverted_ = 0, early_ = 0, received_ = 0;
};

WEFT_ROLE(target) {
  Target target(arguments.at(0), std::stoul(arguments.at(1)));
  parent.say(target.reach());
  while (true) {
    const std::string question = parent.hear(Deadline::in(120s));
    if (question == "end") return 0;
    parent.say(target.answer(question));
  }
}

}  // namespace
}  // namespace weft::efa_sim
