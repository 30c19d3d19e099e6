// A rail to a peer over nothing: it takes every chunk and completes it at the next progress, so
// that what is left is the engine's own cost.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "device/device.hpp"
#include "metrics/ledger.hpp"
#include "peer/peer_state.hpp"
#include "rail/rail_scheduler.hpp"
#include "transfer/transfer_state.hpp"

namespace weft::perf {

class NullTransport final : public core::Transport {
 public:
  std::uint64_t chunk_limit(const core::Route&) const override { return std::uint64_t{512} << 10; }
  std::size_t room(const core::Route&) const override { return 128; }
  providers::Post post(core::Op& op) override {
    posted_.push_back(&op);
    return {};
  }
  std::size_t progress() override {
    finishing_.swap(posted_);
    for (core::Op* op : finishing_) sink().chunk_ended(*op, {});
    const std::size_t count = finishing_.size();
    finishing_.clear();
    return count;
  }

 private:
  std::vector<core::Op*> posted_, finishing_;
};

/// Enters what has ended into a ledger, if there is one.
class NullHost final : public core::TransferHost {
 public:
  explicit NullHost(core::Ledger* ledger) : ledger_(ledger) {}
  void raise_signal(const std::shared_ptr<core::TransferState>&) override {}
  void offer_again(const std::shared_ptr<core::TransferState>&) override {}
  void transfer_ended(core::TransferState& transfer) override {
    if (ledger_ != nullptr) ledger_->enter(transfer);
  }

 private:
  core::Ledger* const ledger_;
};

struct NullScheduler {
  explicit NullScheduler(core::Ledger* ledger = nullptr) : host(ledger) {
    core::Introduction introduction;
    introduction.name = "nobody";
    peer = std::make_shared<core::PeerState>(nullptr, 1, introduction, true,
                                             core::PeerState::Limits{1 << 20, 16});
    peer->routes.push_back(std::make_unique<core::Route>());
    peer->route_by_rail = {peer->routes.front().get()};
    path->add(0, {peer->routes.front().get(), {}});
    peer->set_up();
  }

  std::shared_ptr<const core::PreparedState> prepare(core::PieceList pieces, std::uint64_t bytes) {
    core::GrantDescription grant;
    grant.ranges = {{0, std::uint64_t{1} << 40}};
    auto prepared = std::make_shared<core::PreparedState>();
    prepared->rail_names = names;
    prepared->local = segment;
    prepared->remote = std::make_shared<core::RemoteState>(peer, grant);
    prepared->path = path;
    prepared->pieces = std::move(pieces);
    prepared->bytes = bytes;
    return prepared;
  }

  std::shared_ptr<core::TransferState> submit(std::shared_ptr<const core::PreparedState> prepared,
                                              std::optional<Deadline> deadline = std::nullopt) {
    core::Submission submission(Clock::now());
    submission.bytes = prepared->bytes;
    submission.prepared = std::move(prepared);
    submission.deadline =
        deadline ? deadline->when() : submission.submitted + std::chrono::minutes(1);
    auto transfer = std::make_shared<core::TransferState>(std::move(submission), host);
    transfer->start({0});
    scheduler.add(transfer);
    return transfer;
  }

  void run(const core::TransferState& transfer) {
    while (!transfer.ended()) {
      scheduler.pump();
      null.progress();
    }
  }

  std::shared_ptr<core::SegmentState> segment = std::make_shared<core::SegmentState>(
      1, nullptr, *core::Allocation::make(Memory::own(4096)), Place{}, core::host_device());
  std::shared_ptr<core::PeerState> peer;
  std::shared_ptr<core::RailSet> path = std::make_shared<core::RailSet>();
  std::shared_ptr<const std::vector<std::string>> names =
      std::make_shared<const std::vector<std::string>>(1, "null:0");
  NullHost host;
  NullTransport null, bounce, copies;
  core::RailScheduler scheduler{0, "null:0", {128, std::uint64_t{2} << 20}, null, bounce, copies};
};

}  // namespace weft::perf
