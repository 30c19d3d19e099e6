#include "scale/work.hpp"

#include <utility>

namespace weft::perf::work {
namespace {

/// Puts a value where it is collected, or gives its error.
template <typename T>
Result<void> keep(Result<T>&& made, std::vector<T>& into) {
  return std::move(made).map([&](T&& value) { into.push_back(std::move(value)); });
}

Result<void> drive(Engine& engine, const Transfer& transfer) {
  while (transfer.state() == State::active)
    if (auto progressed = engine.progress(); !progressed)
      return fail(std::move(progressed.error()));
  if (transfer.state() == State::done) return {};
  return fail(
      transfer.report().error.value_or(Error(Code::internal, "it failed, and says nothing")));
}

}  // namespace

[[gnu::noinline]] Result<void> connect(Engine& engine, std::span<const std::string> addresses,
                                       Deadline deadline, std::vector<Peer>& into) {
  for (const std::string& address : addresses)
    if (auto kept = keep(engine.connect(address, deadline), into); !kept) return kept;
  return {};
}

[[gnu::noinline]] Result<void> lookup(std::span<const Peer> peers, const std::string& name,
                                      Deadline deadline, std::vector<Remote>& into) {
  for (const Peer& peer : peers)
    if (auto kept = keep(peer.lookup(name, deadline), into); !kept) return kept;
  return {};
}

[[gnu::noinline]] Result<void> add(Engine& engine, std::byte* memory, std::size_t bytes,
                                   std::size_t count, std::vector<Segment>& into) {
  for (std::size_t i = 0; i < count; ++i)
    if (auto kept = keep(engine.add(Memory::adopt(memory + i * bytes, bytes)), into); !kept)
      return kept;
  return {};
}

[[gnu::noinline]] Result<void> grant(std::span<Segment> segments, std::vector<Grant>& into) {
  for (Segment& segment : segments)
    if (auto kept = keep(segment.grant({}, Rights::read_write), into); !kept) return kept;
  return {};
}

[[gnu::noinline]] Result<void> import(Engine& engine, std::span<const Blob> grants,
                                      std::vector<Remote>& into) {
  for (const Blob& blob : grants)
    if (auto kept = keep(engine.import(blob), into); !kept) return kept;
  return {};
}

[[gnu::noinline]] Result<void> prepare(Engine& engine, std::span<const Segment> segments,
                                       std::span<const Remote> remotes, std::span<const Pair> pairs,
                                       std::vector<Prepared>& into) {
  for (std::size_t i = 0; i < remotes.size(); ++i) {
    const Segment& local = segments[segments.size() == 1 ? 0 : i];
    if (auto kept = keep(engine.prepare(local, remotes[i], Direction::write, pairs), into); !kept)
      return kept;
  }
  return {};
}

[[gnu::noinline]] Result<void> carry(Engine& engine, std::span<const Prepared> prepared,
                                     std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    const auto transfer = engine.submit(prepared[i % prepared.size()]);
    if (!transfer) return fail(transfer.error());
    if (auto ended = drive(engine, *transfer); !ended) return ended;
  }
  return {};
}

[[gnu::noinline]] Result<void> carry_together(Engine& engine, std::span<const Prepared> prepared,
                                              std::size_t count) {
  std::vector<Transfer> transfers;
  transfers.reserve(count);
  for (std::size_t i = 0; i < count; ++i)
    if (auto kept = keep(engine.submit(prepared[i % prepared.size()]), transfers); !kept)
      return kept;
  for (const Transfer& each : transfers)
    if (auto ended = drive(engine, each); !ended) return ended;
  return {};
}

[[gnu::noinline]] Result<void> look(Engine& engine, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i)
    if (auto progressed = engine.progress(); !progressed)
      return fail(std::move(progressed.error()));
  return {};
}

[[gnu::noinline]] Result<void> release(std::span<Segment> segments, Deadline deadline) {
  for (Segment& segment : segments)
    if (auto released = segment.release(deadline); !released) return released;
  return {};
}

}  // namespace weft::perf::work
