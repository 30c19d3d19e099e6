#include "director.hpp"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <array>

#include "interrupt.hpp"
#include "pattern.hpp"

namespace weft::chaos {
namespace {

using namespace std::chrono_literals;

// Everything comes to rest this often, and must then be as it was.
constexpr auto round_time = 40s;
// So long everything may take to come to rest.
constexpr auto rest_time = 60s;

}  // namespace

Director::Director(const Options& options)
    : options_(options), random_(options.seed), streams_(options.seed) {
  if (options.carrier == "efa") fabric_ = efa_fabric();
  nodes_.resize(options.nodes);
  for (unsigned i = 0; i < options.nodes; ++i) {
    nodes_[i].index = i;
    nodes_[i].name = fmt::format("node{}", i);
  }
}

void Director::run() {
  const auto end =
      Clock::now() + std::chrono::duration_cast<Nanoseconds>(
                         std::chrono::duration<double, std::ratio<60>>(options_.minutes));
  const auto more = [&] {
    return options_.steps != 0 ? step_ < options_.steps : Clock::now() < end;
  };
  auto next_rest = Clock::now() + round_time;
  while (more()) {
    ++step_;
    tend_nodes();
    take_step();
    // Often at once, so that steps meet what those before have begun.
    const std::uint64_t pause = random_.chance(0.5) ? 0 : random_.below(4000);
    listen(Clock::now() + std::chrono::microseconds(pause));
    check_answers();
    check_suspicions();
    // One after the other: what is wrong stays so until it is found.
    check_segment(nodes_[step_ % nodes_.size()], step_ / nodes_.size() % layout().segments.size());
    if (Clock::now() < next_rest) continue;
    settle();
    next_rest = Clock::now() + round_time;
  }
  settle();
  finish();
}

/// Draws until something can be done.
void Director::take_step() {
  struct Kind {
    const char* name;
    std::uint64_t weight;
    bool (Director::*step)();
  };
  static const std::array kinds = {
      Kind{"transfer", 6000, &Director::step_transfer},
      Kind{"cancel", 400, &Director::step_cancel},
      Kind{"grant", 1000, &Director::step_grant},
      Kind{"import", 2000, &Director::step_import},
      Kind{"revoke", 800, &Director::step_revoke},
      Kind{"release", 80, &Director::step_release},
      Kind{"freeze", 50, &Director::step_freeze},
      Kind{"cut", 25, &Director::step_cut},
      Kind{"kill", 10, &Director::step_kill},
      Kind{"reopen", 12, &Director::step_reopen},
      Kind{"disturb", 40, &Director::step_disturb},
      Kind{"fence", 60, &Director::step_fence},
  };
  std::uint64_t all = 0;
  for (const Kind& each : kinds) all += each.weight;
  constexpr int draws = 5;
  for (int draw = 0; draw < draws; ++draw) {
    std::uint64_t place = random_.below(all);
    const auto kind = std::find_if(kinds.begin(), kinds.end(), [&](const Kind& each) {
      if (place < each.weight) return true;
      place -= each.weight;
      return false;
    });
    if (options_.without.contains(kind->name) || !(this->*kind->step)()) continue;
    ++counts_.steps[kind->name];
    return;
  }
}

// Talking and listening.

void Director::note(const History::About& about, const std::string& text) {
  if (options_.verbose) fmt::print(stderr, "{:6}  {}\n", step_, text);
  history_.add(step_, about, text);
}

void Director::tell(NodeTruth& node, const Json& order) {
  node.process->line().say(order);
}

/// What a node does not answer in time is a violation: every call of Weft's is bounded.
void Director::ask(NodeTruth& node, Json order, Nanoseconds within, const std::string& what,
                   Heard then) {
  const std::uint64_t id = ++last_order_;
  order["id"] = id;
  const auto from = std::max(Clock::now(), node.frozen_until.value_or(Clock::now()));
  asked_.insert_or_assign(id,
                          Asked{node.index, Deadline::at(from + within), what, std::move(then)});
  tell(node, order);
}

void Director::check_answers() const {
  for (const auto& [id, each] : asked_)
    if (each.deadline.passed())
      throw Violation("no answer",
                      fmt::format("node{} does not come back from: {}", each.node, each.what));
}

void Director::listen(Clock::time_point until) {
  while (true) {
    std::vector<pollfd> waited;
    std::vector<unsigned> whose;
    for (const NodeTruth& node : nodes_) {
      if (!node.process) continue;
      node.process->line().flush();
      waited.push_back({node.process->line().in(), POLLIN, 0});
      whose.push_back(node.index);
    }
    const auto left = std::max<Nanoseconds>(0ns, until - Clock::now());
    const timespec timeout{left / 1s, (left % 1s).count()};
    ppoll(waited.data(), waited.size(), &timeout, nullptr);
    if (interrupted()) throw Interrupted();
    for (std::size_t i = 0; i < waited.size(); ++i)
      if (waited[i].revents != 0) hear(nodes_[whose[i]]);
    if (Clock::now() >= until) return;
  }
}

void Director::hear(NodeTruth& node) {
  while (node.process) {
    const auto words = node.process->line().hear();
    if (!words) break;
    take(node, *words);
  }
  if (node.process && node.process->line().ended())
    throw Violation("a node died", fmt::format("{} {}", node.name, node.process->end()));
}

void Director::take(NodeTruth& node, const Json& words) {
  if (words.contains("re")) {
    const auto asked = asked_.extract(words.at("re").get<std::uint64_t>());
    if (asked) asked.mapped().then(words);
    return;
  }
  const auto& what = words.at("what").get_ref<const std::string&>();
  if (what == "peers") return peers_changed(node, words);
  if (what == "lost") {
    if (node.life) node.life->lost[words.at("peer")] = Clock::now();
    return;
  }
  const auto transfer = transfers_.find(words.at("transfer").get<std::uint64_t>());
  const std::uint64_t grant = transfer == transfers_.end() ? 0 : transfer->second.grant;
  if (what == "violation")
    throw Violation(words.at("kind"), fmt::format("{} of {}", words.at("text"), node.name),
                    words.at("transfer"), grant);
  if (transfer == transfers_.end()) return;  // its other side is gone
  const std::uint64_t id = transfer->first;
  if (what == "ended") ended(transfer->second, words);
  if (what == "quiescent") quiescent(transfer->second, words);
  if (what == "signal") signalled(transfer->second, words);
  forget_if_over(id);
}

// Comparing.

/// What nobody may touch, and what is known of the rest.
void Director::check_segment(const NodeTruth& node, std::size_t index) {
  if (!node.life) return;
  const LifeTruth& life = *node.life;
  const std::byte* arena = life.arena->data();
  ++counts_.checks;
  counts_.bytes_checked += layout().segments[index].whole.length;
  for (const Range& guard : layout().segments[index].guards)
    if (const auto wrong =
            difference(arena, {guard.offset, guard.length, life.guard_stream, guard.offset}))
      throw_wrong("outside the grants", node, "a guard", *wrong, 0, 0);
  const SegmentTruth& segment = life.segments[index];
  // Its memory may have been used again just now.
  if (segment.state == SegmentTruth::State::releasing) return;
  for (const Slot& slot : segment.slots)
    if (const auto wrong = slot.content.wrong(arena))
      throw_wrong("outside the grants", node, "memory for own transfers", *wrong, slot.transfer, 0);
  for (const Block& block : segment.blocks) check_block(node, block);
}

void Director::check_block(const NodeTruth& node, const Block& block) {
  const auto grant = grants_.find(block.grant);
  if (grant != grants_.end() && grant->second.state == GrantTruth::State::ending) return;
  if (const auto wrong = block.content.wrong(node.life->arena->data()))
    throw_wrong(block.grant == 0 ? "after the grant" : "wrong bytes", node, "a block", *wrong, 0,
                block.last_grant);
}

void Director::throw_wrong(const char* kind, const NodeTruth& node, const std::string& what,
                           const Wrong& wrong, std::uint64_t transfer, std::uint64_t grant) {
  throw Violation(kind,
                  fmt::format("{} of {}: {}; {}", what, node.name, wrong.text,
                              streams_.origin(node.life->arena->data(), wrong.at)),
                  transfer, grant);
}

void Director::check_all_memory(const NodeTruth& node) {
  for (std::size_t segment = 0; segment < layout().segments.size(); ++segment)
    check_segment(node, segment);
}

// Coming to rest.

bool Director::at_rest() const {
  if (!asked_.empty()) return false;
  const bool open = std::all_of(nodes_.begin(), nodes_.end(),
                                [this](const NodeTruth& node) { return is_open(node); });
  if (!open) return false;
  return std::all_of(transfers_.begin(), transfers_.end(), [this](const auto& each) {
    const TransferTruth& transfer = each.second;
    if (transfer.phase != TransferTruth::Phase::ended || transfer.awaited) return false;
    // What a fault has swallowed keeps its memory for as long as the engine is open.
    return transfer.quiescent || transfer.node_gone || fabric_ || nodes_[transfer.node].life->loses;
  });
}

void Director::settle() {
  calm_ = true;
  note({}, "everything shall come to rest");
  for (NodeTruth& node : nodes_) thaw(node);
  if (fabric_) fabric_->calm();
  disturbed_until_.reset();
  const Deadline deadline = Deadline::in(rest_time);
  while (!at_rest()) {
    tend_nodes();
    listen(Clock::now() + 5ms);
    check_answers();
    if (!deadline.passed()) continue;
    for (const auto& [id, transfer] : transfers_) {
      if (transfer.phase != TransferTruth::Phase::ended)
        throw Violation("no end", "a transfer has not ended", id, transfer.grant);
      if (transfer.awaited)
        throw Violation("no signal", "a signal neither came nor failed", id, transfer.grant);
      if (!transfer.quiescent && !transfer.node_gone && !fabric_)
        throw Violation("not quiescent", "a transfer has ended and stays in the memory", id,
                        transfer.grant);
    }
    throw Violation("no rest", "nodes do not come up");
  }
  for (const NodeTruth& node : nodes_) check_all_memory(node);
  calm_ = false;
}

/// All close, and hold what they held before they opened anything.
void Director::finish() {
  calm_ = true;
  for (NodeTruth& node : nodes_) close(node);
  const auto closing = [](const NodeTruth& node) {
    return node.phase == NodeTruth::Phase::closing;
  };
  while (std::any_of(nodes_.begin(), nodes_.end(), closing)) {
    listen(Clock::now() + 5ms);
    check_answers();
  }
  for (NodeTruth& node : nodes_) {
    if (!node.process) continue;
    tell(node, {{"do", "quit"}});  // a few bytes, and it listens
    const std::string end = node.process->end();
    if (end != "exited with 0") throw Violation("a node died", node.name + ' ' + end);
    node.process.reset();
  }
}

}  // namespace weft::chaos
