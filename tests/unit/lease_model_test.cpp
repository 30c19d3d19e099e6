// Every order in which an owner and a holder of a lease, the messages between them and the NICs can
// act, with the code that ships between a NIC that moves nothing before it is told to and a control
// connection that delivers nothing before it is told to. See lib/lease/README.md for what must
// hold.
#include <gtest/gtest.h>

#include <cstring>
#include <deque>
#include <functional>
#include <set>
#include <string>

#include "explorer.hpp"
#include "lease/imported_grants.hpp"
#include "lease/owned_grants.hpp"
#include "null_transport.hpp"
#include "parts.hpp"
#include "rail/lane.hpp"
#include "transport/one_sided.hpp"

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
    flights.push_back({&posted, true, local, target, open_keys_.contains(target.key)});
    return {};
  }
  Post read(Posted& posted, const Local& local, const Target& target) override {
    flights.push_back({&posted, false, local, target, open_keys_.contains(target.key)});
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
    flights.erase(flights.begin() + static_cast<std::ptrdiff_t>(index));
    providers::Completion completion;
    completion.ok = flight.ok;
    completion.fabric_code = flight.ok ? 0 : 1;
    flight.posted->handler->completed(*flight.posted, completion);
  }

  /// The owner's endpoint: what has not landed never does.
  void close_and_open() {
    for (Flight& flight : flights) flight.landed = true;
    for (const std::uint64_t key : retired_keys_) open_keys_.erase(key);
  }

  std::vector<Flight> flights;

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
  std::size_t operations = cells;  // of the transfer
  // Owners as they must not be, to see that the model notices.
  bool reuses_at_once = false;  // without asking
  bool keeps_word = false;      // and without taking the epoch word down
};

class World final : public TransferHost {
 public:
  World(const Setting& setting, Choices& choices) : setting_(setting), choices_(choices) {
    make_grant();
    make_remote();
    EXPECT_TRUE(rma_.prepare());
  }
  ~World() {
    // What the NICs still have never comes home.
    if (transfer_) transfer_->end_early(State::failed, Error(Code::closed, "closed"));
    for (const auto& [transfer, chunk] : lane_.take_orphans()) transfer->give_back(chunk);
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
    parts.registrations.push_back(std::move(*registered));
    parts.epoch = words_->take().value();
    parts.description.epoch = parts.epoch->value();
    parts.description.epoch_keys = parts.epoch->keys();
    if (!setting_.keys_fence) parts.unfenced.insert(0);
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
    prepared->local = make_segment(cells * cell);
    std::memset(prepared->local->address(), static_cast<int>(written), cells * cell);
    prepared->local->add_rail(0, nullptr);
    prepared->remote = remote_;
    prepared->path = make_rail_set(*owner_);
    prepared->direction = setting_.direction;
    prepared->bytes = setting_.operations * cell;
    const Pair all[] = {{0, 0, prepared->bytes}};
    prepared->pieces = PieceList(all);
    prepared_ = std::move(prepared);
  }

  // What can happen next.

  std::vector<Action> possible() {
    std::vector<Action> actions;
    add_owner(actions);
    add_messages(actions);
    add_holder(actions);
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
                           std::memset(segment_->address(), static_cast<int>(reused), cells * cell);
                         }});
    if (!cut_ && setting_.may_cut)
      actions.push_back({"the connection is cut", [this] {
                           cut_ = true;
                           to_owner_.clear();
                           owned_.link_down(the_link);
                         }});
  }
  void end_grant() {
    ended_ = true;
    if (!setting_.keeps_word) owned_.end(*grant_);
  }
  /// settle() may close keys, so it is asked only when its answer counts.
  bool may_reuse() { return setting_.reuses_at_once || grant_->settle() == Revoked::quiescent; }

  void add_messages(std::vector<Action>& actions) {
    if (!to_owner_.empty())
      actions.push_back({"the owner hears", [this] {
                           const Notice notice = std::move(to_owner_.front());
                           to_owner_.pop_front();
                           if (const auto* query = std::get_if<GrantQuery>(&notice))
                             owned_.take(the_link, *query);
                           if (const auto* confirmed = std::get_if<RevokeConfirmed>(&notice))
                             owned_.take(the_link, *confirmed);
                         }});
    // After a cut what was sent before may still come, or never.
    if (!to_holder_.empty())
      actions.push_back({"the holder hears", [this] {
                           const Notice notice = std::move(to_holder_.front());
                           to_holder_.pop_front();
                           if (const auto* status = std::get_if<GrantStatus>(&notice))
                             imported_.take(*owner_, *status);
                           if (const auto* request = std::get_if<RevokeRequest>(&notice))
                             imported_.take(*owner_, *request);
                         }});
  }

  void add_holder(std::vector<Action>& actions) {
    if (!submitted_ && answer_->done() && !answer_->error())
      actions.push_back({"the holder submits", [this] { submit(); }});
    if (transfer_ && !transfer_->ended() && setting_.may_time_out)
      actions.push_back(
          {"the deadline passes", [this] { transfer_->end_overdue(Clock::time_point::max()); }});
    if (cut_ && !mourned_)
      actions.push_back({"the holder notices the cut", [this] {
                           mourned_ = true;
                           owner_->set_down(Error(Code::peer_down, "cut"));
                           to_holder_.clear();
                           imported_.link_down(the_link, owner_->down_error());
                           if (transfer_) transfer_->end_early(State::failed, owner_->down_error());
                           lane_.peer_died(*owner_->route_by_rail[0]);
                         }});
  }
  void submit() {
    submitted_ = true;
    if (!owner_->up() || !remote_->users().enter()) return;
    Submission submission = make_submission(prepared_);
    submission.on_end = [this](const Ended&) { ++ends_; };
    transfer_ = std::make_shared<TransferState>(std::move(submission), *this);
    transfer_->start({0});
    lane_.add(transfer_);
    step();
  }
  /// As the rail does it.
  void step() {
    lane_.pump();
    rma_.progress();
  }

  void add_wire(std::vector<Action>& actions) {
    for (std::size_t i = 0; i < wire_.flights.size(); ++i) {
      Wire::Flight& flight = wire_.flights[i];
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
    if (transfer_ && (!transfer_->ended() || ends_ != 1)) wrong = "the transfer did not end once";
    if (!cut_ && !reused_ && !setting_.reuses_at_once && !setting_.keeps_word)
      wrong = "the memory never came back though everybody could confirm";
    if (closed_after_end_ && !reused_) wrong = "the memory never came back though the rail did";
    if (transfer_ && !cut_ && !transfer_->quiescent()) wrong = "the transfer is not quiescent";
  }

  // TransferHost
  void raise_signal(const std::shared_ptr<TransferState>&) override {}
  void offer_again(const std::shared_ptr<TransferState>& transfer) override { lane_.add(transfer); }
  void transfer_ended(TransferState&) override {}
  void memory_let_go(TransferState&) override { remote_->users().leave(); }
  void transfer_quiescent(TransferState&) override {}

  const Setting setting_;
  Choices& choices_;
  Wire wire_{setting_.keys_fence};
  std::deque<Notice> to_owner_, to_holder_;

  // The owner.
  const std::shared_ptr<SegmentState> segment_ = make_segment(cells * cell);
  const std::shared_ptr<EpochWords> words_ =
      std::make_shared<EpochWords>(std::vector<EpochWords::Reader>{{0, &wire_}});
  OwnedGrants owned_{[this](LinkId, Notice notice) {
                       if (!cut_) to_holder_.push_back(std::move(notice));
                     },
                     [](std::uint64_t) {},
                     [](LinkId) -> Result<Process> { return fail(Code::unsupported, "nobody"); }};
  std::shared_ptr<GrantState> grant_;
  bool ended_ = false, fenced_ = false, reused_ = false, cut_ = false;
  enum class Rail { open, closing, opened } rail_ = Rail::open;
  bool closed_after_end_ = false;

  // The holder.
  const std::shared_ptr<PeerState> owner_ = make_peer(1, "owner");
  ImportedGrants imported_{[this](LinkId, Notice notice) {
                             if (!cut_) to_owner_.push_back(std::move(notice));
                           },
                           [this](RemoteState&, const Error& why) {
                             if (transfer_) transfer_->end_early(State::failed, why);
                           },
                           [](const std::function<void()>& task) { task(); }, [] { return false; }};
  std::shared_ptr<RemoteState> remote_;
  std::shared_ptr<CompletionSlot> answer_;
  std::shared_ptr<const PreparedState> prepared_;
  OneSided rma_{wire_, 0, cell};
  weft::test::NullTransport relay_{weft::test::NullTransport::Completes::at_once}, copies_;
  Lane lane_{0, "rail:0", {.operations = 2, .bytes = cells * cell}, rma_, relay_, copies_};
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
  EXPECT_GT(explored.runs, 100U) << "hardly anything was tried";
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
TEST(LeaseModel, AReader) {
  expect_sound({.direction = Direction::read});
}
TEST(LeaseModel, AReaderThatIsCutOff) {
  expect_sound({.direction = Direction::read, .may_cut = true, .may_time_out = true});
}

// The model would notice.

TEST(LeaseModel, FindsTheLateWriteOfAnOwnerThatDoesNotWait) {
  EXPECT_EQ(explore_all({.direction = Direction::write, .reuses_at_once = true}).wrong,
            "a write landed in memory that was used for something else");
}
TEST(LeaseModel, FindsTheStaleReadOfAnOwnerThatLeavesTheWord) {
  EXPECT_EQ(
      explore_all({.direction = Direction::read, .reuses_at_once = true, .keeps_word = true}).wrong,
      "bytes were accepted that are not those of the grant");
}

}  // namespace
}  // namespace weft::core::test
