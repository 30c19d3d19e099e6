#include "lease/lease_words.hpp"

#include "base/random.hpp"
#include "base/sync.hpp"
#include "lease/peer_key.hpp"

namespace weft::core {
namespace {

/// Of a file, so that peers of this host map it: the kernel would take longer to fetch a word than
/// to copy a block. Without a descriptor left it does.
Result<Allocation> memory_for_peers(std::size_t bytes) {
  auto shared = Allocation::make(Memory::shared(bytes));
  return shared ? std::move(shared) : Allocation::make(Memory::own(bytes));
}

}  // namespace

Epoch::Epoch(std::shared_ptr<LeaseWords> words, std::size_t index, std::atomic<std::uint64_t>& word,
             std::uint64_t value)
    : words_(std::move(words)), index_(index), word_(word), value_(value) {
  word_.store(value_, std::memory_order_seq_cst);
}

Epoch::~Epoch() {
  end();
  const Lock lock(words_->mutex_);
  words_->free_.push_back(index_);
}

std::vector<RailKey> Epoch::keys() const {
  const Lock lock(words_->mutex_);
  std::vector<RailKey> keys = words_->pages_[index_ / LeaseWords::words_per_page].keys;
  for (RailKey& key : keys) key.base += index_ % LeaseWords::words_per_page * sizeof(std::uint64_t);
  return keys;
}

void Epoch::end() noexcept {
  // A forked child shares the words with its parent, whose leases still hold.
  if (words_->generation_ != fork_generation()) return;
  word_.store(0, std::memory_order_seq_cst);
  // No store of the caller's may come before it, in the eyes of a NIC either.
  std::atomic_thread_fence(std::memory_order_seq_cst);
}

Result<std::unique_ptr<Epoch>> LeaseWords::take() {
  const Lock lock(mutex_);
  if (free_.empty())
    if (auto grown = grow(); !grown) return fail(std::move(grown.error()));
  const std::size_t index = free_.back();
  free_.pop_back();
  return std::make_unique<Epoch>(shared_from_this(), index, word(index), random_u64());
}

Result<void> LeaseWords::grow() {
  auto memory = memory_for_peers(sizeof(Page));
  if (!memory) return fail(std::move(memory.error()));
  void* const start = memory->address();
  Registered added{std::move(*memory), new (start) Page{}, {}, {}};
  if (auto made = register_with_rails(added); !made) return made;
  const std::size_t first = pages_.size() * words_per_page;
  pages_.push_back(std::move(added));
  for (std::size_t i = words_per_page; i > 0; --i) free_.push_back(first + i - 1);
  return {};
}

Result<void> LeaseWords::register_with_rails(Registered& added) const {
  providers::Extent extent{added.page, sizeof(Page)};
  extent.file = {added.memory.fd(), added.memory.file_offset()};
  for (const Reader& reader : readers_) {
    if (reader.closed()) continue;
    auto made =
        register_for_peers(*reader.endpoint, reader.rail, extent, providers::Access::remote_read);
    if (!made) return fail(std::move(made.error()));
    added.keys.push_back(made->key);
    added.registrations.push_back(std::move(made->registration));
  }
  return {};
}

std::atomic<std::uint64_t>& LeaseWords::word(std::size_t index) const {
  return pages_[index / words_per_page].page->words[index % words_per_page];
}

void LeaseWords::rail_opened(std::uint32_t rail) {
  const Lock lock(mutex_);
  for (Registered& each : pages_)
    for (std::size_t i = 0; i < each.registrations.size(); ++i)
      if (each.keys[i].rail == rail) each.keys[i].key = each.registrations[i]->key();
}

void LeaseWords::close() {
  const Lock lock(mutex_);
  for (Registered& each : pages_) each.registrations.clear();
}

}  // namespace weft::core
