// What is done many times over. Each is a function of its own, so that callgrind can be told to
// count what happens within it.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>
#include <weft/engine.hpp>

namespace weft::perf::work {

Result<void> connect(Engine& engine, std::span<const std::string> addresses, Deadline deadline,
                     std::vector<Peer>& into);
/// The grant that each peer has published under that name.
Result<void> lookup(std::span<const Peer> peers, const std::string& name, Deadline deadline,
                    std::vector<Remote>& into);
/// `count` segments of so many bytes, one behind the other.
Result<void> add(Engine& engine, std::byte* memory, std::size_t bytes, std::size_t count,
                 std::vector<Segment>& into);
Result<void> grant(std::span<Segment> segments, std::vector<Grant>& into);
Result<void> import(Engine& engine, std::span<const Blob> grants, std::vector<Remote>& into);
/// Each pair of a segment and a grant, or the one segment with each grant.
Result<void> prepare(Engine& engine, std::span<const Segment> segments,
                     std::span<const Remote> remotes, std::span<const Pair> pairs,
                     std::vector<Prepared>& into);
/// So many transfers of those prepared, in turn, each driven to its end before the next.
Result<void> carry(Engine& engine, std::span<const Prepared> prepared, std::size_t count);
/// The same, all submitted before the first one ends.
Result<void> carry_together(Engine& engine, std::span<const Prepared> prepared, std::size_t count);
/// So many rounds of progress.
Result<void> look(Engine& engine, std::size_t count);
Result<void> release(std::span<Segment> segments, Deadline deadline);

}  // namespace weft::perf::work
