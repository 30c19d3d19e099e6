#include "device/file/file_queue.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/leak.hpp"
#include "device/file/file_errors.hpp"

namespace weft::core {
namespace {

// More in one read or write gains nothing: drives cut it up.
constexpr std::size_t most_in_one = std::size_t{1} << 20;
// Free buffers that are kept, in each size.
constexpr std::size_t most_free = 16;
// Before what the kernel had no memory for is begun again. Guess.
constexpr auto pause_of_refused = std::chrono::milliseconds(1);

bool whole_pages(std::uint64_t value) {
  return value % file_page == 0;
}

bool whole_pages(const std::byte* address) {
  return whole_pages(reinterpret_cast<std::uintptr_t>(address));
}

std::uint64_t place_of(const OpenFile& file, const Copy& copy, bool write) {
  return file.at(static_cast<const std::byte*>(write ? copy.to : copy.from));
}

/// Why not, where blocks are checked and one would be cut.
std::optional<Error> check_whole(const OpenFile& file, std::span<const Copy> copies, bool write) {
  if (file.sums() == nullptr) return std::nullopt;
  for (const Copy& each : copies) {
    const Range bytes{place_of(file, each, write), each.bytes};
    if (!file.sums()->whole(bytes))
      return Error(
          Code::invalid_argument,
          fmt::format("file '{}' is checked in blocks of {} bytes: {} bytes from {} on are "
                      "no whole blocks, or bounce_buffer_bytes cut one",
                      file.path(), file.sums()->block(), bytes.length, bytes.offset));
  }
  return std::nullopt;
}

}  // namespace

FileQueue::FileQueue(const Disk& disk, std::unique_ptr<IoChannel> channel, Of of)
    : disk_(disk), of_(of), state_(std::make_unique<State>()) {
  state_->channel = std::move(channel);
}

FileQueue::~FileQueue() {
  // The kernel may read and write these buffers for as long as the drive is silent.
  if (state_->under_way > state_->put_off.size()) {
    leak(std::move(state_));
    return;
  }
  for (const Part* part : state_->put_off) leave(*part);
  for (const auto& [number, request] : state_->requests)
    if (request.silent) --disk_.silent();
}

CopyQueue::Begun FileQueue::copy(std::span<const Copy> copies, Priority priority) {
  Begun begun;
  const Copy& first = copies.front();
  auto target = disk_.find(first.to);
  const bool write = target != nullptr;
  auto file = write ? std::move(target) : disk_.find(first.from);
  if (!file) {
    begun.error = Error(Code::internal, "the copy is not of a file of this device's");
    return begun;
  }
  if (disk_.silent() > 0) {
    begun.error = file->silent();
    return begun;
  }
  if (auto error = check_whole(*file, copies, write)) {
    begun.error = std::move(error);
    return begun;
  }
  Request& request = state_->requests[++begun_];
  request.number = begun_;
  request.file = std::move(file);
  request.priority = priority;
  request.since = Clock::now();
  for (const Copy& each : copies) cut(request, each, write);
  begun.copies = copies.size();
  begun.number = request.number;
  request.waiting = request.parts.size();
  for (Part& part : request.parts) state_->waiting[index_of(priority)].push_back(&part);
  start();
  return begun;
}

/// Into what goes through the page cache and what does not, in parts of a handy size.
void FileQueue::cut(Request& request, const Copy& copy, bool write) {
  const OpenFile& file = *request.file;
  auto* memory = static_cast<std::byte*>(write ? const_cast<void*>(copy.from) : copy.to);
  std::uint64_t at = place_of(file, copy, write);
  const std::uint64_t end = at + copy.bytes;
  const bool direct = file.direct();
  const std::uint64_t most = std::max<std::uint64_t>(most_in_one, file.options().checked_block);
  while (at < end) {
    std::uint64_t until = std::min(end, at + most);
    bool whole = false;
    if (direct) {
      const std::uint64_t page = at / file_page * file_page;
      if (page != at)
        until = std::min(end, page + file_page);
      else if (until / file_page * file_page > at)
        until = until / file_page * file_page, whole = true;
    }
    Part& part = request.parts.emplace_back();
    part.request = &request;
    part.direct = whole;
    part.memory = memory;
    part.bytes = until - at;
    part.at = at;
    part.io = {file.fd(whole), write, file.options().durable, memory, part.bytes, at, &part, 0};
    memory += part.bytes;
    at = until;
  }
}

/// What there is room for, in the order of the classes. Parts whose blocks are others' at the
/// moment are passed by, but by none of the same blocks.
void FileQueue::start() {
  std::vector<const Part*> passed;
  bool short_of_room = false;
  for (auto& waiting : state_->waiting) {
    auto next = waiting.begin();
    while (next != waiting.end()) {
      Part& part = **next;
      const Started started = may_pass(part, passed) ? start(part) : Started::blocked;
      if (started == Started::no_room) {
        short_of_room = true;
        break;
      }
      if (started == Started::blocked) passed.push_back(&part);
      next = started == Started::yes ? waiting.erase(next) : next + 1;
    }
  }
  state_->channel->flush();
  if (short_of_room && of_ == Of::rail) disk_.serve_copies();
}

bool FileQueue::may_pass(const Part& part, std::span<const Part* const> passed) {
  return std::none_of(passed.begin(), passed.end(), [&](const Part* each) {
    return each->request->file == part.request->file && overlap(each->in_file(), part.in_file());
  });
}

FileQueue::Started FileQueue::start(Part& part) {
  Request& request = *part.request;
  if (const Started entered = enter(part); entered != Started::yes) return entered;
  if (!take_memory(part)) {
    leave(part);
    return Started::no_room;
  }
  if (request.file->sums() != nullptr && !part.next) put_sums_first(part);
  if (!state_->channel->begin(part.io)) {
    leave(part);
    return Started::no_room;
  }
  part.begun = Clock::now();
  if (request.under_way == 0) request.since = part.begun;
  --request.waiting;
  ++request.under_way;
  ++state_->under_way;
  return Started::yes;
}

FileQueue::Started FileQueue::enter(const Part& part) const {
  if (!disk_.enter(part.request->priority, part.bytes)) return Started::no_room;
  BlockSums* const sums = part.request->file->sums();
  if (sums == nullptr || sums->enter(part.in_file(), part.io.write)) return Started::yes;
  disk_.leave(part.bytes);
  return Started::blocked;
}

void FileQueue::leave(const Part& part) const {
  disk_.leave(part.bytes);
  if (BlockSums* sums = part.request->file->sums()) sums->leave(part.in_file());
}

/// False: there is none that the drive would take.
bool FileQueue::take_memory(Part& part) {
  if (!part.direct || whole_pages(part.memory) || part.buffer) return true;
  part.buffer = take_buffer(part.bytes);
  if (!part.buffer) return false;
  part.io.memory = part.buffer.get();
  if (part.io.write) std::memcpy(part.io.memory, part.memory, part.bytes);
  return true;
}

/// Of a write: whatever becomes of the blocks, they are what these say, or they are found out.
void FileQueue::put_sums_first(Part& part) {
  const BlockSums& sums = *part.request->file->sums();
  part.sums.resize(part.bytes / sums.block());
  if (part.io.write)
    for (std::size_t i = 0; i < part.sums.size(); ++i)
      part.sums[i] = BlockSums::of(part.io.memory + i * sums.block(), sums.block());
  part.next = std::exchange(part.io, sums.io(part.sums, part.at, part.io.write, &part));
}

FilePages FileQueue::take_buffer(std::size_t bytes) {
  const std::size_t size = std::bit_ceil(std::max(bytes, file_page));
  auto& free = state_->buffers[size];
  if (free.empty()) return make_file_pages(size);
  FilePages buffer = std::move(free.back());
  free.pop_back();
  return buffer;
}

std::vector<CopyQueue::News> FileQueue::news() {
  if (state_->requests.empty()) return std::exchange(news_, {});
  std::array<Io*, 32> over{};
  while (const std::size_t count = state_->channel->ended(over)) {
    for (std::size_t i = 0; i < count; ++i) advance(*static_cast<Part*>(over[i]->owner));
    if (count < over.size()) break;
  }
  begin_again();
  start();
  look_for_silence(Clock::now());
  return std::exchange(news_, {});
}

Deadline FileQueue::look_again() const {
  // Of room that others make for it nobody tells it, nor of a drive that says nothing.
  constexpr auto for_room = std::chrono::microseconds(100);
  constexpr auto for_silence = std::chrono::milliseconds(10);
  const bool waiting = std::any_of(state_->waiting.begin(), state_->waiting.end(),
                                   [](const auto& parts) { return !parts.empty(); });
  if (!waiting && !state_->put_off.empty()) return Deadline::in(pause_of_refused);
  return waiting ? Deadline::in(for_room) : Deadline::in(for_silence);
}

void FileQueue::give_up(std::uint64_t number) {
  const auto found = state_->requests.find(number);
  if (found == state_->requests.end()) return;
  Request& request = found->second;
  if (request.waiting == 0 && !is_put_off(request)) return;  // it ends as it would have
  if (!request.error) request.error = Error(Code::cancelled, "the copy was cancelled");
  drop_waiting(request);
  end_if_over(request);
}

/// The kernel has done some of it, or says why not.
void FileQueue::advance(Part& part) {
  part.request->since = answered_at_ = Clock::now();
  const std::int64_t result = part.io.result;
  const bool of_sums = part.next.has_value();
  OpenFile& file = *part.request->file;
  const std::string& path = of_sums ? file.sums()->path() : file.path();
  const bool is_short = result == -EAGAIN || result == -ENOMEM;
  if (!is_short) part.refused_since.reset();
  // Cancelled: the thread that began it has ended.
  if (result == -EINTR || result == -ECANCELED) {
    go_on(part, 0);
  } else if (is_short) {
    put_off(part, static_cast<int>(-result));
  } else if (result == -EINVAL && part.direct && !of_sums) {
    file.refuse_direct();
    part.direct = false;
    go_on(part, 0);
  } else if (result < 0) {
    finish(part, file_io_error(path, static_cast<int>(-result), part.io.write));
  } else if (result == 0) {
    finish(part, part.io.write ? file_io_error(path, EIO, true)
                               : file_cut_off(path, part.io.fd, part.io.at));
  } else if (static_cast<std::size_t>(result) >= part.io.bytes) {
    done(part);
  } else {
    go_on(part, static_cast<std::size_t>(result));
  }
}

/// With what is left of it, if the channel takes it.
void FileQueue::go_on(Part& part, std::size_t done) {
  part.io.memory += done;
  part.io.bytes -= done;
  part.io.at += done;
  if (!part.next) {
    // Where a file ends, direct I/O stops in the middle of a page.
    if (!whole_pages(part.io.at) || !whole_pages(part.io.bytes)) part.direct = false;
    part.io.fd = part.request->file->fd(part.direct);
  }
  if (!state_->channel->begin(part.io)) put_off(part, EAGAIN);
}

/// The kernel, or the channel, is short of something, and that is no fault of the file's: again a
/// little later, for as long as a drive may be silent.
void FileQueue::put_off(Part& part, int number) {
  const OpenFile& file = *part.request->file;
  const auto now = Clock::now();
  if (!part.refused_since) part.refused_since = now;
  if (now - *part.refused_since > file.options().timeout)
    return finish(
        part, file_io_error(part.next ? file.sums()->path() : file.path(), number, part.io.write));
  part.again = now + pause_of_refused;
  state_->put_off.push_back(&part);
}

bool FileQueue::is_put_off(const Request& request) const {
  return std::ranges::any_of(state_->put_off,
                             [&](const Part* part) { return part->request == &request; });
}

/// What was put off, where its time has come, and it is still wanted.
void FileQueue::begin_again() {
  const auto now = Clock::now();
  for (Part* part : std::exchange(state_->put_off, {})) {
    if (part->request->error) {
      finish(*part, part->request->error);
    } else if (now < part->again) {
      state_->put_off.push_back(part);
    } else {
      part->request->since = now;  // the drive was not asked meanwhile
      go_on(*part, 0);
    }
  }
}

/// With its sums, which the bytes follow, or with these.
void FileQueue::done(Part& part) {
  if (!part.next) return finish(part, part.io.write ? std::nullopt : check(part));
  part.io = *std::exchange(part.next, std::nullopt);
  go_on(part, 0);
}

/// Whether its blocks are what their sums say; what is wrong with the first that is not.
std::optional<Error> FileQueue::check(const Part& part) const {
  std::optional<Error> error;
  const OpenFile& file = *part.request->file;
  const std::byte* block = part.buffer ? part.buffer.get() : part.memory;
  for (std::size_t i = 0; i < part.sums.size(); ++i, block += file.sums()->block()) {
    if (part.sums[i] == 0 || part.sums[i] == BlockSums::of(block, file.sums()->block())) continue;
    disk_.counters().corrupt_blocks.fetch_add(1, std::memory_order_relaxed);
    if (!error)
      error = Error(Code::corrupt,
                    fmt::format("file '{}': the block of {} bytes at {} is not what "
                                "its sum in '{}' says",
                                file.path(), file.sums()->block(),
                                part.at + i * file.sums()->block(), file.sums()->path()));
  }
  return error;
}

void FileQueue::finish(Part& part, std::optional<Error> error) {
  Request& request = *part.request;
  const auto now = Clock::now();
  DiskCounters::Way& way = disk_.counters().of(part.io.write);
  way.ended(static_cast<std::uint64_t>((now - part.begun).count()));
  if (error)
    way.errors.fetch_add(1, std::memory_order_relaxed);
  else
    way.bytes.fetch_add(part.bytes, std::memory_order_relaxed);
  if (part.buffer) {
    if (!error && !part.io.write) std::memcpy(part.memory, part.buffer.get(), part.bytes);
    auto& free = state_->buffers[std::bit_ceil(std::max(part.bytes, file_page))];
    if (free.size() < most_free) free.push_back(std::move(part.buffer));
  }
  leave(part);
  --request.under_way;
  --state_->under_way;
  if (error && !request.error) {
    request.error = std::move(error);
    drop_waiting(request);
  }
  end_if_over(request);
}

/// The rest of it is not begun.
void FileQueue::drop_waiting(Request& request) {
  if (request.waiting == 0) return;
  std::erase_if(state_->waiting[index_of(request.priority)],
                [&](const Part* part) { return part->request == &request; });
  request.waiting = 0;
}

/// Since when the drive has done nothing of it; or nothing at all, where it is others' turn.
Clock::time_point FileQueue::since(const Request& request) const {
  return request.under_way > 0 ? request.since : std::max(request.since, answered_at_);
}

/// What has taken too long has failed, and may still be under way.
void FileQueue::look_for_silence(Clock::time_point now) {
  constexpr auto pause = std::chrono::milliseconds(10);
  if (now < look_again_at_) return;
  look_again_at_ = now + pause;
  std::vector<Request*> late;
  for (auto& [number, request] : state_->requests)
    if (!request.silent && !is_put_off(request) &&
        now - since(request) > request.file->options().timeout)
      late.push_back(&request);
  for (Request* request : late) {
    const OpenFile& file = *request->file;
    if (!request->error) request->error = request->under_way > 0 ? file.silent() : file.held_up();
    drop_waiting(*request);
    if (request->under_way > 0) {
      request->silent = true;
      ++disk_.silent();
      news_.push_back({request->number, request->error, false});
    }
    end_if_over(*request);
  }
}

void FileQueue::end_if_over(Request& request) {
  if (request.waiting + request.under_way > 0) return;
  if (request.silent) --disk_.silent();
  news_.push_back({request.number, std::move(request.error), true});
  state_->requests.erase(request.number);
}

}  // namespace weft::core
