// Bounces over endpoints that carry, refuse and hold back what the test says.
#include "transport/bounce.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <map>
#include <random>

#include "message_generated.h"
#include "null_transport.hpp"
#include "parts.hpp"
#include "pattern.hpp"
#include "rail/rail_scheduler.hpp"
#include "scripted_endpoint.hpp"
#include "staged_device.hpp"

namespace weft::core::test {
namespace {

using testing::Each;
using testing::IsEmpty;
using testing::SizeIs;
using weft::test::fill;
using weft::test::holds;
using weft::test::pattern;
using weft::test::same_bytes;
using wire::BounceHead;
using wire::BouncePiece;

constexpr std::size_t buffer_bytes = 16 << 10, credits = 4, most_pieces = 16;
constexpr std::size_t most_buffers = 64;
constexpr std::size_t memory_bytes = 512 << 10;
constexpr std::uint8_t write_kind = 1, read_kind = 2;
constexpr std::size_t kind_at = 36;  // in a head

/// Memory that the CPU may not touch for as long as the test looks at it as a device's. Copies run
/// when they are looked at, unless they are held.
class Accelerator final : public StagedDevice {
 public:
  Result<std::unique_ptr<CopyQueue>> open_queue() const override {
    return std::make_unique<Queue>(*this);
  }

  bool held = false;
  mutable std::size_t copies = 0, lists = 0;
  mutable std::size_t until_refusal = std::numeric_limits<std::size_t>::max();

 private:
  class Queue final : public CopyQueue {
   public:
    explicit Queue(const Accelerator& accelerator) : accelerator_(accelerator) {}
    Begun copy(std::span<const Copy> copies, Priority) override {
      Begun begun;
      for (const Copy& each : copies) {
        if (accelerator_.until_refusal-- == 0) {
          begun.error = Error(Code::unavailable, "the copy engine refuses");
          break;
        }
        waiting_.push_back(each);
        ++begun.copies;
      }
      accelerator_.copies += begun.copies;
      ++accelerator_.lists;
      if (begun.copies > 0) begun.number = ++begun_;
      return begun;
    }
    Result<std::uint64_t> ended() override {
      if (accelerator_.held) return ended_;
      for (const Copy& each : std::exchange(waiting_, {}))
        std::memcpy(each.to, each.from, each.bytes);
      return ended_ = begun_;
    }

   private:
    const Accelerator& accelerator_;
    std::vector<Copy> waiting_;
    std::uint64_t begun_ = 0, ended_ = 0;
  };
};

std::shared_ptr<SegmentState> make_memory(const Device& device, std::uint64_t seed) {
  auto segment = std::make_shared<SegmentState>(
      1, nullptr, *Allocation::make(Memory::own(memory_bytes)), Place{}, device);
  segment->keys()->serve(0, false);
  fill({segment->address(), memory_bytes}, seed);
  return segment;
}

Bytes bytes_of(const SegmentState& segment) {
  return {segment.address(), segment.size()};
}

/// An engine that can be reached at that address, as others know it.
std::shared_ptr<PeerState> make_known(std::uint64_t token, providers::FabricAddress address) {
  Introduction introduction;
  introduction.name = "peer " + std::to_string(address);
  introduction.token = token;
  introduction.bounce_buffers = credits;
  introduction.bounce_buffer_bytes = buffer_bytes;
  introduction.rails.resize(1);
  auto peer = std::make_shared<PeerState>(nullptr, 1, introduction, true,
                                          PeerState::Limits{std::size_t{1} << 20, 16});
  auto route = std::make_unique<Route>();
  route->targets.add({0, &route->addresses.try_emplace(0, address).first->second});
  peer->route_by_rail = {route.get()};
  peer->routes.push_back(std::move(route));
  peer->set_up();
  return peer;
}

/// An engine's bounce-buffer transport.
struct Side {
  explicit Side(const Device& device, std::uint64_t seed, std::size_t most = most_buffers)
      : segment(make_memory(device, seed)),
        bounce(
            endpoint, 0, {buffer_bytes, credits, most}, [this](std::uint64_t) { return grant; },
            [] { return Result<void>(); },
            [this](const PeerState& peer, const Notice& notice) {
              told.emplace_back(&peer, std::get<BounceCredits>(notice));
            }) {
    if (!device.direct()) {
      EXPECT_TRUE(bounce.serve(device));
    }
  }
  ~Side() { EXPECT_TRUE(bounce.settle(soon())); }

  const std::shared_ptr<SegmentState> segment;
  std::shared_ptr<GrantState> grant;
  ScriptedEndpoint endpoint;
  std::deque<std::pair<const PeerState*, BounceCredits>> told;
  Bounce bounce;
};

/// Grants all of its memory but the first and the last page.
struct Owner : Side {
  static constexpr Range granted{4096, memory_bytes - 8192};

  explicit Owner(const Device& device = host_device(), std::size_t most = most_buffers)
      : Side(device, 2, most) {
    grant = make_grant(segment, 1, Rights::read_write, {granted});
  }
};

/// Writes to the owner's memory, and reads from it.
struct Asker : Side, TransferHost {
  Asker(Owner& owner, providers::FabricAddress address, const Device& device = host_device())
      : Side(device, 1),
        address(address),
        owner(owner),
        known(make_known(100 + address, 0)),
        known_there(make_known(200 + address, address)),
        scheduler(0, "nic", {64, std::uint64_t{1} << 30}, nothing, bounce, nothing_either) {
    bounce.add_peer(known, *known->route_by_rail[0], 200 + address);
    owner.bounce.add_peer(known_there, *known_there->route_by_rail[0], 100 + address);
  }
  std::shared_ptr<TransferState> start(Direction direction, std::span<const Pair> pairs) {
    auto prepared = std::make_shared<PreparedState>();
    prepared->rail_names = make_rail_names(1);
    prepared->local = segment;
    prepared->remote = make_remote(known, memory_bytes);
    prepared->path = make_rail_set(*known);
    prepared->direction = direction;
    prepared->pieces = PieceList(pairs);
    for (const Pair& each : pairs) prepared->bytes += each.length;
    Submission submission = make_submission(std::move(prepared));
    submission.transport = TransportKind::bounce;
    auto transfer = std::make_shared<TransferState>(std::move(submission), *this);
    transfer->start({0});
    scheduler.add(transfer);
    return transfer;
  }
  void turn() {
    scheduler.pump();
    talk();
    bounce.progress();
  }
  /// What the two tell each other over the control connection.
  void talk() {
    while (!told.empty()) {
      const auto [to, credits] = told.front();
      told.pop_front();
      if (to == owner_known.get())
        owner.bounce.hear(*known_there->route_by_rail[0], credits);
      else if (credits.step ==
               BounceCredits::Step::wanted)  // of a peer that gives what is asked for
        bounce.hear(*to->route_by_rail[0], {BounceCredits::Step::given, 0, 0, credits.count});
      hear();
    }
    hear();
  }
  /// Has as many credits as it may.
  void open() {
    const auto transfer = start(Direction::read, std::array{Pair{0, 4096, 1}});
    run(*transfer);
    EXPECT_EQ(transfer->state(), State::done);
    talk();
  }
  void hear() {
    for (auto& [to, credits] : std::exchange(owner.told, {}))
      if (to == known_there.get())
        bounce.hear(*owner_known->route_by_rail[0], credits);
      else
        owner.told.emplace_back(to, credits);
  }
  /// What it has sent arrives.
  void send() {
    for (auto& sent : std::exchange(endpoint.sent, {})) {
      owner.endpoint.arrive(sent.message);
      sent.posted->handler->completed(*sent.posted, {});
    }
  }
  /// What was sent to it arrives.
  void receive() {
    for (auto& sent : std::exchange(owner.endpoint.sent, {})) {
      if (sent.to != address) {
        owner.endpoint.sent.push_back(std::move(sent));
        continue;
      }
      endpoint.arrive(sent.message);
      sent.posted->handler->completed(*sent.posted, {});
    }
  }
  void run(const TransferState& transfer) {
    for (int turns = 0; turns < 10'000 && !transfer.quiescent(); ++turns) {
      turn();
      send();
      owner.bounce.progress();
      receive();
    }
  }
  void raise_signal(const std::shared_ptr<TransferState>& transfer) override {
    transfer->signal_ended(std::nullopt);
  }
  void offer_again(const std::shared_ptr<TransferState>& transfer) override {
    scheduler.add(transfer);
  }
  void transfer_ended(TransferState&) override {}

  const providers::FabricAddress address;
  Owner& owner;
  std::shared_ptr<PeerState> known;  // the owner, as the asker knows it
  const std::shared_ptr<PeerState> owner_known = known;
  const std::shared_ptr<PeerState> known_there;
  weft::test::NullTransport nothing, nothing_either;
  RailScheduler scheduler;
};

/// Pieces that are no neighbours, within what is granted, in another order on each side.
std::vector<Pair> blocks(std::size_t count, std::uint64_t length) {
  std::vector<Pair> pairs;
  for (std::size_t i = 0; i < count; ++i)
    pairs.push_back({i * (length + 3), 4096 + (count - 1 - i) * (length + 5), length});
  return pairs;
}

BounceHead head_of(const ScriptedEndpoint::Sent& sent) {
  BounceHead head;
  std::memcpy(&head, sent.message.data(), sizeof head);
  return head;
}

void expect_moved(Asker& asker, Direction direction, std::span<const Pair> pairs) {
  const Bytes mine = bytes_of(*asker.segment), theirs = bytes_of(*asker.owner.segment);
  const bool write = direction == Direction::write;
  const Blob expected = write ? weft::test::expected_after(theirs, mine, direction, pairs)
                              : weft::test::expected_after(mine, theirs, direction, pairs);
  const Blob kept(write ? Blob(mine.begin(), mine.end()) : Blob(theirs.begin(), theirs.end()));
  const auto transfer = asker.start(direction, pairs);
  asker.run(*transfer);
  ASSERT_EQ(transfer->state(), State::done);
  EXPECT_TRUE(same_bytes(write ? theirs : mine, expected));
  EXPECT_TRUE(same_bytes(write ? mine : theirs, kept));
}

TEST(Bounce, SmallPiecesShareARequest) {
  Owner owner;
  Asker asker(owner, 1);
  // As many as lists may name, and as many bytes as buffers hold: full to the last byte.
  const auto pairs = blocks(4 * most_pieces, buffer_bytes / most_pieces);
  for (const Direction direction : {Direction::write, Direction::read}) {
    const auto transfer = asker.start(direction, pairs);
    asker.turn();
    ASSERT_THAT(asker.endpoint.sent, SizeIs(4));
    for (const auto& sent : asker.endpoint.sent) {
      EXPECT_EQ(head_of(sent).pieces(), most_pieces);
      EXPECT_EQ(head_of(sent).length(), buffer_bytes);
      EXPECT_EQ(sent.message.size(), sizeof(BounceHead) + most_pieces * sizeof(BouncePiece) +
                                         (direction == Direction::write ? buffer_bytes : 0));
    }
    asker.run(*transfer);
    EXPECT_EQ(transfer->state(), State::done);
    const Report report = transfer->own_report();
    EXPECT_EQ(report.operations, pairs.size());
    EXPECT_EQ(report.bytes_done, 4 * buffer_bytes);
    EXPECT_EQ(transfer->copied(), 4 * buffer_bytes);
    expect_moved(asker, direction, pairs);
  }
}

TEST(Bounce, PiecesOfAllSizesArriveAndNoOtherByte) {
  const Accelerator there, here;
  for (const Device* remote : {&host_device(), static_cast<const Device*>(&there)})
    for (const Device* local : {&host_device(), static_cast<const Device*>(&here)}) {
      Owner owner(*remote);
      Asker asker(owner, 1, *local);
      std::mt19937 random(7);
      for (const Direction direction : {Direction::write, Direction::read}) {
        std::vector<Pair> pairs;
        std::uint64_t at = 4096;
        while (at < memory_bytes - 4096 - 2 * buffer_bytes) {
          const std::uint64_t length = 1 + random() % (random() % 4 == 0 ? 2 * buffer_bytes : 700);
          pairs.push_back({at - random() % 4096, at, length});
          at += length + 1 + random() % 9;
        }
        if (direction == Direction::read)  // nothing is written twice
          for (Pair& each : pairs) std::swap(each.local, each.remote);
        for (Pair& each : pairs) each.remote = std::max<std::uint64_t>(each.remote, 4096);
        expect_moved(asker, direction, pairs);
      }
    }
}

TEST(Bounce, AsManyRequestsAreUnderWayAsThereAreCredits) {
  Owner owner;
  Asker asker(owner, 1);
  const auto pairs = blocks(10 * most_pieces, 500);
  const auto transfer = asker.start(Direction::write, pairs);
  for (int i = 0; i < 10; ++i) asker.turn();
  EXPECT_THAT(asker.endpoint.sent, SizeIs(credits));
  EXPECT_EQ(asker.scheduler.in_flight(), credits);
  asker.run(*transfer);
  EXPECT_EQ(transfer->state(), State::done);
}

TEST(Bounce, PiecesOfTwoTransfersDoNotShareARequest) {
  Owner owner;
  Asker asker(owner, 1);
  const auto pairs = blocks(4, 100);
  const auto one = asker.start(Direction::write, std::span(pairs).first(2));
  const auto other = asker.start(Direction::write, std::span(pairs).last(2));
  asker.turn();
  ASSERT_THAT(asker.endpoint.sent, SizeIs(2));
  for (const auto& sent : asker.endpoint.sent) EXPECT_EQ(head_of(sent).pieces(), 2);
  asker.run(*one);
  asker.run(*other);
  EXPECT_EQ(one->state(), State::done);
  EXPECT_EQ(other->state(), State::done);
}

/// A request as a peer of the owner's might send it.
struct Request {
  std::uint8_t kind = write_kind;
  std::vector<Range> pieces;
  std::uint64_t length = 0;                // as the head says
  std::size_t payload = 0;                 // as it is
  std::optional<std::uint16_t> claimed{};  // pieces as the head says, if not as many as there are

  Blob message() const {
    const BounceHead head(101, 7, 1, length, 0, kind, 0,
                          claimed.value_or(static_cast<std::uint16_t>(pieces.size())));
    Blob bytes(sizeof head);
    std::memcpy(bytes.data(), &head, sizeof head);
    for (const Range& each : pieces) {
      const BouncePiece piece(each.offset, each.length);
      const auto* from = reinterpret_cast<const std::byte*>(&piece);
      bytes.insert(bytes.end(), from, from + sizeof piece);
    }
    bytes.resize(bytes.size() + payload, std::byte{0xee});
    return bytes;
  }
};

/// How the owner answers what comes by itself.
Code answer_to(Owner& owner, const Blob& message) {
  owner.endpoint.arrive(message);
  owner.bounce.progress();
  EXPECT_THAT(owner.endpoint.sent, SizeIs(1));
  if (owner.endpoint.sent.empty()) return Code::internal;
  const auto sent = std::move(owner.endpoint.sent.front());
  owner.endpoint.sent.pop_front();
  sent.posted->handler->completed(*sent.posted, {});
  return static_cast<Code>(head_of(sent).status());
}

TEST(Bounce, WrongListsAreRefusedAndNothingIsTouched) {
  const Accelerator accelerator;
  for (const Device* device : {&host_device(), static_cast<const Device*>(&accelerator)}) {
    Owner owner(*device);
    Asker asker(owner, 1);
    asker.open();
    const std::size_t receives = owner.endpoint.receives.size();
    constexpr std::uint64_t end = memory_bytes - 4096, huge = ~std::uint64_t{0};
    const std::vector<Range> good = {{4096, 100}, {8000, 100}};
    const auto refused = [&](const char* why, Request request, Code code) {
      for (const std::uint8_t kind : {write_kind, read_kind}) {
        request.kind = kind;
        if (kind == read_kind) request.payload = 0;
        EXPECT_EQ(answer_to(owner, request.message()), code) << why << ", kind " << int{kind};
      }
    };
    const auto forbidden = Code::permission_denied, wrong = Code::invalid_argument;
    refused("one before the grant", {0, {{4096, 100}, {4000, 100}}, 200, 200}, forbidden);
    refused("one begins before the grant", {0, {{4095, 100}, {8000, 100}}, 200, 200}, forbidden);
    refused("one ends behind the grant", {0, {{4096, 100}, {end - 99, 100}}, 200, 200}, forbidden);
    refused("one far behind", {0, {{4096, 100}, {huge - 10, 100}}, 200, 200}, forbidden);
    refused("an empty one", {0, {{4096, 100}, {8000, 0}}, 100, 100}, wrong);
    refused("fewer bytes than the head says", {0, good, 201, 201}, wrong);
    refused("more bytes than the head says", {0, good, 199, 199}, wrong);
    refused("a sum that wraps", {0, {{4096, huge}, {8000, 101}}, 100, 100}, wrong);
    refused("one that is too long", {0, {{4096, huge}, {8000, 100}}, 200, 200}, wrong);
    refused("more than a buffer", {0, {{4096, 16384}, {8000, 1}}, 16385, 0}, wrong);
    refused("no list where one is announced", {0, {}, 200, 0, 2}, wrong);
    refused("a list that is cut off", {0, {{4096, 100}}, 200, 0, 2}, wrong);
    refused("more pieces than were agreed", {0, std::vector<Range>(17, {4096, 10}), 170, 170},
            wrong);
    refused("as many as there can be", {0, good, 200, 200, 65535}, wrong);
    EXPECT_EQ(answer_to(owner, Request{write_kind, good, 200, 199}.message()), wrong);
    EXPECT_EQ(answer_to(owner, Request{write_kind, good, 200, 0}.message()), wrong);
    EXPECT_EQ(answer_to(owner, Request{read_kind, good, 200, 1}.message()), wrong);
    EXPECT_EQ(answer_to(owner, Request{read_kind, {}, 0, 0}.message()), wrong);
    EXPECT_TRUE(holds(bytes_of(*owner.segment), 2));

    owner.grant = make_grant(owner.segment, 1, Rights::read, {Owner::granted});
    EXPECT_EQ(answer_to(owner, Request{write_kind, good, 200, 200}.message()), forbidden);
    owner.grant = nullptr;
    refused("a grant that ended", {0, good, 200, 200}, Code::stale);
    EXPECT_TRUE(holds(bytes_of(*owner.segment), 2));

    owner.grant = make_grant(owner.segment, 1, Rights::read_write, {Owner::granted});
    EXPECT_EQ(owner.endpoint.receives.size(), receives);
    EXPECT_EQ(answer_to(owner, Request{write_kind, good, 200, 200}.message()), Code{});
    expect_moved(asker, Direction::write, blocks(100, 100));
    expect_moved(asker, Direction::read, blocks(100, 100));
  }
}

TEST(Bounce, WhateverComesStaysWithinTheGrant) {
  Owner owner;
  Asker asker(owner, 1);
  asker.open();
  const std::size_t receives = owner.endpoint.receives.size();
  std::mt19937_64 random(20240607);
  std::map<Code, int> answers;
  for (int round = 0; round < 20'000; ++round) {
    Request request;
    request.kind = random() % 2 == 0 ? write_kind : read_kind;
    for (std::size_t left = random() % 5; left > 0; --left) {
      request.pieces.push_back({random() % (memory_bytes + 4096), random() % 300});
      request.length += request.pieces.back().length;
    }
    if (request.kind == write_kind) request.payload = request.length;
    Blob message = request.message();
    // The token, by which the sender is known, stays.
    for (std::size_t flips = random() % 3; flips > 0; --flips)
      message[sizeof(std::uint64_t) + random() % (message.size() - sizeof(std::uint64_t))] =
          static_cast<std::byte>(random());
    message[kind_at] = static_cast<std::byte>(request.kind);
    if (random() % 8 == 0)
      message.resize(sizeof(BounceHead) + random() % (message.size() - sizeof(BounceHead) + 1));
    owner.endpoint.arrive(message);
    for (const auto& sent : std::exchange(owner.endpoint.sent, {})) {
      ++answers[static_cast<Code>(head_of(sent).status())];
      sent.posted->handler->completed(*sent.posted, {});
    }
  }
  const Bytes all = bytes_of(*owner.segment);
  EXPECT_TRUE(holds(all.first(4096), 2));
  EXPECT_TRUE(holds(all.last(4096), 2, memory_bytes - 4096));
  EXPECT_EQ(owner.endpoint.receives.size(), receives);
  for (const Code code : {Code{}, Code::invalid_argument, Code::permission_denied})
    EXPECT_GT(answers[code], 100) << int(code);
}

TEST(Bounce, ADevicesPiecesAreCopiedAsOne) {
  const Accelerator there, here;
  Owner owner(there);
  Asker asker(owner, 1, here);
  for (const Direction direction : {Direction::write, Direction::read}) {
    there.copies = there.lists = here.copies = here.lists = 0;
    expect_moved(asker, direction, blocks(4 * most_pieces, 1000));
    for (const Accelerator* each : {&there, &here}) {
      EXPECT_EQ(each->copies, 4 * most_pieces);
      EXPECT_EQ(each->lists, 4U);
    }
  }
}

TEST(Bounce, CopiesOverlapWithTheWire) {
  Accelerator there;
  const Accelerator here;
  Owner owner(there);
  Asker asker(owner, 1, here);
  there.held = true;
  const auto transfer = asker.start(Direction::write, blocks(10 * most_pieces, 500));
  for (int i = 0; i < 10; ++i) {
    asker.turn();
    asker.send();
    owner.bounce.progress();
  }
  // Not one of the owner's copies has ended, and the asker goes on as long as it has credits.
  EXPECT_EQ(here.lists, credits);
  EXPECT_EQ(there.lists, credits);
  EXPECT_THAT(owner.endpoint.sent, IsEmpty());
  there.held = false;
  asker.run(*transfer);
  EXPECT_EQ(transfer->state(), State::done);
}

TEST(Bounce, ACopyThatCanNotBeginFailsItsTransferOnceTheOthersHaveEnded) {
  Accelerator there, here;
  Owner owner(there);
  Asker asker(owner, 1, here);
  for (Accelerator* failing : {&here, &there})
    for (const Direction direction : {Direction::write, Direction::read})
      for (const std::size_t before : {0U, 1U, 7U}) {
        SCOPED_TRACE(before);
        const auto transfer = asker.start(direction, blocks(8, 100));
        failing->held = true;
        failing->until_refusal = before;
        for (int i = 0; i < 10; ++i) {
          asker.turn();
          asker.send();
          owner.bounce.progress();
          asker.receive();
        }
        failing->until_refusal = std::numeric_limits<std::size_t>::max();
        EXPECT_EQ(transfer->quiescent(), before == 0);
        failing->held = false;
        asker.run(*transfer);
        ASSERT_TRUE(transfer->quiescent());
        EXPECT_EQ(transfer->state(), State::failed);
        EXPECT_EQ(transfer->error()->code(), Code::unavailable);
        EXPECT_TRUE(owner.grant->copying().idle());
        expect_moved(asker, direction, blocks(8, 100));  // no credit and no buffer was lost
        expect_moved(asker, direction, blocks(10 * most_pieces, 100));
      }
}

TEST(Bounce, WhatIsReadIsStaleIfTheGrantEndedDuringTheCopies) {
  Accelerator there;
  Owner owner(there);
  Asker asker(owner, 1);
  there.held = true;
  const auto transfer = asker.start(Direction::read, blocks(8, 100));
  asker.turn();
  asker.send();
  owner.bounce.progress();
  owner.grant = nullptr;
  there.held = false;
  asker.run(*transfer);
  EXPECT_EQ(transfer->error()->code(), Code::stale);
  EXPECT_TRUE(holds(bytes_of(*asker.segment), 1));
}

TEST(Bounce, APeerThatTakesNoAnswersHoldsUpNoOther) {
  Owner owner;
  Asker stuck(owner, 1), other(owner, 2);
  owner.endpoint.full = {1};
  const auto waits = stuck.start(Direction::read, blocks(10 * most_pieces, 500));
  for (int i = 0; i < 10; ++i) {
    stuck.turn();
    stuck.send();
    owner.bounce.progress();
  }
  for (const Direction direction : {Direction::write, Direction::read})
    expect_moved(other, direction, blocks(10 * most_pieces, 500));
  EXPECT_FALSE(waits->ended());
  owner.endpoint.full.clear();
  stuck.run(*waits);
  EXPECT_EQ(waits->state(), State::done);
}

TEST(Bounce, HoldsNothingForAPeerThatDoesNotUseIt) {
  Owner owner;
  Asker asker(owner, 1);
  EXPECT_EQ(owner.bounce.bytes() + asker.bounce.bytes(), 0U);
  expect_moved(asker, Direction::write, blocks(most_pieces, 500));
  EXPECT_EQ(owner.bounce.promised(), credits);
  EXPECT_EQ(asker.bounce.promised(), 0U) << "all answers have come";
  EXPECT_LE(owner.bounce.promised(), owner.bounce.posted());
  EXPECT_GT(owner.bounce.bytes(), credits * buffer_bytes);

  const auto tidy = [&] {
    asker.bounce.tidy();
    asker.talk();
    owner.bounce.tidy();
  };
  tidy();
  EXPECT_EQ(owner.bounce.promised(), credits) << "it has just been used";
  for (int i = 0; i < 3; ++i) tidy();
  EXPECT_EQ(owner.bounce.promised(), 0U);
  EXPECT_EQ(owner.bounce.bytes() + asker.bounce.bytes(), 0U);
  for (const Direction direction : {Direction::write, Direction::read})
    expect_moved(asker, direction, blocks(most_pieces, 500));
}

TEST(Bounce, WhatIsUsedStaysOpen) {
  Owner owner;
  Asker asker(owner, 1);
  for (int i = 0; i < 10; ++i) {
    expect_moved(asker, Direction::read, blocks(most_pieces, 500));
    const auto held = owner.bounce.bytes() + asker.bounce.bytes();
    asker.bounce.tidy();
    asker.talk();
    owner.bounce.tidy();
    EXPECT_EQ(owner.bounce.promised(), credits);
    EXPECT_EQ(owner.bounce.bytes() + asker.bounce.bytes(), held);
  }
}

TEST(Bounce, ARequestThatTakesLongKeepsItsLane) {
  Owner owner;
  Asker asker(owner, 1);
  const auto transfer = asker.start(Direction::read, blocks(most_pieces, 500));
  asker.turn();
  for (int i = 0; i < 3; ++i) {
    asker.bounce.tidy();
    asker.talk();
    owner.bounce.tidy();
  }
  EXPECT_EQ(owner.bounce.promised(), credits);
  EXPECT_EQ(asker.bounce.promised(), 1U) << "for the answer";
  asker.run(*transfer);
  EXPECT_EQ(transfer->state(), State::done);
}

TEST(Bounce, WithoutMemoryForBuffersTransfersFail) {
  for (const bool at_owner : {false, true}) {
    Owner owner;
    Asker asker(owner, 1);
    Capability& record = (at_owner ? owner.endpoint : asker.endpoint).record;
    record.local_registration = true;  // which fails
    const auto transfer = asker.start(Direction::write, blocks(2, 500));
    asker.run(*transfer);
    ASSERT_TRUE(transfer->quiescent());
    EXPECT_EQ(transfer->error()->code(), at_owner ? Code::unavailable : Code::out_of_memory);
    EXPECT_EQ(asker.bounce.promised(), 0U);
    EXPECT_THAT(asker.endpoint.sent, IsEmpty());
    record.local_registration = false;
    asker.bounce.tidy();
    owner.bounce.tidy();
    expect_moved(asker, Direction::write, blocks(2, 500));
  }
}

TEST(Bounce, PeersTakeTurnsWhereThereAreTooFewBuffers) {
  constexpr std::size_t most = 4;  // of which two are for peers
  Owner owner(host_device(), most);
  Asker first(owner, 1), second(owner, 2), third(owner, 3);
  std::vector<std::shared_ptr<TransferState>> transfers;
  for (Asker* asker : {&first, &second, &third})
    for (const Direction direction : {Direction::write, Direction::read})
      transfers.push_back(asker->start(direction, blocks(20 * most_pieces, 500)));
  std::size_t promised = 0;
  const auto all_ended = [&] {
    return std::all_of(transfers.begin(), transfers.end(),
                       [](const auto& each) { return each->quiescent(); });
  };
  for (int turns = 0; turns < 10'000 && !all_ended(); ++turns)
    for (Asker* asker : {&first, &second, &third}) {
      asker->turn();
      asker->send();
      owner.bounce.progress();
      asker->receive();
      promised = std::max(promised, owner.bounce.promised());
    }
  for (const auto& each : transfers) EXPECT_EQ(each->state(), State::done);
  EXPECT_EQ(promised, most / 2);
  EXPECT_LE(owner.bounce.posted(), most);
}

TEST(Bounce, APeerThatDiesLetsOthersHaveItsBuffers) {
  Owner owner(host_device(), 2);
  Asker first(owner, 1), second(owner, 2);
  expect_moved(first, Direction::write, blocks(2, 500));
  EXPECT_EQ(owner.bounce.promised(), 1U);
  const auto waits = second.start(Direction::write, blocks(2, 500));
  for (int i = 0; i < 3; ++i) second.turn();
  EXPECT_THAT(second.endpoint.sent, IsEmpty());
  EXPECT_EQ(second.bounce.waiting(), 1U);
  owner.bounce.peer_died(*first.known_there->route_by_rail[0]);
  second.run(*waits);
  EXPECT_EQ(waits->state(), State::done);
}

TEST(Bounce, WhatWaitsForAPeersBuffersEndsWithItsTransfer) {
  Owner owner(host_device(), 2);
  Asker first(owner, 1), second(owner, 2);
  expect_moved(first, Direction::write, blocks(2, 500));
  const auto waits = second.start(Direction::write, blocks(2, 500));
  for (int i = 0; i < 3; ++i) second.turn();
  waits->end_early(State::cancelled, Error(Code::cancelled, "enough"));
  second.turn();
  EXPECT_TRUE(waits->quiescent());
  EXPECT_EQ(second.bounce.waiting(), 0U);
}

TEST(Bounce, ARefusalEndsWhatWaits) {
  Owner owner;
  Asker asker(owner, 1);
  const auto waits = asker.start(Direction::write, blocks(2, 500));
  asker.scheduler.pump();
  ASSERT_THAT(asker.told, SizeIs(1));
  asker.told.clear();
  asker.bounce.hear(*asker.known->route_by_rail[0], {BounceCredits::Step::given, 0, 0, 0});
  ASSERT_TRUE(waits->ended());
  EXPECT_EQ(waits->error()->code(), Code::unavailable);
  EXPECT_TRUE(waits->quiescent());
}

TEST(Bounce, CreditsThatNobodyAskedForAreNone) {
  Owner owner;
  Asker asker(owner, 1);
  using Step = BounceCredits::Step;
  Route& route = *asker.known->route_by_rail[0];
  for (const Step step : {Step::given, Step::wanted_back, Step::given_back})
    asker.bounce.hear(route, {step, 0, 0, 1000});
  asker.bounce.hear(route, {Step::wanted, 0, 77, 1});  // of a rail that the peer has not
  EXPECT_EQ(asker.bounce.promised(), 0U);
  EXPECT_THAT(asker.told, IsEmpty());
  for (int i = 0; i < 3; ++i) asker.bounce.hear(route, {Step::wanted, 0, 0, 1000});
  EXPECT_EQ(asker.bounce.promised(), credits);
}

/// An engine with two peers: the second one's address is 1.
class BounceWithTwoPeers : public testing::Test {
 protected:
  BounceWithTwoPeers() {
    second->route_by_rail[0]->addresses.at(0) = 1;
    asker.bounce.add_peer(second, *second->route_by_rail[0], 999);
  }
  Accelerator here;
  Owner owner;
  Asker asker{owner, 1, here};
  std::shared_ptr<PeerState> second = make_known(300, 1);
};

TEST_F(BounceWithTwoPeers, OneThatTakesNoRequestsHoldsUpNoOther) {
  asker.endpoint.full = {0};
  const auto waits = asker.start(Direction::write, blocks(most_pieces, 500));
  for (int i = 0; i < 3; ++i) asker.turn();
  EXPECT_EQ(here.lists, 1U);
  EXPECT_THAT(asker.endpoint.sent, IsEmpty());

  std::swap(asker.known, second);
  const auto goes = asker.start(Direction::write, blocks(most_pieces, 500));
  for (int i = 0; i < 3; ++i) asker.turn();
  ASSERT_THAT(asker.endpoint.sent, SizeIs(1));
  EXPECT_EQ(asker.endpoint.sent.front().to, 1U);
  asker.endpoint.sent.clear();
  asker.bounce.peer_died(*asker.known->route_by_rail[0]);
  EXPECT_EQ(goes->state(), State::failed);

  asker.endpoint.full.clear();
  asker.run(*waits);
  EXPECT_EQ(waits->state(), State::done);
}

TEST_F(BounceWithTwoPeers, WhatWaitsForRoomEndsWithItsTransferOrItsPeer) {
  asker.endpoint.full = {0};
  const auto other = asker.start(Direction::write, blocks(2 * most_pieces, 500));
  const auto unwanted = asker.start(Direction::write, blocks(2 * most_pieces, 500));
  for (int i = 0; i < 3; ++i) asker.turn();
  EXPECT_EQ(here.lists, credits);
  unwanted->cancel();
  EXPECT_FALSE(unwanted->quiescent());
  asker.turn();
  EXPECT_TRUE(unwanted->quiescent()) << "without any room";
  EXPECT_EQ(unwanted->state(), State::cancelled);
  EXPECT_THAT(unwanted->placed(), Each(Placed::none));
  EXPECT_FALSE(other->ended());
  asker.bounce.peer_died(*asker.known->route_by_rail[0]);
  EXPECT_TRUE(other->quiescent());
  EXPECT_EQ(other->state(), State::failed);
  EXPECT_FALSE(asker.bounce.has_work());
  EXPECT_THAT(asker.endpoint.sent, IsEmpty());
}

/// Refused once the bytes are in the buffer: certainly not sent.
TEST_F(BounceWithTwoPeers, WhatIsRefusedAfterTheCopiesIsLeftToOtherLanes) {
  const auto transfer = asker.start(Direction::write, blocks(most_pieces, 500));
  asker.endpoint.answer = {providers::PostStatus::failed, 5};
  for (int i = 0; i < 3; ++i) asker.turn();
  EXPECT_TRUE(transfer->quiescent());
  EXPECT_EQ(transfer->state(), State::failed) << "there are no others";
  EXPECT_EQ(transfer->error()->fabric_code(), 5);
  EXPECT_THAT(transfer->placed(), Each(Placed::none));
  EXPECT_EQ(transfer->own_report().retries, most_pieces);
}

TEST_F(BounceWithTwoPeers, AnAnswerToWhatWasNotSentIsHarmless) {
  asker.endpoint.full = {0};
  const auto transfer = asker.start(Direction::write, blocks(most_pieces, 500));
  for (int i = 0; i < 3; ++i) asker.turn();
  // Guesses: the number of a request is its place in the table, and how often places were taken.
  for (std::uint64_t uses = 0; uses < 5; ++uses)
    for (std::uint64_t place = 0; place < 5; ++place) {
      const BounceHead head(201, uses << 32 | place, 0, 0, 0, 3, 0, 0);
      asker.endpoint.arrive(std::as_bytes(std::span(&head, 1)));
    }
  asker.endpoint.full.clear();
  asker.run(*transfer);
  EXPECT_TRUE(transfer->quiescent());
  expect_moved(asker, Direction::write, blocks(10 * most_pieces, 500));
}

TEST(Bounce, ListsTakeASmallPartOfAMessage) {
  for (const std::uint64_t message :
       {0U, 1U, 64U, 100U, 1024U, 4096U, 8760U, 9000U, 65536U, 1U << 20, 1U << 28, 0xffff'ffffU}) {
    const std::uint64_t payload = Bounce::payload_bytes(message);
    const std::uint64_t list = bounce_pieces(payload) * sizeof(BouncePiece);
    if (payload > 0) {
      EXPECT_LE(sizeof(BounceHead) + list + payload, message);
    }
    EXPECT_GE(payload + 100 + message / 50, message);
    EXPECT_LE(bounce_pieces(payload), std::numeric_limits<std::uint16_t>::max());
  }
  EXPECT_EQ(bounce_pieces(256 << 10), 256U);
}

}  // namespace
}  // namespace weft::core::test
