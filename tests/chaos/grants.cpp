// Director: grants from their making to their end, and segments.
#include <fmt/format.h>

#include <algorithm>

#include "director.hpp"
#include "speech.hpp"

namespace weft::chaos {
namespace {

using namespace std::chrono_literals;

// What the engine itself gives to an import (see config_of in life.cpp).
constexpr auto import_time = 3s;

}  // namespace

Block& Director::block_of(const GrantTruth& grant, std::size_t block) {
  return nodes_[grant.node].life->segments[grant.segment].blocks[block];
}

bool Director::step_grant() {
  NodeTruth& node = nodes_[random_.below(nodes_.size())];
  const std::size_t index = random_.below(layout().segments.size());
  const std::uint64_t rights = random_.between(1, 3);
  const std::uint64_t wanted = random_.between(1, 15);  // a bit for each block
  const std::uint64_t ttl = random_.chance(0.25) ? random_.between(100, 4000) : 0;
  if (!is_open(node)) return false;
  SegmentTruth& segment = node.life->segments[index];
  if (segment.state != SegmentTruth::State::open) return false;
  GrantTruth grant;
  for (std::size_t block = 0; block < segment.blocks.size(); ++block)
    if ((wanted >> block & 1) != 0 && segment.blocks[block].grant == 0)
      grant.blocks.push_back(block);
  if (grant.blocks.empty()) return false;
  const std::uint64_t id = ++last_id_;
  grant.id = id;
  grant.node = node.index;
  grant.life = node.life->number;
  grant.segment = index;
  grant.rights = static_cast<Rights>(rights);
  Json ranges = Json::array();
  for (const std::size_t block : grant.blocks) {
    segment.blocks[block].grant = segment.blocks[block].last_grant = id;
    const Range& range = segment.blocks[block].range;
    ranges.push_back(Range{range.offset - layout().segments[index].whole.offset, range.length});
  }
  note({int(node.index), id}, fmt::format("grant {} of {}: segment {}, blocks {}, rights {}{}", id,
                                          node.name, index, Json(grant.blocks).dump(), rights,
                                          ttl == 0 ? "" : fmt::format(", for {} ms", ttl)));
  grants_.emplace(id, std::move(grant));
  const Json order = {{"do", "grant"},    {"grant", id},      {"segment", index},
                      {"ranges", ranges}, {"rights", rights}, {"ttl_ms", ttl}};
  ask(node, order, answer_time, fmt::format("grant {}", id), [this, id, ttl](const Json& words) {
    if (!words.at("ok")) return forget_grant(id);
    GrantTruth& made = grants_.at(id);
    if (ttl != 0) made.expires = Clock::now() + std::chrono::milliseconds(ttl);
    made.blob = words.at("blob");
    made.state = GrantTruth::State::holds;
  });
  return true;
}

/// It was never made.
void Director::forget_grant(std::uint64_t id) {
  const GrantTruth& grant = grants_.at(id);
  for (const std::size_t block : grant.blocks) block_of(grant, block).grant = 0;
  grants_.erase(id);
}

bool Director::step_import() {
  std::vector<std::pair<std::uint64_t, unsigned>> possible;
  for (const auto& [id, grant] : grants_) {
    if (grant.state != GrantTruth::State::holds) continue;
    if (grant.expires && Clock::now() > *grant.expires) continue;
    for (const unsigned node : open_nodes())
      if (node != grant.node && !grant.asked_by.contains(node) && !grant.held_by.contains(node) &&
          nodes_[node].life->peers.contains(grant.node))
        possible.emplace_back(id, node);
  }
  if (possible.empty()) return false;
  const auto [id, index] = random_.pick(possible);
  NodeTruth& node = nodes_[index];
  grants_.at(id).asked_by.insert(index);
  note({int(index), id}, fmt::format("{} imports grant {}", node.name, id));
  ask(node,
      {{"do", "import"}, {"grant", id}, {"blob", grants_.at(id).blob}, {"ms", import_time / 1ms}},
      import_time + answer_time, fmt::format("import {}", id),
      [this, id = id, index = index](const Json& words) {
        const bool ok = words.at("ok");
        ++(ok ? counts_.imports : counts_.imports_failed);
        const auto grant = grants_.find(id);
        if (grant == grants_.end()) return;
        grant->second.asked_by.erase(index);
        if (ok) grant->second.held_by.insert(index);
      });
  return true;
}

// Ends.

/// What the memory of a grant will hold when nobody else can touch it any more.
std::vector<Stretch> Director::new_fill(const GrantTruth& grant) {
  std::vector<Stretch> fill;
  for (const std::size_t block : grant.blocks) {
    const Range& range = block_of(grant, block).range;
    const std::uint64_t stream = streams_.fresh(fmt::format("what follows grant {}", grant.id));
    fill.push_back({range.offset, range.length, stream, range.offset});
  }
  return fill;
}

/// Grants shall live for a while; those in use are the more interesting ones, and those that have
/// ended, but not so that their memory is free, come to that end in time.
std::optional<std::uint64_t> Director::grant_to_end() {
  std::vector<std::uint64_t> holding, over;
  for (const auto& [id, grant] : grants_) {
    if (!is_open(nodes_[grant.node]) ||
        nodes_[grant.node].life->segments[grant.segment].state != SegmentTruth::State::open)
      continue;
    const bool expired = grant.expires && Clock::now() > *grant.expires;
    if (grant.state == GrantTruth::State::holds) (expired ? over : holding).push_back(id);
    if (grant.state == GrantTruth::State::lost) over.push_back(id);
  }
  if (!over.empty() && random_.chance(0.5)) return random_.pick(over);
  if (holding.size() < nodes_.size()) return std::nullopt;
  std::vector<std::uint64_t> in_use;
  for (const auto& [transfer, truth] : transfers_)
    if (std::binary_search(holding.begin(), holding.end(), truth.grant))
      in_use.push_back(truth.grant);
  const bool any = in_use.empty() || random_.chance(0.1);
  return random_.pick(any ? holding : in_use);
}

bool Director::step_revoke() {
  const auto id = grant_to_end();
  if (!id) return false;
  end_grant(grants_.at(*id), "revoke",
            random_.pick(std::vector<std::int64_t>{0, 20, 500, 3000, 3000, 3000}));
  return true;
}

bool Director::step_fence() {
  const auto id = grant_to_end();
  if (!id) return false;
  // Now and then over the heads of everybody else's on the same rails.
  const bool rails = random_.chance(0.3);
  end_grant(grants_.at(*id), "fence", random_.pick(std::vector<std::int64_t>{0, 500, 3000}), rails);
  return true;
}

void Director::end_grant(GrantTruth& grant, const std::string& how, std::int64_t ms, bool rails) {
  for (const std::size_t block : grant.blocks)
    check_block(nodes_[grant.node], block_of(grant, block));
  const bool lost = grant.state == GrantTruth::State::lost;
  grant.state = GrantTruth::State::ending;
  const std::uint64_t id = grant.id;
  const auto fill = new_fill(grant);
  note({int(grant.node), id},
       fmt::format("grant {}: {}{} within {} ms", id, how, rails ? " by its rails" : "", ms));
  const auto since = Clock::now();
  ask(nodes_[grant.node],
      {{"do", how}, {"grant", id}, {"ms", ms}, {"rails", rails}, {"fill", fill}},
      std::chrono::milliseconds(ms) + answer_time, fmt::format("{} {}", how, id),
      [this, id, fill, since, lost](const Json& words) {
        GrantTruth& over = grants_.at(id);
        revoked(over, fill, since, words);
        // A fence that can't be had there changes nothing.
        if (grants_.contains(id) && over.state == GrantTruth::State::holds && lost)
          over.state = GrantTruth::State::lost;
      });
}

void Director::revoked(GrantTruth& grant, const std::vector<Stretch>& fill, Clock::time_point since,
                       const Json& words) {
  const std::uint64_t id = grant.id;
  counts_.slowest_revoke =
      std::max<std::int64_t>(counts_.slowest_revoke, (Clock::now() - since) / 1ms);
  note({int(grant.node), id}, fmt::format("grant {} has ended: {}", id, words.dump()));
  if (words.contains("error") && words.at("error").at("code") == "unsupported") {
    ++counts_.not_fenced;
    grant.state = GrantTruth::State::holds;
    return;
  }
  const bool quiescent = words.at("ok") && words.at("quiescent");
  ++(quiescent ? counts_.revoked : counts_.quarantined);
  if (!quiescent) {
    grant.state = GrantTruth::State::lost;
    return;
  }
  for (std::size_t i = 0; i < grant.blocks.size(); ++i) {
    Block& block = block_of(grant, grant.blocks[i]);
    block.content.refill(fill[i].stream);
    block.grant = 0;
    block.busy.clear();
  }
  grant_ends_[id] = {grant.node, grant.life, since,
                     Clock::time_point(Clock::duration(words.at("at").get<Clock::rep>()))};
  grants_.erase(id);
  for (const auto& [transfer, truth] : transfers_)
    if (truth.grant == id && truth.write && truth.end == "done") check_grant_held(truth);
}

bool Director::step_release() {
  std::vector<std::pair<unsigned, std::size_t>> in_use;
  for (const auto& [id, transfer] : transfers_)
    if (transfer.phase == TransferTruth::Phase::runs && !transfer.node_gone)
      in_use.emplace_back(transfer.node, transfer.segment);
  std::pair<unsigned, std::size_t> which(random_.below(nodes_.size()),
                                         random_.below(layout().segments.size()));
  if (!in_use.empty() && random_.chance(0.7)) which = random_.pick(in_use);
  NodeTruth& node = nodes_[which.first];
  const std::size_t index = which.second;
  const std::int64_t ms = random_.pick(std::vector<std::int64_t>{0, 50, 1000, 4000, 4000});
  if (!is_open(node)) return false;
  SegmentTruth& segment = node.life->segments[index];
  if (segment.state != SegmentTruth::State::open && segment.state != SegmentTruth::State::stuck)
    return false;
  for (const auto& [id, grant] : grants_)
    if (grant.node == node.index && grant.segment == index &&
        (grant.state == GrantTruth::State::ending || grant.state == GrantTruth::State::asked))
      return false;
  check_segment(node, index);
  std::vector<std::uint64_t> grants;
  for (auto& [id, grant] : grants_) {
    if (grant.node != node.index || grant.segment != index) continue;
    grant.state = GrantTruth::State::ending;
    grants.push_back(id);
  }
  segment.state = SegmentTruth::State::releasing;
  std::vector<Stretch> fill;
  for (const auto* list : {&layout().segments[index].blocks, &layout().segments[index].slots})
    for (const Range& range : *list)
      fill.push_back(
          {range.offset, range.length, streams_.fresh("what follows a release"), range.offset});
  note({int(node.index)}, fmt::format("{} releases segment {} within {} ms", node.name, index, ms));
  ask(node, {{"do", "release"}, {"segment", index}, {"ms", ms}, {"fill", fill}, {"grants", grants}},
      std::chrono::milliseconds(ms) + answer_time, fmt::format("release of segment {}", index),
      [this, node = node.index, index, fill](const Json& words) {
        released(node, index, fill, words);
      });
  return true;
}

void Director::released(unsigned index, std::size_t which, const std::vector<Stretch>& fill,
                        const Json& words) {
  NodeTruth& node = nodes_[index];
  SegmentTruth& segment = node.life->segments[which];
  note({int(index)}, fmt::format("{}: segment {}: {}", node.name, which, words.dump()));
  const bool ok = words.at("ok");
  ++(ok ? counts_.released : counts_.not_released);
  std::vector<std::uint64_t> over;
  for (auto& [id, grant] : grants_) {
    if (grant.node != index || grant.segment != which) continue;
    grant.state = GrantTruth::State::lost;
    over.push_back(id);
  }
  if (!ok) {
    segment.state = SegmentTruth::State::stuck;
    return;
  }
  for (const std::uint64_t id : over) grants_.erase(id);
  std::size_t next = 0;
  for (Block& block : segment.blocks) {
    block.content.refill(fill[next++].stream);
    block.grant = 0;
    block.busy.clear();
  }
  for (Slot& slot : segment.slots) {
    slot.content.refill(fill[next++].stream);
    slot.transfer = 0;
  }
  segment.state = SegmentTruth::State::gone;
  add_segment(node, which);
}

/// Again where a rail is just being opened again.
void Director::add_segment(NodeTruth& node, std::size_t which, int tries) {
  if (!is_open(node)) return;  // it closes
  ask(node, {{"do", "add"}, {"segment", which}}, answer_time, "adding a segment",
      [this, index = node.index, which, tries](const Json& words) {
        if (words.at("ok")) {
          nodes_[index].life->segments[which].state = SegmentTruth::State::open;
          return;
        }
        if (words.at("error").at("code") != "unavailable" || tries == 1)
          throw Violation("refused", words.dump());
        add_segment(nodes_[index], which, tries - 1);
      });
}

}  // namespace weft::chaos
