// Director: nodes, from their start to their death.
#include <fmt/format.h>
#include <signal.h>

#include <algorithm>

#include "director.hpp"
#include "pattern.hpp"
#include "speech.hpp"

namespace weft::chaos {
namespace {

using namespace std::chrono_literals;

constexpr auto closing_time = 8s;

}  // namespace

std::vector<unsigned> Director::open_nodes() const {
  std::vector<unsigned> open;
  for (const NodeTruth& node : nodes_)
    if (is_open(node)) open.push_back(node.index);
  return open;
}

bool Director::alive(unsigned node, std::uint64_t life) const {
  return nodes_[node].life && nodes_[node].life->number == life;
}

/// What happens by itself: who is down starts, who is frozen goes on, who has not met meets.
void Director::tend_nodes() {
  const auto now = Clock::now();
  if (disturbed_until_ && now >= *disturbed_until_) {
    fabric_->calm();
    disturbed_until_.reset();
    note({}, "the network is calm");
  }
  for (NodeTruth& node : nodes_) {
    if (node.frozen_until && now >= *node.frozen_until) thaw(node);
    if (node.phase == NodeTruth::Phase::down && now >= node.not_before) start(node);
  }
  for (NodeTruth& node : nodes_)
    for (NodeTruth& other : nodes_)
      if (node.index < other.index && is_open(node) && is_open(other)) meet(node, other);
}

void Director::start(NodeTruth& node) {
  if (!node.process) {
    note({int(node.index)}, fmt::format("{} starts", node.name));
    node.process = std::make_unique<Process>(node.name);
  }
  open(node);
}

Json Director::draw_config() {
  const auto pick = [this](std::vector<std::uint64_t> list) { return random_.pick(list); };
  std::vector<std::string> providers = {options_.carrier};
  if (options_.carrier == "all") {
    providers = {"shm", "tcp"};
    if (random_.chance(0.3)) providers.erase(providers.begin());  // nobody reaches it by memory
  }
  const bool efa = options_.carrier == "efa";
  return {
      {"providers", providers},
      {"rails", efa ? 1 : random_.between(1, 3)},
      {"max_nics", efa ? random_.between(1, 2) : 1},
      {"threads", random_.below(3)},
      {"chunk_bytes", pick({0, 0, 5'000, 16'384, 65'536})},
      {"window", pick({0, 0, 2, 16})},
      {"bounce_buffer_bytes", pick({4'096, 65'536, 262'144})},
      {"bounce_buffers", pick({1, 2, 4})},
      {"message_credits", pick({2, 8, 32})},
      {"death_after_ms", pick({2'000, 6'000})},  // some freezes are deaths, and some are not
  };
}

/// Half of the engines have transports that misbehave a little.
Json Director::draw_faults(LifeTruth& life) {
  const auto sometimes = [this](double probability) {
    return random_.chance(0.5) ? probability : 0.0;
  };
  if (random_.chance(0.5)) return Json::object();
  Json faults = {
      {"seed", random_.below(1'000'000)}, {"delay", sometimes(0.1)},
      {"reorder", sometimes(0.05)},       {"again", sometimes(0.05)},
      {"refuse", sometimes(0.002)},       {"fail", sometimes(0.001)},
      {"duplicate", sometimes(0.02)},     {"drop", random_.chance(0.15) ? 0.0005 : 0.0},
  };
  life.loses = faults.at("drop") > 0.0;
  return faults;
}

/// Fresh memory, and an engine over it.
void Director::open(NodeTruth& node) {
  auto life = std::make_unique<LifeTruth>();
  life->number = ++last_life_;
  life->arena = std::make_unique<Arena>(layout().bytes);
  std::byte* const arena = life->arena->data();
  life->guard_stream = streams_.fresh("a guard");
  const auto content = [&](const Range& range) {
    const std::uint64_t stream = streams_.fresh("what an engine of " + node.name + " began with");
    test::fill({arena + range.offset, range.length}, stream, range.offset);
    return Content(range.offset, range.length, stream);
  };
  for (const SegmentLayout& each : layout().segments) {
    SegmentTruth& segment = life->segments.emplace_back();
    for (const Range& guard : each.guards)
      test::fill({arena + guard.offset, guard.length}, life->guard_stream, guard.offset);
    for (const Range& range : each.blocks) segment.blocks.push_back({range, content(range)});
    for (const Range& range : each.slots) segment.slots.push_back({range, content(range)});
  }
  const Json config = draw_config();
  const Json faults = draw_faults(*life);
  note({int(node.index)}, fmt::format("{} opens an engine: {}{}", node.name, config.dump(),
                                      faults.empty() ? "" : " with faults " + faults.dump()));
  const Json order = {
      {"do", "open"}, {"arena", life->arena->path()}, {"config", config}, {"faults", faults}};
  node.life = std::move(life);
  node.phase = NodeTruth::Phase::opening;
  ask(node, order, 2 * answer_time, "opening an engine",
      [this, &node](const Json& words) { opened(node, words); });
}

void Director::opened(NodeTruth& node, const Json& words) {
  ++counts_.lives;
  node.life->address = words.at("address");
  node.life->incarnation = words.at("incarnation");
  node.phase = NodeTruth::Phase::open;
  note({int(node.index)}, fmt::format("{} is open: {} rails", node.name, words.at("rails").dump()));
}

void Director::close(NodeTruth& node) {
  node.phase = NodeTruth::Phase::closing;
  note({int(node.index)}, node.name + " closes its engine");
  ask(node, {{"do", "close"}, {"ms", closing_time / 1ms}}, closing_time + 2 * answer_time,
      "closing its engine", [this, &node](const Json& words) { closed(node, words); });
}

void Director::closed(NodeTruth& node, const Json& words) {
  bury(node);
  if (!words.at("ok")) {
    // Its memory may still be touched, so this process can't be compared with anything.
    ++counts_.abandoned;
    note({int(node.index)},
         fmt::format("{} could not close: {}", node.name, words.at("error").dump()));
    node.process.reset();
    return;
  }
  const Json &before = words.at("before"), &after = words.at("after");
  for (const auto& [name, count] : after.items()) {
    const auto more = count.get<std::int64_t>() - before.at(name).get<std::int64_t>();
    // See README.md, "What is open".
    if (name == "descriptors" && more == 1)
      ++counts_.kept_one;
    else if (more > 0)
      throw Violation("left behind",
                      fmt::format("{} has {} {} with its engine closed, and had {} before it was "
                                  "opened; its descriptors: {}",
                                  node.name, count.dump(), name, before.at(name).dump(),
                                  words.at("names").dump()));
  }
  counts_.largest = std::max(counts_.largest, words.at("resident").get<std::int64_t>());
}

/// Its engine is gone: nothing of it will be heard any more, and its memory with it.
void Director::bury(NodeTruth& node) {
  node_gone(node);
  std::erase_if(asked_, [&](const auto& each) { return each.second.node == node.index; });
  std::vector<std::uint64_t> own;
  for (auto& [id, grant] : grants_) {
    grant.asked_by.erase(node.index);
    grant.held_by.erase(node.index);
    if (grant.node == node.index) own.push_back(id);
  }
  for (const std::uint64_t id : own) grants_.erase(id);
  node.life.reset();
  node.phase = NodeTruth::Phase::down;
  node.frozen_until.reset();
  for (NodeTruth& other : nodes_)
    if (other.life) other.life->peers.erase(node.index);
}

void Director::thaw(NodeTruth& node) {
  if (!node.frozen_until) return;
  node.frozen_until.reset();
  if (!node.process) return;
  node.process->signal(SIGCONT);
  note({int(node.index)}, node.name + " goes on");
}

// Who knows whom.

void Director::meet(NodeTruth& node, NodeTruth& other) {
  if (node.life->peers.contains(other.index) && other.life->peers.contains(node.index)) return;
  if (node.frozen_until || other.frozen_until) return;
  auto& next = meeting_[{node.index, other.index}];
  if (Clock::now() < next) return;
  constexpr auto time = 2s;
  next = Clock::now() + time;
  const auto again = [&next](const Json&) { next = Clock::now() + 100ms; };
  ask(node, {{"do", "connect"}, {"address", other.life->address}, {"ms", time / 1ms}},
      time + answer_time, "connecting to " + other.name, again);
}

void Director::peers_changed(NodeTruth& node, const Json& words) {
  if (!node.life) return;
  std::set<unsigned> peers;
  for (const Json& each : words.at("peers"))
    for (const NodeTruth& other : nodes_)
      if (each.at(0) == other.name && other.life && each.at(1) == other.life->incarnation)
        peers.insert(other.index);
  for (const unsigned other : node.life->peers) {
    if (peers.contains(other)) continue;
    note({int(node.index)}, fmt::format("{} has lost node{}", node.name, other));
    for (auto& [id, grant] : grants_)
      if (grant.node == other) grant.held_by.erase(node.index);
  }
  node.life->peers = std::move(peers);
}

// What is done to them.

bool Director::step_kill() {
  if (nodes_.size() < 3) return false;
  NodeTruth& node = nodes_[random_.below(nodes_.size())];
  if (!node.process) return false;
  ++counts_.faults["kill"];
  note({int(node.index)}, node.name + " is killed");
  bury(node);
  node.process.reset();
  node.not_before = Clock::now() + std::chrono::milliseconds(random_.below(3000));
  return true;
}

bool Director::step_freeze() {
  NodeTruth& node = nodes_[random_.below(nodes_.size())];
  if (!is_open(node) || node.frozen_until) return false;
  const std::chrono::milliseconds time(random_.chance(0.6) ? random_.between(20, 900)
                                                           : random_.between(1500, 6000));
  ++counts_.faults["freeze"];
  note({int(node.index)}, fmt::format("{} is frozen for {} ms", node.name, time.count()));
  node.process->signal(SIGSTOP);
  node.frozen_until = Clock::now() + time;
  for (auto& [id, each] : asked_)
    if (each.node == node.index) each.deadline = Deadline::at(each.deadline.when() + time);
  return true;
}

bool Director::step_cut() {
  NodeTruth& node = nodes_[random_.below(nodes_.size())];
  if (!is_open(node)) return false;
  ++counts_.faults["cut"];
  note({int(node.index)}, "a connection of " + node.name + " is cut");
  tell(node, {{"do", "cut"}, {"pick", random_.below(1'000'000)}});
  return true;
}

bool Director::step_reopen() {
  NodeTruth& node = nodes_[random_.below(nodes_.size())];
  if (!is_open(node)) return false;
  ++counts_.faults["reopen"];
  close(node);
  return true;
}

bool Director::step_disturb() {
  if (!fabric_ || disturbed_until_) return false;
  const std::string trouble = fabric_->disturb(random_);
  ++counts_.faults["network"];
  note({}, "the network: " + trouble);
  disturbed_until_ = Clock::now() + std::chrono::milliseconds(random_.between(50, 3000));
  return true;
}

}  // namespace weft::chaos
