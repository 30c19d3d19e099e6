// The whole policy of placement, by tables: what is opened over a NIC, which transfers their caller
// copies, which rails carry the rest, and in what parts.
#include "transfer/placement.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <vector>

namespace weft::core {
namespace {

constexpr std::uint64_t KiB = 1024, MiB = 1024 * KiB;

// Opening a NIC.

Capability sockets() {
  Capability record;
  record.max_message = 1 << 30;
  record.window = 384;
  record.tuning = {.chunk = 512 * KiB,
                   .window = 4,
                   .rails = 4,
                   .rails_sharing = 2,
                   .share = 128 * KiB,
                   .few_cores = {.window_on_host = 1, .one_core = true, .part = 128 * KiB}};
  return record;
}

Capability shared_memory() {
  Capability record;
  record.max_message = 1 << 30;
  record.window = 1024;
  record.maps_memory = true;
  record.tuning = {.chunk = 512 * KiB,
                   .window = 4,
                   .rails = 4,
                   .rails_sharing = 2,
                   .share = 32 * KiB,
                   .few_cores = {.one_for_mapped = true}};
  return record;
}

Capability nic() {
  Capability record;
  record.max_message = 1 << 30;
  record.window = 512;
  record.fills_alone = true;
  record.tuning = {.chunk = MiB, .window = 16, .share = 256 * KiB};
  return record;
}

TEST(RailPlan, RailsGoByTheCores) {
  struct Case {
    unsigned cores, sockets, memory, nic;
  };
  // Two rails of which each end has a core of its own take four cores.
  for (const Case& each :
       {Case{1, 1, 1, 1}, Case{2, 2, 2, 1}, Case{3, 2, 2, 1}, Case{4, 2, 2, 1}, Case{11, 2, 2, 1},
        Case{12, 3, 3, 1}, Case{16, 4, 4, 1}, Case{192, 4, 4, 1}}) {
    SCOPED_TRACE(each.cores);
    const RailOptions options{.cores = each.cores};
    EXPECT_EQ(plan_rails(sockets(), options).rails, each.sockets);
    EXPECT_EQ(plan_rails(shared_memory(), options).rails, each.memory);
    EXPECT_EQ(plan_rails(nic(), options).rails, each.nic);
  }
}

TEST(RailPlan, NoMoreRailsThanTheProviderIsWorth) {
  Capability two = sockets();
  two.tuning.rails = 2;
  two.tuning.rails_sharing = 1;
  for (const auto& [cores, rails] : {std::pair{1U, 1U}, {2U, 1U}, {4U, 2U}, {192U, 2U}})
    EXPECT_EQ(plan_rails(two, {.cores = cores}).rails, rails) << cores;
}

TEST(RailPlan, WhatTheOperatorSaysGoesBeforeAll) {
  EXPECT_EQ(plan_rails(nic(), {.rails = 3}).rails, 3U);
  EXPECT_EQ(plan_rails(sockets(), {.rails = 3, .cores = 2}).rails, 3U);
  EXPECT_EQ(plan_rails(nic(), {.chunk_bytes = 4 * KiB}).chunk, 4 * KiB);
  EXPECT_EQ(plan_rails(nic(), {.chunk_bytes = std::uint64_t{1} << 40}).chunk, 1U << 30);
  const Window window = plan_rails(nic(), {.window = 3}).window;
  EXPECT_EQ(window.operations, 3U);
  EXPECT_EQ(window.bytes, 3 * MiB);
  EXPECT_EQ(plan_rails(nic(), {.window = 1000}).window.operations, 256U) << "half of the queue";
  EXPECT_FALSE(plan_rails(shared_memory(), {.rails = 2, .cores = 2}).one_for_mapped);
}

TEST(RailPlan, WindowsHoldSoManyChunksAndAnEighthOnTop) {
  const Window window = plan_rails(nic(), {.cores = 8}).window;
  EXPECT_EQ(window.operations, 64U) << "a quarter of all";
  EXPECT_EQ(window.all_operations, 256U);
  EXPECT_EQ(window.bytes, 16 * MiB);
  EXPECT_EQ(window.spare_operations, 8U);
  EXPECT_EQ(window.spare_bytes, 2 * MiB);
  EXPECT_EQ(window.bytes_to(true), 16 * MiB);
  Capability tiny = nic();
  tiny.window = 1;
  EXPECT_EQ(plan_rails(tiny, {}).window.operations, 1U);
  EXPECT_EQ(plan_rails(tiny, {}).window.all_operations, 1U);
  EXPECT_EQ(plan_rails(tiny, {}).window.spare_operations, 1U);
}

TEST(RailPlan, OnFewCores) {
  const RailPlan few = plan_rails(sockets(), {.cores = 2});
  EXPECT_EQ(few.window.bytes_to(true), 512 * KiB);
  EXPECT_EQ(few.window.bytes_to(false), 2 * MiB);
  EXPECT_TRUE(few.one_core);
  EXPECT_EQ(few.part, 128 * KiB);
  EXPECT_EQ(few.share, 128 * KiB);
  EXPECT_EQ(plan_rails(sockets(), {.rails = 1, .cores = 2}).window.bytes_to(true), 2 * MiB)
      << "it is alone";
  EXPECT_EQ(plan_rails(sockets(), {.window = 3, .cores = 2}).window.bytes_to(true), 1536 * KiB);
  EXPECT_EQ(few.rails, 2U);
  EXPECT_EQ(plan_rails(sockets(), {.cores = 2, .polls = true}).rails, 1U);
  EXPECT_EQ(plan_rails(sockets(), {.cores = 8, .polls = true}).rails,
            plan_rails(sockets(), {.cores = 8}).rails);
  const RailPlan many = plan_rails(sockets(), {.cores = 4});
  EXPECT_EQ(many.window.bytes_to(true), 2 * MiB);
  EXPECT_FALSE(many.one_core);
  EXPECT_EQ(many.part, 0U);

  EXPECT_TRUE(plan_rails(shared_memory(), {.cores = 3}).one_for_mapped);
  EXPECT_FALSE(plan_rails(shared_memory(), {.cores = 4}).one_for_mapped);
}

// Inline copies.

constexpr std::uint64_t limit = 256 * KiB;
constexpr auto latency = Priority::latency, normal = Priority::normal, bulk = Priority::bulk;

/// Most bytes that the caller copies; 0: it copies nothing.
std::uint64_t most_inline(TransferShape shape, const Caller& caller,
                          const RailPlan& rail = plan_rails(shared_memory(), {.cores = 2})) {
  std::uint64_t most = 0;
  for (const std::uint64_t bytes : {limit / 4, limit, 4 * limit, 64 * limit}) {
    for (const std::uint64_t more : {0U, 1U}) {
      shape.bytes = bytes + more;
      const bool copies = copies_inline(shape, rail, caller) != InlineCopies::none;
      if (copies) most = shape.bytes;
    }
  }
  return most;
}

TEST(CopiesInline, GoesByClassAndSize) {
  struct Case {
    Priority priority;
    std::size_t rails;
    bool mapped, event, idle, prompt, drives;
    std::uint64_t most;
  };
  const bool yes = true, no = false;
  const Case cases[] = {
      // Mapped, over several rails. The columns: mapped, event, idle, prompt, drives.
      {latency, 2, yes, no, no, no, no, limit},
      {latency, 2, yes, no, yes, yes, no, limit},
      {normal, 2, yes, no, no, no, no, limit / 4},
      {normal, 2, yes, yes, yes, yes, no, limit / 4},
      {normal, 2, yes, no, yes, no, no, 4 * limit},
      {normal, 2, yes, no, no, yes, no, limit / 4},
      {normal, 2, yes, no, yes, yes, no, 64 * limit},
      {normal, 3, yes, no, yes, yes, no, 4 * limit},
      {bulk, 2, yes, no, yes, yes, no, 0},
      // Over one, whose thread helps.
      {latency, 1, yes, no, no, no, no, limit},
      {normal, 1, yes, no, no, no, no, limit},
      {normal, 1, yes, yes, no, no, no, limit / 4},
      {normal, 1, yes, no, yes, no, no, 4 * limit},
      {normal, 1, yes, no, yes, yes, no, 64 * limit},
      {bulk, 1, yes, no, yes, yes, no, 0},
      // By the kernel.
      {latency, 2, no, no, no, no, no, limit},
      {normal, 2, no, no, no, no, no, 0},
      {normal, 1, no, no, no, no, no, 0},
      {normal, 2, no, no, yes, yes, no, 4 * limit},
      {normal, 2, no, yes, yes, yes, no, 0},
      {bulk, 2, no, no, yes, yes, no, 0},
      // By a caller that drives the rails itself.
      {latency, 1, yes, no, no, no, yes, limit},
      {normal, 1, yes, yes, no, yes, yes, limit},
      {normal, 2, yes, no, yes, yes, yes, limit},
      {normal, 1, no, no, no, no, yes, limit},
      {bulk, 1, yes, no, yes, yes, yes, 0},
  };
  for (std::size_t i = 0; i < std::size(cases); ++i) {
    const Case& each = cases[i];
    const TransferShape shape{
        .priority = each.priority, .rails = each.rails, .mapped = each.mapped, .event = each.event};
    const Caller caller{
        .inline_bytes = limit, .drives = each.drives, .idle = each.idle, .prompt = each.prompt};
    EXPECT_EQ(most_inline(shape, caller), each.most) << "case " << i;
  }
}

TEST(CopiesInline, BelievesThePromptOnlyWhereItHasTo) {
  const RailPlan rail = plan_rails(shared_memory(), {.cores = 2});
  const Caller caller{.inline_bytes = limit, .idle = true, .prompt = true};
  TransferShape shape{.bytes = 4 * limit, .mapped = true};
  EXPECT_EQ(copies_inline(shape, rail, caller), InlineCopies::all);
  ++shape.bytes;
  EXPECT_EQ(copies_inline(shape, rail, caller), InlineCopies::on_trust);
}

TEST(CopiesInline, NothingThatHasToWaitOrThatTheRailCanNotMap) {
  const RailPlan rail = plan_rails(shared_memory(), {.cores = 2});
  const Caller caller{.inline_bytes = limit};
  const TransferShape good{.bytes = 1, .priority = latency, .mapped = true};
  const auto copies = [&](const TransferShape& shape, const Caller& by) {
    return copies_inline(shape, rail, by) != InlineCopies::none;
  };
  EXPECT_TRUE(copies(good, caller));
  struct Case {
    const char* what;
    void (*change)(TransferShape&);
  };
  for (const Case& each : {
           Case{"nothing", [](TransferShape& shape) { shape.bytes = 0; }},
           Case{"too many pieces", [](TransferShape& shape) { shape.pieces = 17; }},
           Case{"bounced", [](TransferShape& shape) { shape.transport = TransportKind::bounce; }},
           Case{"by a GPU",
                [](TransferShape& shape) { shape.transport = TransportKind::device_copy; }},
           Case{"waits for an event", [](TransferShape& shape) { shape.waits = true; }},
           Case{"too late", [](TransferShape& shape) { shape.in_time = false; }},
           Case{"parted", [](TransferShape& shape) { shape.parted = true; }},
       }) {
    TransferShape shape = good;
    each.change(shape);
    EXPECT_FALSE(copies(shape, caller)) << each.what;
  }
  EXPECT_FALSE(copies(good, {.inline_bytes = limit, .in_callback = true}));
  EXPECT_FALSE(copies(good, {.inline_bytes = 0}));
  EXPECT_EQ(copies_inline(good, plan_rails(nic(), {}), caller), InlineCopies::none);
}

TEST(CopiesInline, ASignalOrACheckFollowsWhatIsMappedAlone) {
  const RailPlan rail = plan_rails(shared_memory(), {.cores = 2});
  const Caller caller{.inline_bytes = limit, .idle = true};
  for (const Priority priority : {latency, normal}) {
    TransferShape shape{.bytes = 1, .priority = priority, .mapped = true, .followed = true};
    EXPECT_EQ(copies_inline(shape, rail, caller), InlineCopies::all);
    shape.mapped = false;
    EXPECT_EQ(copies_inline(shape, rail, caller), InlineCopies::none);
  }
}

TEST(CopiesInline, LimitsDoNotOverflow) {
  const RailPlan rail = plan_rails(shared_memory(), {.cores = 2});
  const auto all = std::numeric_limits<std::uint64_t>::max();
  const Caller caller{.inline_bytes = all, .idle = true, .prompt = true};
  EXPECT_EQ(copies_inline({.bytes = all / 2, .mapped = true}, rail, caller), InlineCopies::all);
  EXPECT_GE(waited_inline(caller), all / 2);
}

// Rails.

struct Choice {
  std::vector<std::size_t> rails;
  std::uint64_t part;
  bool even;
  bool operator==(const Choice&) const = default;
};

std::ostream& operator<<(std::ostream& out, const Choice& choice) {
  for (const std::size_t rail : choice.rails) out << rail << ' ';
  return out << "part " << choice.part << (choice.even ? " even" : "");
}

Choice chosen(const RailPlan& rail, std::uint64_t bytes, std::vector<RailLoad> loads,
              Priority priority = normal) {
  const TransferShape shape{.bytes = bytes, .priority = priority, .rails = loads.size()};
  const Placement placement = place(shape, rail, {.inline_bytes = limit}, loads);
  Choice choice{{}, placement.part, placement.even};
  for (std::size_t i = 0; i < placement.rails; ++i) choice.rails.push_back(loads[i].rail);
  return choice;
}

TEST(Place, OneRailForEachChunk) {
  const RailPlan rail = plan_rails(nic(), {});  // of 1 MiB
  const std::vector<RailLoad> idle = {{0}, {1}, {2}};
  EXPECT_EQ(chosen(rail, MiB, {{7}}), (Choice{{7}, MiB, false}));
  EXPECT_EQ(chosen(rail, 100 * MiB, {{7}}), (Choice{{7}, 100 * MiB, false}));
  EXPECT_EQ(chosen(rail, 0, idle), (Choice{{0}, 0, false}));
  EXPECT_EQ(chosen(rail, 2 * MiB - 1, idle), (Choice{{0}, 2 * MiB - 1, false}));
  EXPECT_EQ(chosen(rail, 2 * MiB, idle), (Choice{{0, 1}, MiB, true}));
  EXPECT_EQ(chosen(rail, 3 * MiB, idle), (Choice{{0, 1, 2}, MiB, true}));
  EXPECT_EQ(chosen(rail, 100 * MiB, idle), (Choice{{0, 1, 2}, 34952534, true}));
}

TEST(Place, OneForEachPartWhereNothingIsQueued) {
  const RailPlan rail = plan_rails(sockets(), {.cores = 2});  // chunks of 512, parts of 128 KiB
  EXPECT_EQ(chosen(rail, 256 * KiB - 1, {{0}, {1}}), (Choice{{0}, 256 * KiB - 1, false}));
  EXPECT_EQ(chosen(rail, 256 * KiB, {{0}, {1}}), (Choice{{0, 1}, 128 * KiB, true}));
  EXPECT_EQ(chosen(rail, 256 * KiB, {{0}, {1, false, 1}}), (Choice{{0}, 256 * KiB, false}));
  EXPECT_EQ(chosen(rail, MiB, {{0}, {1, false, 1}}), (Choice{{0, 1}, 512 * KiB, false}));
}

TEST(Place, ThoseWithTheLeastToDo) {
  const RailPlan rail = plan_rails(nic(), {});  // shares of 256 KiB
  EXPECT_EQ(chosen(rail, 1, {{0, false, 256 * KiB}, {1}}).rails, (std::vector<std::size_t>{1}));
  EXPECT_EQ(chosen(rail, 1, {{0, false, 256 * KiB - 1}, {1}}).rails, (std::vector<std::size_t>{0}))
      << "not worth another rail";
  EXPECT_EQ(chosen(rail, 2 * MiB, {{0, false, MiB}, {1, false, 3 * MiB}, {2}}),
            (Choice{{2, 0}, MiB, false}));
  // In the order of their indices where they have as much to do.
  EXPECT_EQ(chosen(rail, 2 * MiB, {{3}, {2}, {1}}).rails, (std::vector<std::size_t>{1, 2}));
  EXPECT_EQ(chosen(rail, 1, {{3}, {2}, {1}}).rails, (std::vector<std::size_t>{1}));
}

TEST(Place, WhatIsUrgentGoesByWhatIsInFlight) {
  const RailPlan rail = plan_rails(nic(), {});
  const std::vector<RailLoad> loads = {{0, false, 0, 5}, {1, false, 0, 2}, {2, false, MiB, 0}};
  EXPECT_EQ(chosen(rail, 1, loads, latency).rails, (std::vector<std::size_t>{1}));
  EXPECT_EQ(chosen(rail, 1, loads, normal).rails, (std::vector<std::size_t>{0}));
  EXPECT_EQ(chosen(rail, 1, loads, bulk).rails, (std::vector<std::size_t>{0}));
}

TEST(Place, RailsAsideOnlyWhereThereIsNoOther) {
  const RailPlan rail = plan_rails(nic(), {});
  EXPECT_EQ(chosen(rail, 1, {{0, true}, {1, false, 9 * MiB}}).rails, (std::vector<std::size_t>{1}));
  EXPECT_EQ(chosen(rail, 9 * MiB, {{0, true}, {1, false, 9 * MiB}, {2}}).rails,
            (std::vector<std::size_t>{2, 1}));
  EXPECT_EQ(chosen(rail, 9 * MiB, {{0, true}, {1, true}}).rails, (std::vector<std::size_t>{0, 1}));
  EXPECT_EQ(chosen(rail, 1, {{0, true, MiB}, {1, true}}).rails, (std::vector<std::size_t>{1}));
}

TEST(Place, AllRailsMakeFirstContactButThoseAside) {
  const RailPlan rail = plan_rails(nic(), {});
  const auto rails = [&](std::vector<RailLoad> loads, const Caller& caller = {}) {
    const Placement placement =
        place({.rails = loads.size(), .contact = true}, rail, caller, loads);
    EXPECT_FALSE(placement.posted_inline);
    return placement.rails;
  };
  EXPECT_EQ(rails({{0}, {1, false, 9 * MiB}, {2}}), 3U);
  EXPECT_EQ(rails({{0}, {1, true}, {2}}), 2U);
  EXPECT_EQ(rails({{0, true}, {1, true}}), 2U) << "there is no other";
  EXPECT_EQ(rails({{0}}, {.inline_bytes = limit, .drives = true}), 1U);
}

/// Each may be the only one that reaches some of it.
TEST(Place, AllRailsWhereSomeReachOnlyAPart) {
  const RailPlan rail = plan_rails(shared_memory(), {.cores = 8});
  for (const bool drives : {false, true}) {
    const Caller caller{.inline_bytes = limit, .drives = drives, .idle = true, .prompt = true};
    TransferShape shape{.bytes = 1, .priority = latency, .rails = 3, .mapped = true};
    EXPECT_EQ(copies_inline(shape, rail, caller), InlineCopies::all);
    shape.parted = true;
    EXPECT_EQ(copies_inline(shape, rail, caller), InlineCopies::none);
    for (const std::uint64_t bytes : {std::uint64_t{1}, 9 * MiB}) {
      shape.bytes = bytes;
      std::vector<RailLoad> loads = {{0}, {1, true}, {2, false, 9 * MiB}};
      const Placement placement = place(shape, rail, caller, loads);
      EXPECT_EQ(placement.rails, 3U);
      EXPECT_FALSE(placement.even);
      EXPECT_FALSE(placement.posted_inline);
      EXPECT_FALSE(placement.waiters_help);
      loads = {{0}, {1}};
      EXPECT_FALSE(place(shape, rail, caller, loads).even);
    }
  }
}

TEST(Place, ACallerThatDrivesPostsWhatIsSmall) {
  const RailPlan rail = plan_rails(sockets(), {.cores = 2});
  const Caller drives{.inline_bytes = limit, .drives = true};
  const auto posts = [&](TransferShape shape, const Caller& caller, std::size_t rails = 1) {
    std::vector<RailLoad> loads(rails);
    return place(shape, rail, caller, loads).posted_inline;
  };
  EXPECT_TRUE(posts({.bytes = limit, .priority = latency}, drives));
  EXPECT_FALSE(posts({.bytes = limit + 1, .priority = latency}, drives));
  EXPECT_TRUE(posts({.bytes = limit / 4}, drives));
  EXPECT_FALSE(posts({.bytes = limit / 4 + 1}, drives));
  EXPECT_FALSE(posts({.bytes = 1, .priority = bulk}, drives));
  EXPECT_TRUE(posts({.bytes = 1}, drives, 2)) << "one of them carries it";
  EXPECT_TRUE(posts({.bytes = 1, .transport = TransportKind::bounce}, drives));
  EXPECT_FALSE(posts({.bytes = 1, .transport = TransportKind::bounce, .staged = true}, drives));
  EXPECT_FALSE(posts({.bytes = 1, .transport = TransportKind::device_copy}, drives));
  EXPECT_FALSE(posts({.bytes = 1, .waits = true}, drives));
  EXPECT_FALSE(posts({.bytes = 1}, {.inline_bytes = limit, .drives = true, .in_callback = true}));
  EXPECT_FALSE(posts({.bytes = 1}, {.inline_bytes = limit}));
  EXPECT_TRUE(posts({.bytes = limit / 4}, {.inline_bytes = limit, .drives_rail = true}));
}

TEST(Place, ThreadsThatWaitHelpTheOnlyRailsThread) {
  const RailPlan rail = plan_rails(shared_memory(), {.cores = 2});
  const auto help = [&](TransferShape shape, Caller caller = {.inline_bytes = limit}) {
    std::vector<RailLoad> loads(shape.rails);
    return place(shape, rail, caller, loads).waiters_help;
  };
  const auto over = [](std::size_t rails, std::uint64_t bytes) {
    return TransferShape{.bytes = bytes, .priority = bulk, .rails = rails, .mapped = true};
  };
  EXPECT_FALSE(help(over(1, limit / 4))) << "too little is left";
  EXPECT_TRUE(help(over(1, limit / 4 + 1)));
  EXPECT_TRUE(help(over(1, limit + 1)));
  // One of two carries less than two chunks.
  EXPECT_FALSE(help(over(2, 1023 * KiB)));
  EXPECT_FALSE(help(over(2, 4 * limit))) << "two carry it";

  TransferShape shape = over(1, MiB);
  shape.pieces = 16;
  EXPECT_TRUE(help(shape));
  shape.pieces = 17;
  EXPECT_FALSE(help(shape)) << "pieces of less than 64 KiB";
  shape = over(1, MiB);
  EXPECT_FALSE(help(shape, {.inline_bytes = 0}));
  EXPECT_FALSE(help(shape, {.inline_bytes = limit, .drives = true}));
  EXPECT_FALSE(help(shape, {.inline_bytes = limit, .in_callback = true}));
  shape.mapped = false;
  EXPECT_FALSE(help(shape));
}

// Pulling chunks.

TEST(ChunksWithin, FillTheWindowAndStartNothingBeyondIt) {
  EXPECT_EQ(chunks_within(0, 8, 0, 400, 100), 4U);
  EXPECT_EQ(chunks_within(0, 3, 0, 400, 100), 3U);
  EXPECT_EQ(chunks_within(2, 3, 100, 400, 100), 1U);
  EXPECT_EQ(chunks_within(3, 3, 0, 400, 100), 0U);
  EXPECT_EQ(chunks_within(0, 3, 399, 400, 100), 1U) << "it starts within";
  EXPECT_EQ(chunks_within(0, 3, 400, 400, 100), 0U);
}

TEST(ChunksATurn, AreNoMoreThanARailsPart) {
  EXPECT_EQ(chunks_a_turn(1000, 1, 100, 8), 8U) << "alone";
  EXPECT_EQ(chunks_a_turn(1000, 2, 100, 8), 5U);
  EXPECT_EQ(chunks_a_turn(1000, 4, 100, 8), 2U);
  EXPECT_EQ(chunks_a_turn(10000, 2, 100, 8), 8U);
  EXPECT_EQ(chunks_a_turn(10, 2, 100, 8), 1U) << "at least one";
}

}  // namespace
}  // namespace weft::core
