// Every order in which an owner and a holder of a lease, the messages between them, the NICs and
// the holder's GPU can act, with the code that ships between NICs and GPUs that move nothing before
// they are told to and a control connection that delivers nothing before it is told to. See
// lib/core/lease/README.md for what must hold.
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cstring>
#include <deque>
#include <functional>
#include <set>
#include <string>

#include "explorer.hpp"
#include "lease/imported_grants.hpp"
#include "lease/owned_grants.hpp"
#include "model_gpu.hpp"
#include "null_transport.hpp"
#include "parts.hpp"
#include "rail/rail_scheduler.hpp"
#include "transport/gpu_copies.hpp"
#include "transport/rma.hpp"

namespace weft::core::test {
namespace {

using providers::Access;
using providers::Local;
using providers::Post;
using providers::Posted;
using providers::PostStatus;
using providers::Target;
using weft::test::Choices;
using weft::test::explore;

constexpr std::uint64_t cell = 8, cells = 2;
constexpr std::byte granted{'g'}, written{'w'}, reused{'r'};
constexpr LinkId the_link = 1;

/// Both engines' NICs and what is between them. An operation lands (its bytes move, or its key is
/// refused) and is completed later; either may take for ever.
class Wire final : public providers::Endpoint {
 public:
  struct Flight {
    Posted* posted = nullptr;
    bool write = false;
    Local local;
    Target target;
    bool begun = false;  // its key was open when it was posted
    bool landed = false, ok = false;
    bool stray = false;  // its connection broke: the holder has been told that it failed
  };

  explicit Wire(bool keys_fence) : keys_fence_(keys_fence) { record_.virtual_addresses = true; }
  const Capability& capability() const noexcept override { return record_; }
  const Blob& address() const noexcept override { return nowhere_; }
  Result<providers::FabricAddress> insert(Bytes) override { return 0; }
  void remove(providers::FabricAddress) override {}
  Result<std::unique_ptr<providers::Registration>> register_memory(const providers::Extent&,
                                                                   Access) override {
    open_keys_.insert(++last_key_);
    return std::make_unique<Registered>(*this, last_key_);
  }
  Post write(Posted& posted, const Local& local, const Target& target) override {
    flights.push_back({&posted, true, local, target, open_keys_.contains(target.key), moved});
    return {};
  }
  Post read(Posted& posted, const Local& local, const Target& target) override {
    flights.push_back({&posted, false, local, target, open_keys_.contains(target.key), moved});
    return {};
  }
  Post send(Posted&, const Local&, providers::FabricAddress, providers::MessageClass) override {
    return {PostStatus::failed, 1};
  }
  Post receive(Posted&, const Local&, providers::MessageClass) override {
    return {PostStatus::failed, 1};
  }
  std::size_t poll() override { return 0; }
  int wait_fd() const noexcept override { return -1; }
  bool may_sleep() override { return true; }

  /// Returns whether it changed memory of the owner's.
  bool land(Flight& flight) {
    flight.landed = true;
    flight.ok = keys_fence_ ? open_keys_.contains(flight.target.key) : flight.begun;
    if (!flight.ok) return false;
    auto* remote = reinterpret_cast<void*>(static_cast<std::uintptr_t>(flight.target.address));
    std::memcpy(flight.write ? remote : flight.local.address,
                flight.write ? flight.local.address : remote, flight.local.length);
    return flight.write;
  }
  void complete(std::size_t index) {
    const Flight flight = flights[index];
    forget(index);
    tell(flight, flight.ok);
  }
  /// The holder learns no more of it; it may land yet.
  void break_off(std::size_t index) {
    flights[index].stray = true;
    tell(Flight(flights[index]), false);
  }
  void forget(std::size_t index) {
    flights.erase(flights.begin() + static_cast<std::ptrdiff_t>(index));
  }

  /// The owner's endpoint: what has not landed never does.
  void close_and_open() {
    moved = true;
    for (Flight& flight : flights) flight.landed = true;
    for (const std::uint64_t key : retired_keys_) open_keys_.erase(key);
  }

  std::vector<Flight> flights;
  bool moved = false;  // and the holder does not know: what it posts lands nowhere

 private:
  class Registered final : public providers::Registration {
   public:
    Registered(Wire& wire, std::uint64_t key) : wire_(wire), key_(key) {}
    ~Registered() override { Registered::close(); }
    void* descriptor() const noexcept override { return nullptr; }
    std::uint64_t key() const noexcept override { return key_; }
    bool close() override {
      wire_.open_keys_.erase(key_);
      return true;
    }
    void retire() noexcept override { wire_.retired_keys_.insert(key_); }

   private:
    Wire& wire_;
    const std::uint64_t key_;
  };
  static void tell(const Flight& flight, bool ok) {
    providers::Completion completion;
    completion.ok = ok;
    completion.fabric_code = ok ? 0 : 1;
    flight.posted->handler->completed(*flight.posted, completion);
  }

  const bool keys_fence_;
  Capability record_;
  Blob nowhere_;
  std::set<std::uint64_t> open_keys_, retired_keys_;
  std::uint64_t last_key_ = 0;
};

/// What varies between scenarios.
struct Setting {
  Direction direction = Direction::write;
  bool keys_fence = false;
  bool may_cut = false;            // the control connection ends, and the owner can't tell why
  bool may_time_out = false;       // the transfer's deadline passes
  bool may_fence = false;          // the owner does not wait
  bool may_reopen = false;         // the owner's rail is closed and opened again
  bool may_break = false;          // the rail's connection, with what is on its way
  std::size_t operations = cells;  // of the transfer
  bool lent = false;               // a GPU's memory, which the holder maps, and copies by itself
  bool may_freeze = false;         // the holder does nothing any more, but its GPU does
  bool may_die = false;            // the holder's process is killed
  // Owners as they must not be, to see that the model notices.
  bool reuses_at_once = false;   // without asking
  bool keeps_word = false;       // and without taking the lease word down
  bool fences_the_lent = false;  // as if closed keys kept out a borrower
  bool forgets_readers = false;  // as if those who have mapped it only to read did not bind
  bool takes_the_lost_for_dead = false;
  // Borrowers.
  bool confirms_under_copies = false;  // with the mapping closed, and copies under way
  bool confirms_mapped = false;        // before the mapping is closed
  bool hides_strays = false;           // and other holders
};

/// A process that ends when it is told to.
class ModelProcess {
 public:
  Process process() const { return Process(Descriptor(dup(ended_.get()))); }
  void end() const { EXPECT_EQ(eventfd_write(ended_.get(), 1), 0); }

 private:
  const Descriptor ended_{eventfd(0, 0)};
};

class World final : public TransferHost {
 public:
  World(const Setting& setting, Choices& choices) : setting_(setting), choices_(choices) {
    make_grant();
    make_remote();
    EXPECT_TRUE(rma_.prepare());
    EXPECT_TRUE(copies_.serve(gpu_));
  }
  ~World() {
    remote_->borrowed()->close();
    // What the NICs still have never comes home.
    if (transfer_) transfer_->end_early(State::failed, Error(Code::closed, "closed"));
    for (const auto& [transfer, chunk] : scheduler_.take_orphans()) transfer->give_back(chunk);
    grant_->close();
    words_->close();
  }

  /// Until nothing can happen any more. False if something happened that must not.
  bool run() {
    answer_ = imported_.add(remote_).answer;
    for (auto actions = possible(); !actions.empty() && wrong.empty(); actions = possible()) {
      const Action& action = actions[choices_.choose(actions.size())];
      story += action.name + "; ";
      action.act();
    }
    if (wrong.empty()) check_end();
    return wrong.empty();
  }

  std::string story, wrong;

 private:
  struct Action {
    std::string name;
    std::function<void()> act;
  };

  void make_grant() {
    GrantState::Parts parts;
    parts.segment = segment_;
    parts.description = describe();
    auto registered = wire_.register_memory({segment_->address(), cells * cell}, Access::local);
    parts.description.keys = {
        {0, reinterpret_cast<std::uintptr_t>(segment_->address()), (*registered)->key()}};
    parts.keys.push_back(std::make_shared<ExtentKey>(0, Range{0, cells * cell},
                                                     parts.description.keys.front().base,
                                                     ExtentKey::Use::own, std::move(*registered)));
    parts.epoch = words_->take().value();
    parts.description.epoch = parts.epoch->value();
    parts.description.epoch_keys = parts.epoch->keys();
    if (!setting_.keys_fence) parts.unfenced.insert(0);
    if (setting_.lent) segment_->set_lent(gpu_.lend(segment_->address(), cells * cell));
    std::memset(segment_->address(), static_cast<int>(granted), cells * cell);
    grant_ = std::make_shared<GrantState>(std::move(parts));
    owned_.add(grant_);
  }
  GrantDescription describe() const {
    GrantDescription description;
    description.engine = "owner";
    description.segment_size = cells * cell;
    description.lease = 5;
    description.rights = setting_.direction == Direction::write ? Rights::write : Rights::read;
    description.ranges = {{0, cells * cell}};
    return description;
  }
  void make_remote() {
    remote_ = std::make_shared<RemoteState>(owner_, grant_->description());
    auto prepared = std::make_shared<PreparedState>();
    prepared->rail_names = make_rail_names(1);
    prepared->local = setting_.lent ? make_segment(cells * cell, gpu_) : make_segment(cells * cell);
    std::memset(prepared->local->address(), static_cast<int>(written), cells * cell);
    prepared->local->keys()->serve(0, false);
    prepared->remote = remote_;
    prepared->path = make_rail_set(*owner_);
    prepared->direction = setting_.direction;
    prepared->bytes = setting_.operations * cell;
    // Crosswise: neighbours would be one copy.
    const std::vector<Pair> apart = {{0, cell, cell}, {cell, 0, cell}};
    const std::vector<Pair> all = {{0, 0, prepared->bytes}};
    prepared->pieces = PieceList(setting_.lent && setting_.operations == cells ? apart : all);
    prepared_ = std::move(prepared);
  }

  // What can happen next.

  std::vector<Action> possible() {
    std::vector<Action> actions;
    add_owner(actions);
    add_messages(actions);
    if (holder_ == Holder::runs) add_holder(actions);
    if (setting_.lent) add_borrower(actions);
    add_wire(actions);
    return actions;
  }

  void add_owner(std::vector<Action>& actions) {
    if (!ended_) actions.push_back({"the owner ends the grant", [this] { end_grant(); }});
    if (ended_ && setting_.may_fence && !fenced_)
      actions.push_back({"the owner fences", [this] {
                           fenced_ = true;
                           grant_->fence();
                         }});
    if (setting_.may_reopen && rail_ == Rail::open)
      actions.push_back({"the owner's rail is to be closed", [this] {
                           rail_ = Rail::closing;
                           closed_after_end_ = ended_;
                           owned_.rail_closes(0);
                         }});
    if (rail_ == Rail::closing)
      actions.push_back({"it is closed and opened again", [this] {
                           rail_ = Rail::opened;
                           wire_.close_and_open();
                           owned_.rail_opened(0, true);
                         }});
    if (ended_ && !reused_ && may_reuse())
      actions.push_back({"the owner uses the memory for something else", [this] {
                           reused_ = true;
                           if (gpu_.mapped())
                             wrong = "memory was used for something else while it was mapped";
                           std::memset(segment_->address(), static_cast<int>(reused), cells * cell);
                         }});
    if (!cut_ && setting_.may_cut)
      actions.push_back({"the connection is cut", [this] {
                           cut_ = true;
                           to_owner_.clear();
                           owned_.link_down(the_link);
                           if (setting_.takes_the_lost_for_dead) process_.end();
                         }});
  }
  void end_grant() {
    ended_ = true;
    if (!setting_.keeps_word) owned_.end(*grant_, GrantEnd::revoked);
  }
  /// settle() may close keys, so it is asked only when its answer counts.
  bool may_reuse() {
    if (setting_.reuses_at_once) return true;
    if (setting_.fences_the_lent && fenced_) return true;
    if (setting_.forgets_readers && !grant_->writable()) return true;
    return grant_->settle() == Revoked::quiescent;
  }

  void add_messages(std::vector<Action>& actions) {
    if (!to_owner_.empty())
      actions.push_back({"the owner hears", [this] {
                           const Notice notice = std::move(to_owner_.front());
                           to_owner_.pop_front();
                           if (const auto* query = std::get_if<GrantQuery>(&notice))
                             owned_.take(the_link, *query);
                           if (const auto* confirmed = std::get_if<RevokeConfirmed>(&notice))
                             owned_.take(the_link, heard(*confirmed));
                         }});
    // After a cut what was sent before may still come, or never.
    if (!to_holder_.empty() && holder_ == Holder::runs)
      actions.push_back({"the holder hears", [this] {
                           const Notice notice = std::move(to_holder_.front());
                           to_holder_.pop_front();
                           if (const auto* status = std::get_if<GrantStatus>(&notice))
                             imported_.take(*owner_, *status);
                           if (const auto* request = std::get_if<RevokeRequest>(&notice)) {
                             imported_.take(*owner_, *request);
                             if (setting_.confirms_under_copies) {
                               gpu_.unmap();
                               confirm();
                             }
                           }
                         }});
  }

  void add_holder(std::vector<Action>& actions) {
    const bool mapped = !setting_.lent || prepared_->lent != nullptr;
    if (!submitted_ && mapped && answer_->done() && !answer_->error())
      actions.push_back({"the holder submits", [this] { submit(); }});
    if (transfer_ && !transfer_->ended() && setting_.may_time_out)
      actions.push_back(
          {"the deadline passes", [this] { transfer_->end_overdue(Clock::time_point::max()); }});
    if (wire_.moved)
      actions.push_back({"the holder hears that the rail is another one", [this] {
                           imported_.rail_closed(*owner_, 0);
                           wire_.moved = false;
                         }});
    if (cut_ && !mourned_)
      actions.push_back({"the holder notices the cut", [this] {
                           mourned_ = true;
                           owner_->set_down(Error(Code::peer_down, "cut"));
                           to_holder_.clear();
                           imported_.link_down(the_link, owner_->down_error());
                           if (transfer_) transfer_->end_early(State::failed, owner_->down_error());
                           scheduler_.peer_died(*owner_->route_by_rail[0]);
                         }});
  }
  void add_borrower(std::vector<Action>& actions) {
    if (gpu_.has_copies())
      actions.push_back({"a copy runs", [this] {
                           gpu_.run_copy();
                           if (reused_) wrong = "a copy touched memory that was reused";
                         }});
    if (holder_ == Holder::dies)
      actions.push_back({"the dead borrower's driver is closed", [this] {
                           holder_ = Holder::dead;
                           gpu_.stop();
                           process_.end();
                         }});
    if (holder_ != Holder::runs) return;
    if (!tried_to_map_ && answer_->done() && !answer_->error())
      actions.push_back({"the borrower maps", [this] {
                           tried_to_map_ = true;
                           const auto at = remote_->borrowed()->map(gpu_, cells * cell);
                           if (at) prepared_->lent = *at;
                         }});
    if (gpu_.has_unseen())
      actions.push_back({"the borrower sees what was copied", [this] {
                           copies_.progress();
                           step();
                           check_read();
                         }});
    if (!aside_.empty())
      actions.push_back({"the borrower closes the mapping", [this] {
                           const auto close = std::move(aside_.front());
                           aside_.pop_front();
                           close();
                         }});
    if (setting_.may_freeze)
      actions.push_back({"the borrower is frozen", [this] { holder_ = Holder::frozen; }});
    if (setting_.may_die)
      actions.push_back({"the borrower is killed", [this] { holder_ = Holder::dies; }});
  }
  RevokeConfirmed heard(RevokeConfirmed confirmed) {
    if (setting_.hides_strays) confirmed.strays = false;
    strayed_ |= confirmed.strays;
    return confirmed;
  }
  /// Of borrowers as they must not be.
  void confirm() { to_owner_.push_back(RevokeConfirmed{grant_->description().lease}); }

  void submit() {
    submitted_ = true;
    if (!owner_->up()) return;
    Submission submission = make_submission(prepared_);
    if (!submission.remote_use) return;
    if (setting_.lent) submission.transport = TransportKind::device_copy;
    submission.on_end = [this](const Ended&) { ++ends_; };
    transfer_ = std::make_shared<TransferState>(std::move(submission), *this);
    transfer_->start({0});
    scheduler_.add(transfer_);
    step();
  }
  /// As the rail does it.
  void step() {
    scheduler_.pump();
    rma_.progress();
  }

  void add_wire(std::vector<Action>& actions) {
    for (std::size_t i = 0; i < wire_.flights.size(); ++i) {
      Wire::Flight& flight = wire_.flights[i];
      if (flight.landed && flight.stray) {
        actions.push_back({"a stray is gone", [this, i] { wire_.forget(i); }});
        continue;
      }
      if (setting_.may_break && !flight.stray)
        actions.push_back({"its connection breaks", [this, i] {
                             wire_.break_off(i);
                             step();
                           }});
      if (flight.landed)
        actions.push_back({"an operation is completed", [this, i] {
                             wire_.complete(i);
                             step();
                             check_read();
                           }});
      else
        actions.push_back({"an operation lands", [this, &flight] {
                             if (wire_.land(flight) && reused_)
                               wrong = "a write landed in memory that was used for something else";
                           }});
    }
  }

  // What must hold.

  void check_read() {
    if (setting_.direction == Direction::write || !transfer_) return;
    if (transfer_->state() != State::done) return;
    const std::byte* local = prepared_->local->address();
    for (std::size_t i = 0; i < prepared_->bytes; ++i)
      if (local[i] != granted) wrong = "bytes were accepted that are not those of the grant";
  }
  void check_end() {
    if (holder_ == Holder::dead && cut_ && !reused_)
      wrong = "the memory never came back though the borrower is dead";
    if (holder_ != Holder::runs) return;
    if (transfer_ && (!transfer_->ended() || ends_ != 1)) wrong = "the transfer did not end once";
    const bool all_play = !cut_ && !strayed_ && holder_ == Holder::runs;
    if (all_play && !reused_ && !setting_.reuses_at_once && !setting_.keeps_word)
      wrong = "the memory never came back though everybody could confirm";
    if (closed_after_end_ && !reused_) wrong = "the memory never came back though the rail did";
    if (transfer_ && !cut_ && !transfer_->quiescent()) wrong = "the transfer is not quiescent";
  }

  // TransferHost
  void raise_signal(const std::shared_ptr<TransferState>&) override {}
  void offer_again(const std::shared_ptr<TransferState>& transfer) override {
    scheduler_.add(transfer);
  }
  void transfer_ended(TransferState&) override {}

  const Setting setting_;
  Choices& choices_;
  Wire wire_{setting_.keys_fence};
  std::deque<Notice> to_owner_, to_holder_;

  ModelGpu gpu_;  // the borrower's; the owner's does nothing by itself
  const ModelProcess process_;
  enum class Holder { runs, frozen, dies, dead } holder_ = Holder::runs;

  // The owner.
  const std::shared_ptr<SegmentState> segment_ =
      setting_.lent ? make_segment(cells * cell, gpu_) : make_segment(cells * cell);
  const std::shared_ptr<LeaseWords> words_ =
      std::make_shared<LeaseWords>(std::vector<LeaseWords::Reader>{{0, &wire_}});
  OwnedGrants owned_{[this](LinkId, Notice notice) {
                       if (!cut_) to_holder_.push_back(std::move(notice));
                     },
                     [](std::uint64_t, GrantEnd) {},
                     [this](LinkId) -> Result<Process> { return process_.process(); }};
  std::shared_ptr<GrantState> grant_;
  bool ended_ = false, fenced_ = false, reused_ = false, cut_ = false, strayed_ = false;
  enum class Rail { open, closing, opened } rail_ = Rail::open;
  bool closed_after_end_ = false;

  // The holder.
  const std::shared_ptr<PeerState> owner_ = make_peer(1, "owner");
  ImportedGrants imported_{
      [this](LinkId, Notice notice) {
        // What it does next, it does when the owner may have heard.
        const bool confirms = std::holds_alternative<RevokeConfirmed>(notice);
        if (confirms && (gpu_.mapped() || gpu_.has_copies()))
          wrong = "a borrower confirmed before it was done";
        if (!cut_) to_owner_.push_back(std::move(notice));
      },
      [this](RemoteState&, const Error& why) {
        if (transfer_) transfer_->end_early(State::failed, why);
      },
      [this](std::function<void()> task) {
        if (setting_.confirms_mapped) confirm();
        aside_.push_back(std::move(task));
      },
      [this] { return setting_.lent; },
      [this](std::function<void()> task) { aside_.push_back(std::move(task)); }};
  std::deque<std::function<void()>> aside_;  // closes mappings, which may take long
  bool tried_to_map_ = false;
  std::shared_ptr<RemoteState> remote_;
  std::shared_ptr<CompletionSlot> answer_;
  std::shared_ptr<PreparedState> prepared_;
  Rma rma_{wire_, 0, cell};
  weft::test::NullTransport bounce_{weft::test::NullTransport::Completes::at_once};
  GpuCopies copies_;
  RailScheduler scheduler_{0,    "rail:0", {.operations = 2, .bytes = cells * cell},
                           rma_, bounce_,  copies_};
  std::shared_ptr<TransferState> transfer_;
  bool submitted_ = false, mourned_ = false;
  int ends_ = 0;
};

struct Explored {
  std::size_t runs = 0;
  std::string wrong, story;
};

Explored explore_all(const Setting& setting) {
  Explored explored;
  explored.runs = explore([&](Choices& choices) {
    World world(setting, choices);
    if (world.run()) return true;
    explored.wrong = world.wrong;
    explored.story = world.story;
    return false;
  });
  return explored;
}

void expect_sound(const Setting& setting) {
  const Explored explored = explore_all(setting);
  EXPECT_EQ(explored.wrong, "") << "after: " << explored.story;
  EXPECT_GT(explored.runs, 50U) << "hardly anything was tried";
  testing::Test::RecordProperty("orders", static_cast<int>(explored.runs));
}

TEST(LeaseModel, AWriterThatConfirms) {
  expect_sound({.direction = Direction::write});
}
TEST(LeaseModel, AWriterWhoseDeadlinePasses) {
  expect_sound({.direction = Direction::write, .may_time_out = true});
}
TEST(LeaseModel, AWriterThatIsCutOff) {
  expect_sound({.direction = Direction::write, .may_cut = true});
}
TEST(LeaseModel, AWriterThatIsCutOffWhereKeysFence) {
  expect_sound({.direction = Direction::write, .keys_fence = true, .may_cut = true});
}
TEST(LeaseModel, AWriterThatIsFenced) {
  expect_sound({.direction = Direction::write, .keys_fence = true, .may_fence = true});
}
TEST(LeaseModel, AWriterThatIsCutOffFromARailThatIsOpenedAgain) {
  expect_sound(
      {.direction = Direction::write, .may_cut = true, .may_reopen = true, .operations = 1});
}
TEST(LeaseModel, AWriterThatConfirmsWhileTheRailIsOpenedAgain) {
  expect_sound(
      {.direction = Direction::write, .may_time_out = true, .may_reopen = true, .operations = 1});
}
TEST(LeaseModel, AWriterWhoseConnectionBreaks) {
  expect_sound({.direction = Direction::write, .may_break = true, .operations = 1});
}
TEST(LeaseModel, AWriterWhoseConnectionBreaksOnARailThatIsOpenedAgain) {
  expect_sound(
      {.direction = Direction::write, .may_reopen = true, .may_break = true, .operations = 1});
}
TEST(LeaseModel, AReader) {
  expect_sound({.direction = Direction::read});
}
TEST(LeaseModel, AReaderThatIsCutOff) {
  expect_sound({.direction = Direction::read, .may_cut = true, .may_time_out = true});
}

// Memory that was lent. No key is in a borrower's way, whatever keys fence elsewhere.

constexpr Setting lent{.keys_fence = true, .lent = true};

Setting with(Setting setting, Direction direction, bool Setting::*what = nullptr,
             bool Setting::*and_what = nullptr) {
  setting.direction = direction;
  for (bool Setting::*each : {what, and_what})
    if (each != nullptr) setting.*each = true;
  return setting;
}

TEST(LeaseModel, ABorrowerThatConfirms) {
  for (const Direction direction : {Direction::write, Direction::read})
    expect_sound(with(lent, direction));
}
TEST(LeaseModel, ABorrowerWhoseDeadlinePasses) {
  for (const Direction direction : {Direction::write, Direction::read})
    expect_sound(with(lent, direction, &Setting::may_time_out));
}
TEST(LeaseModel, ABorrowerThatIsFenced) {
  for (const Direction direction : {Direction::write, Direction::read})
    expect_sound(with(lent, direction, &Setting::may_fence));
}
TEST(LeaseModel, ABorrowerThatIsCutOff) {
  for (const Direction direction : {Direction::write, Direction::read})
    expect_sound(with(lent, direction, &Setting::may_cut));
}
TEST(LeaseModel, ABorrowerThatIsFrozen) {
  for (const Direction direction : {Direction::write, Direction::read})
    expect_sound(with(lent, direction, &Setting::may_freeze, &Setting::may_cut));
}
TEST(LeaseModel, ABorrowerThatDies) {
  for (const Direction direction : {Direction::write, Direction::read})
    expect_sound(with(lent, direction, &Setting::may_die, &Setting::may_cut));
}

// The model would notice.

TEST(LeaseModel, FindsTheLateWriteOfAnOwnerThatDoesNotWait) {
  EXPECT_EQ(explore_all({.direction = Direction::write, .reuses_at_once = true}).wrong,
            "a write landed in memory that was used for something else");
}
TEST(LeaseModel, FindsTheLateWriteOfAConnectionThatBroke) {
  EXPECT_EQ(
      explore_all(
          {.direction = Direction::write, .may_break = true, .operations = 1, .hides_strays = true})
          .wrong,
      "a write landed in memory that was used for something else");
}
TEST(LeaseModel, FindsTheStaleReadOfAnOwnerThatLeavesTheWord) {
  EXPECT_EQ(
      explore_all({.direction = Direction::read, .reuses_at_once = true, .keeps_word = true}).wrong,
      "bytes were accepted that are not those of the grant");
}

constexpr auto while_mapped = "memory was used for something else while it was mapped";
constexpr auto touched = "a copy touched memory that was reused";

TEST(LeaseModel, FindsTheBorrowerThatConfirmsUnderItsCopies) {
  EXPECT_EQ(explore_all(with(lent, Direction::write, &Setting::confirms_under_copies)).wrong,
            touched);
}
TEST(LeaseModel, FindsTheBorrowerThatConfirmsBeforeItUnmaps) {
  EXPECT_EQ(explore_all(with(lent, Direction::read, &Setting::confirms_mapped)).wrong,
            while_mapped);
}
TEST(LeaseModel, FindsTheOwnerThatTakesAFrozenBorrowerForDead) {
  Setting setting = with(lent, Direction::write, &Setting::may_freeze, &Setting::may_cut);
  setting.takes_the_lost_for_dead = true;
  EXPECT_EQ(explore_all(setting).wrong, touched);
}
TEST(LeaseModel, FindsTheOwnerThatTakesABorrowerForFenced) {
  EXPECT_EQ(
      explore_all(with(lent, Direction::write, &Setting::may_fence, &Setting::fences_the_lent))
          .wrong,
      touched);
}
TEST(LeaseModel, FindsTheOwnerThatForgetsThoseWhoReadWhatTheyMapped) {
  EXPECT_EQ(explore_all(with(lent, Direction::read, &Setting::forgets_readers)).wrong, touched);
}

}  // namespace
}  // namespace weft::core::test
