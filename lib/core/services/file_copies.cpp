#include "services/file_copies.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "base/leak.hpp"
#include "device/file/disk.hpp"

namespace weft::core {
namespace {

/// Both segments, for as long as this lives.
struct InUse {
  std::shared_ptr<SegmentState> to, from;
  Entered use_of_to{to->users()}, use_of_from{from->users()};
  Entered copy_of_to{to->copies()}, copy_of_from{from->copies()};

  explicit operator bool() const { return use_of_to && use_of_from && copy_of_to && copy_of_from; }
};

bool within(std::uint64_t offset, std::uint64_t length, const SegmentState& segment) {
  return length <= segment.size() && offset <= segment.size() - length;
}

Result<void> leaves(std::uint64_t offset, std::uint64_t length, const SegmentState& segment,
                    std::string_view way) {
  return fail(Code::invalid_argument,
              fmt::format("{} bytes at {} leave the segment that is copied {}, which has {} bytes",
                          length, offset, way, segment.size()));
}

Result<void> check(const SegmentState& to, const SegmentState& from, std::span<const Pair> pairs) {
  const bool into_file = is_file(to.place().kind), out_of_file = is_file(from.place().kind);
  const SegmentState& other = into_file ? from : to;
  if (into_file == out_of_file || other.place().kind != MemoryKind::host)
    return fail(Code::unsupported,
                "copies within an engine are between a file and the CPU's memory; others go "
                "through a peer");
  if (to.read_only())
    return fail(Code::permission_denied, "the segment may be read and not written");
  for (const Pair& each : pairs) {
    if (!within(each.local, each.length, to)) return leaves(each.local, each.length, to, "into");
    if (!within(each.remote, each.length, from))
      return leaves(each.remote, each.length, from, "from");
  }
  return {};
}

/// The addresses of the pieces.
std::vector<Copy> copies_of(const SegmentState& to, const SegmentState& from,
                            std::span<const Pair> pairs) {
  std::vector<Copy> copies;
  copies.reserve(pairs.size());
  for (const Pair& each : pairs)
    if (each.length > 0)
      copies.push_back({to.address() + each.local, from.address() + each.remote, each.length});
  return copies;
}

}  // namespace

Result<std::unique_ptr<FileCopyState>> FileCopyState::begin(
    const std::shared_ptr<SegmentState>& to, const std::shared_ptr<SegmentState>& from,
    std::span<const Pair> pairs) {
  if (auto allowed = check(*to, *from, pairs); !allowed) return fail(std::move(allowed.error()));
  std::unique_ptr<FileCopyState> state(new FileCopyState);
  const std::vector<Copy> copies = copies_of(*to, *from, pairs);
  if (copies.empty()) return state;
  auto in_use = std::make_shared<InUse>(InUse{to, from});
  if (!*in_use) return fail(Code::closed, "the segment is being released");
  const SegmentState& of_file = is_file(to->place().kind) ? *to : *from;
  const auto& disk = static_cast<const Disk&>(of_file.device());
  state->path_ = disk.find(of_file.address())->path();
  state->queue_ = disk.copies();
  auto begun = state->queue_->begin(copies, std::move(in_use));
  if (!begun) return fail(std::move(begun.error()));
  state->copy_ = std::move(*begun);
  return state;
}

FileCopyState::~FileCopyState() {
  if (!copy_) return;
  if (forked())
    leak(std::pair(std::move(queue_), std::move(copy_)));  // the parent's
  else if (!quiescent())
    cancel();
}

bool FileCopyState::ended() const {
  return !copy_ || forked() || queue_->look(copy_).result.has_value();
}

bool FileCopyState::quiescent() const {
  return !copy_ || forked() || queue_->look(copy_).over;
}

void FileCopyState::cancel() {
  if (copy_ && !forked()) queue_->give_up(copy_);
}

Result<void> FileCopyState::wait(SharedQueue::Until until, Deadline deadline) const {
  if (forked()) return fail(forked_error());
  if (!copy_) return {};
  const auto now = queue_->wait(copy_, until, deadline);
  if (now.reached(until)) return *now.result;
  return fail(Code::timed_out,
              fmt::format("file '{}': its device did not do it by the deadline", path_));
}

Result<void> wait_for_copies(SegmentState& segment, Deadline deadline) {
  // Nobody else may look at them.
  constexpr auto between_looks = std::chrono::milliseconds(10);
  segment.copies().close();
  while (!segment.copies().wait_idle(
      Deadline::at(std::min(deadline.when(), Deadline::in(between_looks).when())))) {
    if (deadline.passed()) return fail(Code::quarantined, "a copy of a file is still under way");
    for (const Disk* disk : Disk::all()) disk->serve_copies();
  }
  return {};
}

Result<void> copy_by_file(const std::shared_ptr<SegmentState>& to,
                          const std::shared_ptr<SegmentState>& from, std::span<const Pair> pairs,
                          Deadline deadline) {
  auto copy = FileCopyState::begin(to, from, pairs);
  if (!copy) return fail(std::move(copy.error()));
  return (*copy)->wait(deadline);
}

}  // namespace weft::core
