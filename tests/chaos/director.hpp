// Leads the campaign: starts nodes, tells them what to do, disturbs them, and compares all that
// they report and all their memory with what is true. Uses one thread; waits for no node without a
// deadline.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "counts.hpp"
#include "fabric.hpp"
#include "history.hpp"
#include "ledger.hpp"
#include "options.hpp"
#include "random.hpp"
#include "streams.hpp"
#include "violation.hpp"

namespace weft::chaos {

// What a call may take beyond its own deadline; for whoever shares the machine.
constexpr std::chrono::seconds answer_time{20};

class Director {
 public:
  explicit Director(const Options& options);

  /// The whole campaign. Throws Violation.
  void run();
  const Counts& counts() const noexcept { return counts_; }
  const History& history() const noexcept { return history_; }
  std::uint64_t step() const noexcept { return step_; }

 private:
  using Heard = std::function<void(const Json& words)>;
  struct Asked {
    unsigned node = 0;
    Deadline deadline;
    std::string what;
    Heard then;
  };

  // director.cpp: the campaign, talking and listening, comparing.
  void take_step();
  void settle();
  void finish();
  bool at_rest() const;
  void listen(Clock::time_point until);
  void hear(NodeTruth& node);
  void take(NodeTruth& node, const Json& words);
  void check_suspicions();
  void ask(NodeTruth& node, Json order, Nanoseconds within, const std::string& what, Heard then);
  void tell(NodeTruth& node, const Json& order);
  void check_answers() const;
  void check_all_memory(const NodeTruth& node);
  void check_segment(const NodeTruth& node, std::size_t segment);
  void check_block(const NodeTruth& node, const Block& block);
  void note(const History::About& about, const std::string& text);
  [[noreturn]] void throw_wrong(const char* kind, const NodeTruth& node, const std::string& what,
                                const Wrong& wrong, std::uint64_t transfer, std::uint64_t grant);

  // nodes.cpp
  void tend_nodes();
  void start(NodeTruth& node);
  void open(NodeTruth& node);
  void opened(NodeTruth& node, const Json& words);
  void close(NodeTruth& node);
  void closed(NodeTruth& node, const Json& words);
  void bury(NodeTruth& node);
  void thaw(NodeTruth& node);
  void meet(NodeTruth& node, NodeTruth& other);
  void peers_changed(NodeTruth& node, const Json& words);
  bool is_open(const NodeTruth& node) const { return node.phase == NodeTruth::Phase::open; }
  std::vector<unsigned> open_nodes() const;
  Json draw_config();
  Json draw_faults(LifeTruth& life);
  bool step_kill();
  bool step_freeze();
  bool step_cut();
  bool step_reopen();
  bool step_disturb();

  // grants.cpp
  bool step_grant();
  bool step_import();
  bool step_revoke();
  bool step_fence();
  std::optional<std::uint64_t> grant_to_end();
  void end_grant(GrantTruth& grant, const std::string& how, std::int64_t ms, bool rails = false);
  bool step_release();
  void revoked(GrantTruth& grant, const std::vector<Stretch>& fill, Clock::time_point since,
               const Json& words);
  void released(unsigned node, std::size_t segment, const std::vector<Stretch>& fill,
                const Json& words);
  void add_segment(NodeTruth& node, std::size_t which, int tries = 10);
  void forget_grant(std::uint64_t id);
  Block& block_of(const GrantTruth& grant, std::size_t block);
  std::vector<Stretch> new_fill(const GrantTruth& grant);
  bool alive(unsigned node, std::uint64_t life) const;

  // transfers.cpp
  bool step_transfer();
  bool step_cancel();
  bool draw_pieces(TransferTruth& transfer);
  void await_signal(TransferTruth& transfer, const Json& order);
  void submit(TransferTruth& transfer, const Json& order);
  void begun(std::uint64_t id);
  void refused(std::uint64_t id, const Json& words);
  void ended(TransferTruth& transfer, const Json& words);
  void quiescent(TransferTruth& transfer, const Json& words);
  void signalled(TransferTruth& transfer, const Json& words);
  void check_signal(const TransferTruth& transfer) const;
  void check_written(const TransferTruth& transfer);
  void check_grant_held(const TransferTruth& write);
  Block* steady_block(const TransferTruth& transfer);
  void check_piece(const TransferTruth& transfer, const Pair& piece);
  void check_placed(const TransferTruth& transfer, const std::string& placed);
  void node_gone(const NodeTruth& node);
  void forget_if_over(std::uint64_t id);
  Slot& slot_of(const TransferTruth& transfer);
  Block* written_block(const TransferTruth& transfer);

  const Options options_;
  Random random_;
  Counts counts_;
  History history_;
  Streams streams_;
  std::unique_ptr<Fabric> fabric_;
  std::optional<Clock::time_point> disturbed_until_;
  std::vector<NodeTruth> nodes_;
  std::map<std::uint64_t, GrantTruth> grants_;
  std::map<std::uint64_t, TransferTruth> transfers_;
  std::map<std::uint64_t, Asked> asked_;
  std::map<std::pair<unsigned, unsigned>, Clock::time_point> meeting_;  // not before then again
  std::map<std::uint64_t, GrantEnd> grant_ends_;
  /// Violations, unless something that is still to be heard explains them.
  struct Suspicion {
    Clock::time_point due;
    std::uint64_t grant = 0, transfer = 0;
    unsigned node = 0;
  };
  std::vector<Suspicion> suspicions_;
  std::uint64_t step_ = 0;
  std::uint64_t last_id_ = 0, last_life_ = 0, last_order_ = 0;
  bool calm_ = false;  // no new disturbance
};

}  // namespace weft::chaos
