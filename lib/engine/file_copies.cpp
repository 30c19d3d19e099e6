#include "engine/file_copies.hpp"

#include <fmt/format.h>

#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/detached_thread.hpp"
#include "base/leak.hpp"
#include "device/file/disk.hpp"

namespace weft::core {
namespace {

/// Whose memory something touches, for as long as this lives.
struct UnderWay {
  std::shared_ptr<SegmentState> to, from;
  Entered use_of_to, use_of_from;
  std::unique_ptr<CopyQueue> queue;
  std::uint64_t number = 0;

  /// How it ended, once it has. `silent` is set where the drive does not answer.
  std::optional<Result<void>> look(std::optional<Error>& silent) {
    for (CopyQueue::News& each : queue->news()) {
      if (each.over)
        return each.error ? Result<void>(fail(std::move(*each.error))) : Result<void>();
      silent = std::move(each.error);
    }
    return std::nullopt;
  }
};

Result<void> check(const SegmentState& to, const SegmentState& from, std::span<const Pair> pairs) {
  const bool into_file = is_file(to.place().kind), out_of_file = is_file(from.place().kind);
  const SegmentState& other = into_file ? from : to;
  if (into_file == out_of_file || other.place().kind != MemoryKind::host)
    return fail(Code::unsupported,
                "copies within an engine are between a file and the CPU's memory; others go "
                "through a peer");
  if (to.read_only())
    return fail(Code::permission_denied, "the segment may be read and not written");
  const auto within = [](std::uint64_t offset, std::uint64_t length, const SegmentState& segment) {
    return length <= segment.size() && offset <= segment.size() - length;
  };
  for (const Pair& each : pairs)
    if (!within(each.local, each.length, to) || !within(each.remote, each.length, from))
      return fail(Code::invalid_argument, fmt::format("{} bytes from {} to {} leave a segment",
                                                      each.length, each.remote, each.local));
  return {};
}

/// Until the drive answers, both segments are in use.
void leave_to_the_drive(std::unique_ptr<UnderWay> copy) {
  const std::shared_ptr<UnderWay> kept = std::move(copy);
  const auto wait = [kept] {
    // A drive can't be waited for until a deadline, and may never answer.
    constexpr auto pause = std::chrono::milliseconds(10);
    std::optional<Error> silent;
    while (!kept->look(silent)) std::this_thread::sleep_for(pause);
  };
  if (!start_detached(wait)) leak(kept);
}

}  // namespace

Result<void> copy_by_file(const std::shared_ptr<SegmentState>& to,
                          const std::shared_ptr<SegmentState>& from, std::span<const Pair> pairs,
                          Deadline deadline) {
  if (auto allowed = check(*to, *from, pairs); !allowed) return allowed;
  std::vector<Copy> copies;
  for (const Pair& each : pairs)
    if (each.length > 0)
      copies.push_back({to->address() + each.local, from->address() + each.remote, each.length});
  if (copies.empty()) return {};
  auto copy = std::make_unique<UnderWay>(
      UnderWay{to, from, Entered(to->users()), Entered(from->users()), nullptr});
  if (!copy->use_of_to || !copy->use_of_from)
    return fail(Code::closed, "the segment is being released");
  const SegmentState& of_file = is_file(to->place().kind) ? *to : *from;
  const auto& disk = static_cast<const Disk&>(of_file.device());
  const std::string path = disk.find(of_file.address())->path();
  auto queue = disk.open_queue();
  if (!queue) return fail(std::move(queue.error()));
  copy->queue = std::move(*queue);
  const auto begun = copy->queue->copy(copies, Priority::normal);
  if (begun.error) return fail(*begun.error);
  constexpr auto keen = std::chrono::microseconds(20), pause = std::chrono::microseconds(50);
  const auto since = Clock::now();
  std::optional<Error> silent;
  while (true) {
    if (auto over = copy->look(silent)) return std::move(*over);
    if (silent || deadline.passed()) break;
    if (Clock::now() - since < keen)
      std::this_thread::yield();
    else
      std::this_thread::sleep_for(std::min<Nanoseconds>(pause, deadline.left()));
  }
  leave_to_the_drive(std::move(copy));
  if (silent) return fail(std::move(*silent));
  return fail(Code::timed_out,
              fmt::format("file '{}': its device did not do it by the deadline", path));
}

}  // namespace weft::core
