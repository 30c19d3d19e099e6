// Director: transfers from their drawing to their end, and their signals.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "director.hpp"
#include "pattern.hpp"
#include "speech.hpp"

namespace weft::chaos {
namespace {

using namespace std::chrono_literals;

// Errors that disturbances explain. Any other is a violation.
constexpr std::array explained_ends = {"peer_down", "fabric_failed", "remote_failed", "stale",
                                       "closed",    "timed_out",     "cancelled"};
constexpr std::array explained_refusals = {"peer_down", "stale", "closed", "unavailable",
                                           "queue_full"};

template <typename List>
bool contains(const List& list, const std::string& word) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

bool overlaps(const Busy& busy, std::uint64_t begin, std::uint64_t end) {
  return begin < busy.end && busy.begin < end;
}

}  // namespace

Slot& Director::slot_of(const TransferTruth& transfer) {
  return nodes_[transfer.node].life->segments[transfer.segment].slots[transfer.slot];
}

/// The block that it reads or writes, as long as that is still what it was.
Block* Director::written_block(const TransferTruth& transfer) {
  if (!alive(transfer.owner, transfer.owner_life)) return nullptr;
  Block& block =
      nodes_[transfer.owner].life->segments[transfer.remote_segment].blocks[transfer.block];
  return block.grant == transfer.grant ? &block : nullptr;
}

/// Pieces of the block, apart from each other and from what others write (or read), and as many
/// places in the slot.
bool Director::draw_pieces(TransferTruth& transfer) {
  const Block& block = *written_block(transfer);
  const Range& here = slot_of(transfer).range;
  const std::uint64_t count = random_.chance(0.3) ? 1 : random_.between(2, 12);
  const std::uint64_t most = std::min(here.length, block.range.length) / count;
  std::uint64_t local = here.offset;
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t length = random_.chance(0.2)
                                     ? random_.between(1, std::min<std::uint64_t>(most, 300))
                                     : random_.between(1, most);
    // Each in its own stretch of the block, somewhere.
    const std::uint64_t stretch = block.range.length / count;
    const std::uint64_t begin =
        block.range.offset + i * stretch + random_.below(stretch - length + 1);
    const std::uint64_t end = begin + length;
    const bool taken = std::any_of(block.busy.begin(), block.busy.end(), [&](const Busy& each) {
      return overlaps(each, begin, end) && (transfer.write || each.writes);
    });
    if (taken || (!transfer.write && !block.content.known(begin, length))) continue;
    transfer.pieces.push_back({local, begin, length});
    transfer.bytes += length;
    local += most;
  }
  return !transfer.pieces.empty();
}

bool Director::step_transfer() {
  const auto open = open_nodes();
  if (open.empty()) return false;
  NodeTruth& node = nodes_[random_.pick(open)];
  LifeTruth& life = *node.life;
  std::vector<std::uint64_t> usable, of_frozen;
  for (const auto& [id, grant] : grants_) {
    if (grant.state != GrantTruth::State::holds || !grant.held_by.contains(node.index)) continue;
    usable.push_back(id);
    if (nodes_[grant.node].frozen_until) of_frozen.push_back(id);
  }
  // What goes to who does not answer ends by its deadline alone.
  if (!of_frozen.empty() && random_.chance(0.3)) usable = of_frozen;
  std::vector<std::pair<std::size_t, std::size_t>> free;
  for (std::size_t i = 0; i < life.segments.size(); ++i)
    for (std::size_t j = 0; j < life.segments[i].slots.size(); ++j)
      if (life.segments[i].state == SegmentTruth::State::open &&
          life.segments[i].slots[j].transfer == 0)
        free.emplace_back(i, j);
  if (usable.empty() || free.empty()) return false;
  const GrantTruth& grant = grants_.at(random_.pick(usable));

  TransferTruth transfer;
  transfer.id = ++last_id_;
  transfer.node = node.index;
  transfer.life = life.number;
  transfer.grant = grant.id;
  transfer.owner = grant.node;
  transfer.owner_life = grant.life;
  transfer.write =
      grant.rights == Rights::write || (grant.rights == Rights::read_write && random_.chance(0.5));
  std::tie(transfer.segment, transfer.slot) = random_.pick(free);
  transfer.remote_segment = grant.segment;
  transfer.block = random_.pick(grant.blocks);
  if (!draw_pieces(transfer)) return false;

  const std::int64_t ms = random_.chance(0.1)
                              ? static_cast<std::int64_t>(random_.between(0, 30))
                              : static_cast<std::int64_t>(random_.between(300, 4000));
  Json order = {{"do", "transfer"},
                {"transfer", transfer.id},
                {"grant", grant.id},
                {"write", transfer.write},
                {"segment", transfer.segment},
                {"ms", ms},
                {"signal", transfer.write && random_.chance(0.5)},
                {"event", random_.chance(0.3)},
                {"bounce", random_.chance(0.3)}};
  Slot& slot = slot_of(transfer);
  slot.transfer = transfer.id;
  Block& block = *written_block(transfer);
  Json pieces = Json::array();
  if (transfer.write) {
    transfer.stream = streams_.fresh(fmt::format("what transfer {} writes", transfer.id));
    slot.content.refill(transfer.stream);
    test::fill({life.arena->data() + slot.range.offset, slot.range.length}, transfer.stream,
               slot.range.offset);
  }
  const std::uint64_t here = layout().segments[transfer.segment].whole.offset;
  const std::uint64_t there = layout().segments[transfer.remote_segment].whole.offset;
  for (const Pair& piece : transfer.pieces) {
    pieces.push_back(Pair{piece.local - here, piece.remote - there, piece.length});
    block.busy.push_back({transfer.id, piece.remote, piece.remote + piece.length, transfer.write});
    if (transfer.write) {
      block.content.lay(transfer.id, {piece.remote, piece.length, transfer.stream, piece.local});
      continue;
    }
    const auto known = block.content.known(piece.remote, piece.length);
    for (Stretch each : *known) {
      each.offset = piece.local + (each.offset - piece.remote);
      transfer.expected.push_back(each);
    }
    // Until it is done, they may be what came of that memory later.
    slot.content.lay(transfer.id, {piece.local, piece.length, anything, 0});
  }
  order["pieces"] = std::move(pieces);
  order["expected"] = transfer.expected;
  note(
      {int(node.index), grant.id, transfer.id},
      fmt::format("transfer {}: {} {} {} bytes in {} pieces under grant {} of {}, block {}, within "
                  "{} ms{}{}",
                  transfer.id, node.name, transfer.write ? "writes" : "reads", transfer.bytes,
                  transfer.pieces.size(), grant.id, nodes_[grant.node].name, transfer.block, ms,
                  order.at("signal") ? ", with a signal" : "",
                  order.at("bounce") ? ", through bounce buffers" : ""));
  const std::uint64_t id = transfer.id;
  TransferTruth& kept = transfers_.emplace(id, std::move(transfer)).first->second;
  if (order.at("signal"))
    await_signal(kept, order);
  else
    submit(kept, order);
  return true;
}

/// The owner of the memory waits for the signal, and then the transfer begins.
void Director::await_signal(TransferTruth& transfer, const Json& order) {
  NodeTruth& owner = nodes_[transfer.owner];
  const std::uint64_t id = transfer.id;
  if (!is_open(owner)) return refused(id, {{"ok", false}});
  Json checks = Json::array();
  for (const Pair& piece : transfer.pieces)
    checks.push_back(Stretch{piece.remote, piece.length, transfer.stream, piece.local});
  transfer.awaited = true;
  ask(owner,
      {{"do", "expect"},
       {"transfer", id},
       {"peer", nodes_[transfer.node].name},
       {"grant", transfer.grant},
       {"checks", std::move(checks)}},
      answer_time, fmt::format("expect {}", id), [this, id, order](const Json& words) {
        const auto waiting = transfers_.find(id);
        if (waiting == transfers_.end()) return;
        TransferTruth& transfer = waiting->second;
        if (!words.at("ok")) {
          transfer.awaited = false;
          return transfer.node_gone ? forget_if_over(id) : refused(id, words);
        }
        if (transfer.node_gone) return;
        // Its memory may have been released meanwhile, and used for something else.
        const bool usable = is_open(nodes_[transfer.node]) && slot_of(transfer).transfer == id &&
                            nodes_[transfer.node].life->segments[transfer.segment].state ==
                                SegmentTruth::State::open;
        if (usable) return submit(transfer, order);
        tell(nodes_[transfer.owner], {{"do", "give_up"}, {"transfer", id}});
        transfer.awaited = false;
        refused(id, words);
      });
}

void Director::submit(TransferTruth& transfer, const Json& order) {
  const std::uint64_t id = transfer.id;
  transfer.since = Clock::now();
  ask(nodes_[transfer.node], order, answer_time, fmt::format("transfer {}", id),
      [this, id](const Json& words) {
        if (!words.at("ok")) return refused(id, words);
        begun(id);
      });
}

void Director::begun(std::uint64_t id) {
  ++counts_.submitted;
  const auto entry = transfers_.find(id);
  if (entry == transfers_.end()) return;
  TransferTruth& transfer = entry->second;
  if (transfer.phase == TransferTruth::Phase::waits) transfer.phase = TransferTruth::Phase::runs;
  const auto grant = grants_.find(transfer.grant);
  if (grant != grants_.end() && grant->second.expires && transfer.since > *grant->second.expires)
    throw Violation("after the grant", "its time was over when the transfer began", id,
                    transfer.grant);
}

/// It never began.
void Director::refused(std::uint64_t id, const Json& words) {
  TransferTruth& transfer = transfers_.at(id);
  std::string code = "not sent";
  if (words.contains("error")) {
    code = words.at("error").at("code");
    if (!contains(explained_refusals, code))
      throw Violation("refused", words.at("error").at("text"), id, transfer.grant);
    // The next import learns how things are.
    const auto grant = grants_.find(transfer.grant);
    if (grant != grants_.end() && code != "closed") grant->second.held_by.erase(transfer.node);
  }
  ++counts_.refusals[code];
  note({int(transfer.node), transfer.grant, id},
       fmt::format("transfer {} is refused: {}", id, words.dump()));
  if (alive(transfer.node, transfer.life)) {
    Slot& slot = slot_of(transfer);
    slot.content.take_back(id);
    if (slot.transfer == id) slot.transfer = 0;
  }
  if (Block* block = written_block(transfer)) {
    block->content.take_back(id);
    std::erase_if(block->busy, [&](const Busy& each) { return each.transfer == id; });
  }
  if (transfer.awaited && alive(transfer.owner, transfer.owner_life) &&
      is_open(nodes_[transfer.owner]))
    tell(nodes_[transfer.owner], {{"do", "give_up"}, {"transfer", id}});
  transfers_.erase(id);
}

bool Director::step_cancel() {
  std::vector<std::uint64_t> running;
  for (const auto& [id, transfer] : transfers_)
    if (transfer.phase == TransferTruth::Phase::runs && is_open(nodes_[transfer.node]))
      running.push_back(id);
  if (running.empty()) return false;
  TransferTruth& transfer = transfers_.at(random_.pick(running));
  transfer.cancelled = true;
  note({int(transfer.node), transfer.grant, transfer.id},
       fmt::format("transfer {} is cancelled", transfer.id));
  tell(nodes_[transfer.node], {{"do", "cancel"}, {"transfer", transfer.id}});
  return true;
}

// What is heard of them.

void Director::ended(TransferTruth& transfer, const Json& words) {
  const auto violates = [&](const char* kind, const std::string& text) {
    throw Violation(kind, text, transfer.id, transfer.grant);
  };
  if (transfer.phase == TransferTruth::Phase::ended) violates("two ends", "it ended before");
  transfer.phase = TransferTruth::Phase::ended;
  transfer.end = words.at("state");
  transfer.ended_at = Clock::time_point(Clock::duration(words.at("at").get<Clock::rep>()));
  counts_.slowest_end =
      std::max<std::int64_t>(counts_.slowest_end, (Clock::now() - transfer.since) / 1ms);
  ++counts_.ends[transfer.end];
  note({int(transfer.node), transfer.grant, transfer.id},
       fmt::format("transfer {} has ended: {}", transfer.id, words.dump()));
  if (transfer.end == "cancelled" && !transfer.cancelled)
    violates("wrong error", "nobody has cancelled it");
  if (words.contains("error")) {
    const std::string code = words.at("error").at("code");
    transfer.error = code;
    if (transfer.end == "failed") ++counts_.errors[code];
    if (!contains(explained_ends, code)) violates("wrong error", words.at("error").at("text"));
  }
  if (transfer.end == "done") {
    counts_.bytes += transfer.bytes;
    if (transfer.write) {
      check_grant_held(transfer);
      check_written(transfer);
    } else if (alive(transfer.node, transfer.life) && slot_of(transfer).transfer == transfer.id) {
      Content& content = slot_of(transfer).content;
      content.take_back(transfer.id);
      for (const Stretch& each : transfer.expected) content.lay(transfer.id, each);
      content.certain(transfer.id);
    }
  }
  check_signal(transfer);
}

/// Nobody writes under a grant that has ended well: all who did have confirmed that they do not,
/// unless the owner had lost them and could not ask. A write with a signal ends when that is
/// delivered, and needs its grant no more by then.
void Director::check_grant_held(const TransferTruth& write) {
  if (write.awaited || write.signal) return;
  const auto end = grant_ends_.find(write.grant);
  if (end == grant_ends_.end() || write.ended_at <= end->second.ended) return;
  constexpr auto time_to_hear = 500ms;
  suspicions_.push_back({Clock::now() + time_to_hear, write.grant, write.id, write.node});
}

void Director::check_suspicions() {
  std::erase_if(suspicions_, [this](const Suspicion& each) {
    const GrantEnd& end = grant_ends_.at(each.grant);
    const NodeTruth& owner = nodes_[end.node];
    if (!alive(end.node, end.life)) return true;
    const auto lost = owner.life->lost.find(nodes_[each.node].name);
    // Who was given up while it was frozen may have gone on for a moment.
    constexpr auto longest_freeze = 10s;
    if (lost != owner.life->lost.end() && lost->second > end.asked - longest_freeze) return true;
    if (each.due > Clock::now()) return false;
    throw Violation("after the grant", "it was done when its grant had ended", each.transfer,
                    each.grant);
  });
}

/// The block that a write goes to, if what it holds is not about to change.
Block* Director::steady_block(const TransferTruth& transfer) {
  const auto grant = grants_.find(transfer.grant);
  if (grant == grants_.end() || grant->second.state == GrantTruth::State::ending) return nullptr;
  return written_block(transfer);
}

/// What is placed there can be seen by whoever looks.
void Director::check_piece(const TransferTruth& transfer, const Pair& piece) {
  const NodeTruth& owner = nodes_[transfer.owner];
  if (const auto wrong = difference(owner.life->arena->data(),
                                    {piece.remote, piece.length, transfer.stream, piece.local}))
    throw_wrong("wrong bytes", owner, "what was placed", *wrong, transfer.id, transfer.grant);
}

void Director::check_written(const TransferTruth& transfer) {
  Block* block = steady_block(transfer);
  if (block == nullptr) return;
  block->content.certain(transfer.id);
  for (const Pair& piece : transfer.pieces) check_piece(transfer, piece);
}

/// What the engine says of the pieces of a transfer that came to no good end.
void Director::check_placed(const TransferTruth& transfer, const std::string& placed) {
  if (placed.size() != transfer.pieces.size())
    throw Violation("wrong bytes", "not all pieces are told of", transfer.id, transfer.grant);
  for (std::size_t i = 0; i < placed.size(); ++i) {
    const Pair& piece = transfer.pieces[i];
    if (!transfer.write) {
      if (placed[i] == 'n') slot_of(transfer).content.take_back(transfer.id, piece.local);
      continue;
    }
    Block* block = steady_block(transfer);
    if (block == nullptr) return;
    if (placed[i] == 'n') block->content.take_back(transfer.id, piece.remote);
    if (placed[i] != 'a') continue;
    block->content.certain(transfer.id, piece.remote);
    check_piece(transfer, piece);
  }
}

/// Nothing of the engine's touches its memory any more, which is used for something else at once.
void Director::quiescent(TransferTruth& transfer, const Json& words) {
  transfer.quiescent = true;
  if (!alive(transfer.node, transfer.life)) return;
  Slot& slot = slot_of(transfer);
  const LifeTruth& life = *nodes_[transfer.node].life;
  if (slot.transfer != transfer.id) return;  // its segment was released
  if (transfer.end != "done") check_placed(transfer, words.at("placed"));
  slot.transfer = 0;
  if (life.segments[transfer.segment].state == SegmentTruth::State::releasing) return;
  const std::byte* arena = life.arena->data();
  if (const auto wrong = slot.content.wrong(arena))
    throw_wrong("wrong bytes", nodes_[transfer.node], "the near side", *wrong, transfer.id,
                transfer.grant);
  const std::uint64_t stream = streams_.fresh(fmt::format("what follows transfer {}", transfer.id));
  slot.content.refill(stream);
  test::fill({life.arena->data() + slot.range.offset, slot.range.length}, stream,
             slot.range.offset);
}

void Director::signalled(TransferTruth& transfer, const Json& words) {
  transfer.awaited = false;
  const bool ok = words.at("ok");
  transfer.signal = ok ? "ok" : words.at("error").at("code").get<std::string>();
  ++(ok ? counts_.signals : counts_.signals_failed);
  note({int(transfer.owner), transfer.grant, transfer.id},
       fmt::format("the signal of transfer {}: {}", transfer.id, words.dump()));
  check_signal(transfer);
}

/// A signal comes if the transfer is done, and does not if it was cancelled.
void Director::check_signal(const TransferTruth& transfer) const {
  if (!transfer.signal || transfer.phase != TransferTruth::Phase::ended) return;
  const bool came = *transfer.signal == "ok";
  if (came && transfer.end == "cancelled")
    throw Violation("signal", "a cancelled transfer has raised one", transfer.id, transfer.grant);
  if (!came && transfer.end == "done" && *transfer.signal != "peer_down" &&
      *transfer.signal != "closed")
    throw Violation("signal", "that of a done transfer failed: " + *transfer.signal, transfer.id,
                    transfer.grant);
}

/// A node's life is over, and with it all that it did; those who wait for its signals hear so.
void Director::node_gone(const NodeTruth& node) {
  std::vector<std::uint64_t> concerned;
  for (auto& [id, transfer] : transfers_) {
    if (transfer.node == node.index) {
      transfer.node_gone = true;
      if (transfer.phase != TransferTruth::Phase::ended) transfer.end = "gone";
      // Not asked yet, and now it never will be.
      if (transfer.since == Clock::time_point{} && transfer.awaited &&
          is_open(nodes_[transfer.owner]))
        tell(nodes_[transfer.owner], {{"do", "give_up"}, {"transfer", id}});
      if (transfer.since == Clock::time_point{}) transfer.awaited = false;
      transfer.phase = TransferTruth::Phase::ended;
    } else if (transfer.owner == node.index && alive(node.index, transfer.owner_life)) {
      transfer.awaited = false;
    } else {
      continue;
    }
    concerned.push_back(id);
  }
  for (const std::uint64_t id : concerned) {
    const TransferTruth& transfer = transfers_.at(id);
    // It was to begin when its owner waits for the signal, which is gone.
    if (transfer.since == Clock::time_point{} && !transfer.node_gone)
      refused(id, {{"ok", false}});
    else
      forget_if_over(id);
  }
}

void Director::forget_if_over(std::uint64_t id) {
  const auto entry = transfers_.find(id);
  if (entry == transfers_.end()) return;
  const TransferTruth& transfer = entry->second;
  if (transfer.phase != TransferTruth::Phase::ended || transfer.awaited) return;
  if (!transfer.quiescent && !transfer.node_gone) return;
  // Of a write that came to no good end something may still arrive, until its grant ends: that a
  // transfer is quiescent says it of the near side only.
  const bool settled = !transfer.write || transfer.end == "done" || transfer.end == "cancelled";
  Block* block = written_block(transfer);
  if (block != nullptr && settled)
    std::erase_if(block->busy, [&](const Busy& each) { return each.transfer == id; });
  transfers_.erase(entry);
}

}  // namespace weft::chaos
