#include "providers/shm/mappings.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "base/log.hpp"
#include "base/sync.hpp"
#include "base/thread.hpp"
#include "providers/endpoint.hpp"

namespace weft::providers::shm {
namespace {

// Each takes one of the process's mappings, of which there are 65,530 by default.
constexpr std::size_t most_files = 4096;
// Mapping anew costs a page fault for every page that is touched again.
constexpr auto kept_unused = std::chrono::seconds(1);

struct Registry {
  core::Mutex mutex;
  std::vector<std::weak_ptr<const MappedFile>> files;
};

/// Never destroyed: threads of engines that nobody closes map while statics go away.
Registry& registry() {
  static auto& all = *new Registry;
  return all;
}

bool may_write(const Entry& entry) noexcept {
  const auto access = static_cast<Access>(entry.access);
  return access == Access::remote_write || access == Access::remote_read_write;
}

}  // namespace

Result<std::shared_ptr<const MappedFile>> MappedFile::of(const Descriptor& file,
                                                         const FileIdentity& identity,
                                                         std::uint64_t bytes,
                                                         std::uint64_t needed) {
  Registry& all = registry();
  const core::Lock lock(all.mutex);
  std::erase_if(all.files, [](const auto& each) { return each.expired(); });
  for (const auto& each : all.files)
    if (auto known = each.lock(); known && known->identity() == identity && known->size() >= needed)
      return known;
  if (all.files.size() >= most_files)
    return fail(Code::unavailable, fmt::format("{} files of peers are mapped already", most_files));
  const int protection = identity.writable ? PROT_READ | PROT_WRITE : PROT_READ;
  void* data = mmap(nullptr, bytes, protection, MAP_SHARED, file.get(), 0);
  if (data == MAP_FAILED) return fail(system_error("mmap of a peer's memory"));
  std::shared_ptr<const MappedFile> mapped(
      new MappedFile(identity, static_cast<std::byte*>(data), bytes),
      [](const MappedFile* last) { core::run_detached([last] { delete last; }); });
  all.files.push_back(mapped);
  return mapped;
}

MappedFile::~MappedFile() {
  munmap(data_, size_);
}

std::shared_ptr<const View> Mappings::known(std::uint64_t key) {
  const core::Lock lock(mutex_);
  const auto view = views_.find(key);
  return view != views_.end() ? view->second : nullptr;
}

void Mappings::ask_by(std::shared_ptr<const core::HostProcess> process) {
  const core::Lock lock(mutex_);
  process_ = std::move(process);
}

std::shared_ptr<const View> Mappings::of(std::uint64_t key) {
  if (auto view = known(key)) return view;
  const Entry& entry = head_.entries[key % entry_count];
  // Before the key is looked at: its owner closes the entry first, and looks here after that.
  claim_.maps.store(1, std::memory_order_seq_cst);
  const auto is_open = [&] { return entry.key.load(std::memory_order_seq_cst) == key; };
  if (!is_open()) return nullptr;
  const auto process = [&] {
    const core::Lock lock(mutex_);
    return process_;
  }();
  auto view = std::make_shared<const View>(make(entry, head_.nonce, *process));
  // While the entry is open its owner keeps the descriptor.
  if (!is_open()) return nullptr;
  const core::Lock lock(mutex_);
  tell_why_not(entry, *view);
  if (views_.size() >= tidy_at_) {
    forget_closed();
    tidy_at_ = std::max(views_before_tidying, 2 * views_.size());
  }
  // Another thread may have been sooner.
  view = views_.try_emplace(key, std::move(view)).first->second;
  if (view->file != nullptr) keep(view->file);
  return view;
}

void Mappings::keep(const std::shared_ptr<const MappedFile>& file) {
  const auto same = [&](const Kept& kept) { return kept.file == file; };
  if (std::none_of(files_.begin(), files_.end(), same)) files_.push_back({file});
}

View Mappings::make(const Entry& entry, std::uint64_t owner, const core::HostProcess& process) {
  auto opened = open(entry, owner, process);
  if (opened) return std::move(*opened);
  View none;
  none.why_not = opened.error().message();
  return none;
}

/// Once. The owner reports its own refusals, and a process that is gone has nothing to map.
void Mappings::tell_why_not(const Entry& entry, const View& view) {
  if (view.file != nullptr || entry.backing.why_not != Unmappable::no || told_) return;
  if (process_->ended()) return;
  told_ = true;
  core::log(LogLevel::warning, "memory of a peer's on this host is not mapped: {}", view.why_not);
}

Result<View> Mappings::open(const Entry& entry, std::uint64_t owner,
                            const core::HostProcess& process) {
  const Backing backing = entry.backing;
  if (backing.why_not != Unmappable::no) return fail(Code::unsupported, to_text(backing.why_not));
  const bool writable = may_write(entry);
  auto file = process.open(
      {{owner, entry.key.load()}, backing.descriptor, "/memfd:", writable ? O_RDWR : O_RDONLY});
  if (!file) return fail(std::move(file.error()));
  if (const Unmappable why_not = check_file(file->get()); why_not != Unmappable::no)
    return fail(Code::unsupported, to_text(why_not));
  struct stat status {};
  if (fstat(file->get(), &status) != 0) return fail(system_error("fstat of a peer's memory"));
  if (status.st_ino != backing.inode)
    return fail(Code::invalid_argument, "the peer's descriptor is of another file");
  const auto size = static_cast<std::uint64_t>(status.st_size);
  const std::uint64_t length = entry.length;
  if (backing.offset > size || length > size - backing.offset)
    return fail(Code::invalid_argument, "the registration leaves the peer's file");
  return MappedFile::of(*file, {status.st_dev, status.st_ino, writable}, size,
                        backing.offset + length)
      .map([&](std::shared_ptr<const MappedFile> mapped) {
        std::byte* start = mapped->data() + backing.offset;
        return View{std::move(mapped), start, length, writable};
      });
}

void Mappings::forget_closed() {
  std::erase_if(views_, [&](const auto& each) {
    return head_.entries[each.first % entry_count].key.load() != each.first;
  });
}

bool Mappings::tidy(Clock::time_point now) {
  const core::Lock lock(mutex_);
  forget_closed();
  std::unordered_set<const MappedFile*> used;
  for (const auto& [key, view] : views_) used.insert(view->file.get());
  bool tidy = true;
  std::erase_if(files_, [&](Kept& kept) {
    if (used.contains(kept.file.get())) {
      kept.unused_since = {};
      return false;
    }
    if (kept.unused_since == Clock::time_point{}) kept.unused_since = now;
    const bool over = now - kept.unused_since >= kept_unused;
    tidy = tidy && over;
    return over;
  });
  return tidy;
}

}  // namespace weft::providers::shm
