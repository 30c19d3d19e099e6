#include "transfer/placement.hpp"

#include <algorithm>
#include <limits>
#include <tuple>

namespace weft::core {
namespace {

constexpr std::uint64_t KiB = 1024;

std::uint64_t times(std::uint64_t bytes, std::uint64_t factor) {
  return std::min(bytes, std::numeric_limits<std::uint64_t>::max() / factor) * factor;
}

// Opening a NIC.

/// Rails that are worth a thread each where CPUs copy what they carry: two where each end has a
/// core of its own, and more as long as the ends on both sides leave half of the cores to others.
unsigned rails_worth(unsigned cores) {
  return cores < 4 ? 1 : std::max(cores / 4, 2U);
}

/// The ends of two rails on this machine have less than a core each.
bool few_cores(const RailOptions& options) {
  return rails_worth(options.cores) == 1;
}

unsigned rails_of(const Capability& record, const RailOptions& options) {
  if (options.rails > 0) return options.rails;
  const Tuning& best = record.tuning;
  if (options.polls && few_cores(options) && best.few_cores.one_core) return 1;
  return std::max(std::min(rails_worth(options.cores), best.rails),
                  std::min(options.cores, best.rails_sharing));
}

std::uint64_t chunk_of(const Capability& record, const RailOptions& options) {
  return options.chunk_bytes > 0 ? std::min(options.chunk_bytes, record.max_message)
                                 : record.tuning.chunk;
}

/// All peers together may fill the provider's queue, with room left for messages, and one of them a
/// quarter of that; large chunks stop at as many bytes as were measured to be enough.
Window window_of(const Capability& record, const RailOptions& options, bool alone,
                 std::uint64_t chunk) {
  const auto at_least_one = [](std::size_t count) { return std::max<std::size_t>(1, count); };
  const Tuning& best = record.tuning;
  const std::size_t chunks = options.window > 0 ? options.window : best.window;
  Window window;
  window.all_operations = at_least_one(record.window / 2);
  window.operations = std::min(
      options.window > 0 ? options.window : at_least_one(record.window / 8), window.all_operations);
  window.bytes = chunks * chunk;
  if (options.window == 0 && !alone && few_cores(options))
    window.bytes_on_host = best.few_cores.window_on_host * chunk;
  // A little on top rather than taken away: without anything urgent the others lose nothing.
  window.spare_operations = at_least_one(window.operations / 8);
  window.spare_bytes = at_least_one(chunks / 8) * chunk;
  return window;
}

}  // namespace

RailPlan plan_rails(const Capability& record, const RailOptions& options) {
  const Tuning::FewCores few = few_cores(options) ? record.tuning.few_cores : Tuning::FewCores{};
  RailPlan plan;
  plan.rails = rails_of(record, options);
  plan.one_for_mapped = few.one_for_mapped && options.rails == 0;
  plan.one_core = few.one_core;
  plan.maps_memory = record.maps_memory;
  plan.chunk = chunk_of(record, options);
  plan.share = std::max<std::uint64_t>(1, record.tuning.share);
  plan.part = few.part;
  plan.window = window_of(record, options, plan.rails == 1, plan.chunk);
  return plan;
}

namespace {

// Inline copies.

/// Heuristic: the caller waits for it, and no other thread could use the time.
bool waits_for_each(const TransferShape& shape, const Caller& caller) {
  if (shape.priority != Priority::normal) return false;
  return caller.drives || (!shape.event && caller.idle);
}

/// Nothing has to be waited for first, and the rails can do what their caller asks for.
bool caller_may_copy(const TransferShape& shape, const RailPlan& rail, const Caller& caller) {
  return shape.bytes > 0 && shape.transport == TransportKind::one_sided && !shape.waits &&
         shape.in_time && !shape.parted && rail.maps_memory && !caller.in_callback;
}

/// Of mapped memory, whatever else is under way: over one rail its thread helps the caller, and no
/// other thread would copy.
std::uint64_t always_mapped(const TransferShape& shape, const Caller& caller) {
  const bool helped = shape.rails == 1 && shape.priority == Priority::normal && !shape.event;
  return helped ? caller.inline_bytes : always_inline(shape.priority, caller.inline_bytes);
}

/// Where the kernel copies, no waiter helps the caller, nor the rail's thread: it saves no more
/// than to hand it over, and that only if nothing follows.
std::uint64_t most_by_kernel(const TransferShape& shape, const Caller& caller) {
  if (shape.followed) return 0;
  if (shape.priority == Priority::latency) return caller.inline_bytes;
  return waits_for_each(shape, caller) ? waited_inline(caller) : 0;
}

std::uint64_t most_mapped(const TransferShape& shape, const Caller& caller) {
  const std::uint64_t always = always_mapped(shape, caller);
  return waits_for_each(shape, caller) ? std::max(always, waited_inline(caller)) : always;
}

/// A prompt caller loses nothing by a submit() that takes as long as the wait would. With a thread
/// that polls to help it, it is no slower than two rails' threads.
std::uint64_t most_on_trust(const TransferShape& shape, const Caller& caller) {
  const bool trusted = shape.mapped && waits_for_each(shape, caller) && caller.prompt &&
                       !caller.drives && shape.rails <= 2;
  return trusted ? times(caller.inline_bytes, 64) : 0;
}

// Rails.

/// No other transfer that goes before it waits on any of them.
bool idle(std::span<const RailLoad> loads) {
  return std::all_of(loads.begin(), loads.end(),
                     [](const RailLoad& load) { return load.queued == 0; });
}

/// How many rails so many bytes are worth: one for each chunk, or for less where they meet no other
/// transfer. Each rail in use takes a core on both sides.
std::uint64_t rails_wanted(const TransferShape& shape, const RailPlan& rail,
                           std::span<const RailLoad> loads) {
  if (shape.contact) return loads.size();
  const std::uint64_t chunks = shape.bytes / rail.chunk;
  if (chunks > 1 || rail.part == 0) return chunks;
  return idle(loads) ? shape.bytes / rail.part : chunks;
}

/// Those with the least to do come first, in steps of what is worth another rail. What is urgent
/// goes by what is in flight, which it can't overtake. Each may be the only one for some part.
std::size_t choose_rails(const TransferShape& shape, const RailPlan& rail,
                         std::span<RailLoad> loads) {
  if (loads.size() == 1 || shape.parted) return loads.size();
  const auto before = [&](const RailLoad& a, const RailLoad& b) {
    const auto key = [&](const RailLoad& load) {
      const bool urgent = shape.priority == Priority::latency;
      return std::tuple(load.aside, load.queued / rail.share, urgent ? load.in_flight : 0,
                        load.rail);
    };
    return key(a) < key(b);
  };
  const std::uint64_t wanted = rails_wanted(shape, rail, loads);
  if (wanted <= 1) {
    std::iter_swap(loads.begin(), std::min_element(loads.begin(), loads.end(), before));
    return 1;
  }
  std::sort(loads.begin(), loads.end(), before);
  const auto aside =
      std::find_if(loads.begin(), loads.end(), [](const RailLoad& load) { return load.aside; });
  const auto usable =
      static_cast<std::size_t>((aside == loads.begin() ? loads.end() : aside) - loads.begin());
  return std::min<std::size_t>(wanted, usable);
}

/// What is small goes out before submit() returns, if its caller makes the rail's steps: no NIC's
/// provider blocks.
bool posts_inline(const TransferShape& shape, const Caller& caller, std::size_t rails) {
  const bool by_device = shape.staged || shape.transport == TransportKind::device_copy;
  return (caller.drives || caller.drives_rail) && rails == 1 && !shape.contact && !by_device &&
         !shape.waits && !caller.in_callback &&
         shape.bytes <= always_inline(shape.priority, caller.inline_bytes);
}

/// Threads that wait help the thread of a transfer's only rail: several rails' threads need the
/// memory's whole bandwidth. Of small pieces two threads would often wait for each other, and of
/// small transfers too little is left once a thread waits.
bool waiters_help(const TransferShape& shape, const RailPlan& rail, const Caller& caller,
                  std::size_t rails) {
  constexpr std::uint64_t least_pieces = 64 * KiB;
  const std::uint64_t least = shape.rails == 1
                                  ? always_inline(Priority::normal, caller.inline_bytes)
                                  : waited_inline(caller);
  return rails == 1 && !caller.drives && shape.mapped && caller.inline_bytes > 0 &&
         shape.bytes > least && shape.bytes / shape.pieces >= least_pieces &&
         caller_may_copy(shape, rail, caller);
}

}  // namespace

std::uint64_t always_inline(Priority priority, std::uint64_t inline_bytes) {
  switch (priority) {
    case Priority::latency:
      return inline_bytes;
    case Priority::normal:
      return inline_bytes / 4;
    case Priority::bulk:
      break;
  }
  return 0;
}

std::uint64_t waited_inline(const Caller& caller) {
  return caller.drives ? caller.inline_bytes : times(caller.inline_bytes, 4);
}

InlineCopies copies_inline(const TransferShape& shape, const RailPlan& rail, const Caller& caller) {
  constexpr std::size_t most_pieces = 16;  // the deadline would pass unseen between more
  if (shape.pieces > most_pieces || !caller_may_copy(shape, rail, caller))
    return InlineCopies::none;
  const std::uint64_t most =
      shape.mapped ? most_mapped(shape, caller) : most_by_kernel(shape, caller);
  if (shape.bytes <= most) return InlineCopies::all;
  return shape.bytes <= most_on_trust(shape, caller) ? InlineCopies::on_trust : InlineCopies::none;
}

Placement place(const TransferShape& shape, const RailPlan& rail, const Caller& caller,
                std::span<RailLoad> loads) {
  Placement placement;
  placement.rails = choose_rails(shape, rail, loads);
  placement.part = (shape.bytes + placement.rails - 1) / placement.rails;
  placement.even = placement.rails > 1 && !shape.parted && idle(loads.first(placement.rails));
  placement.posted_inline = posts_inline(shape, caller, placement.rails);
  placement.waiters_help = waiters_help(shape, rail, caller, placement.rails);
  return placement;
}

std::size_t chunks_within(std::size_t operations, std::size_t most_operations, std::uint64_t bytes,
                          std::uint64_t most_bytes, std::uint64_t chunk) {
  if (operations >= most_operations || bytes >= most_bytes) return 0;
  const std::uint64_t chunks = std::max<std::uint64_t>(1, (most_bytes - bytes) / chunk);
  return std::min<std::size_t>(chunks, most_operations - operations);
}

std::size_t chunks_a_turn(std::uint64_t bytes, std::size_t takers, std::uint64_t chunk,
                          std::size_t most) {
  if (takers == 1) return most;
  return static_cast<std::size_t>(std::clamp<std::uint64_t>(bytes / takers / chunk, 1, most));
}

TurnShare share_of_turn(std::uint64_t bytes, std::uint64_t pieces, std::size_t takers,
                        std::uint64_t chunk, std::size_t most) {
  if (takers == 1) return {most, std::numeric_limits<std::uint64_t>::max()};
  const std::size_t whole = chunks_a_turn(bytes, takers, chunk, most);
  return {std::max(whole, chunks_a_turn(pieces, takers, 1, most)), whole * chunk};
}

}  // namespace weft::core
