#include "nixl/prepare.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "nixl/file_request.hpp"
#include "nixl/registration.hpp"
#include "nixl/remote_memory.hpp"
#include "nixl/transfer_request.hpp"

namespace weft::nixl {
namespace {

/// A registration on each side, and the pieces that go between them.
struct Batch {
  Registration* local;
  abi::Metadata* remote;
  std::uintptr_t local_base, remote_base;  // where their memory begins
  std::vector<Pair> pieces;
};

struct Key {
  const abi::Metadata *local, *remote;
  bool operator==(const Key&) const = default;
};
struct KeyHash {
  std::size_t operator()(const Key& key) const noexcept {
    const std::hash<const void*> hash;
    return hash(key.local) * 31 + hash(key.remote);
  }
};

/// Where the memory of a remote descriptor lies, in its owner's process.
const abi::Descriptor& memory_of(const abi::Metadata& remote) {
  if (const auto* own = dynamic_cast<const OwnMemory*>(&remote)) return own->registration().of();
  return static_cast<const RemoteMemory&>(remote).memory();
}

/// In the order of their first descriptors.
class Batches {
 public:
  /// Most often all pieces, of which there are so many, are of one.
  explicit Batches(std::size_t pieces) : pieces_(pieces) {}
  void add(const abi::MetaDescriptor& local, const abi::MetaDescriptor& remote) {
    Batch& batch = batch_of({local.metadata, remote.metadata});
    batch.pieces.push_back(
        {local.address - batch.local_base, remote.address - batch.remote_base, local.bytes});
  }
  std::vector<Batch>& all() { return batches_; }

 private:
  Batch& batch_of(const Key& key) {
    if (!batches_.empty() && key == last_) return batches_[last_index_];
    const auto [known, added] = index_.try_emplace(key, batches_.size());
    if (added) {
      auto* local = static_cast<Registration*>(const_cast<abi::Metadata*>(key.local));
      batches_.push_back({local,
                          const_cast<abi::Metadata*>(key.remote),
                          local->of().address,
                          memory_of(*key.remote).address,
                          {}});
      if (batches_.size() == 1) batches_.front().pieces.reserve(pieces_);
    }
    last_ = key;
    last_index_ = known->second;
    return batches_[last_index_];
  }

  const std::size_t pieces_;
  std::vector<Batch> batches_;
  std::unordered_map<Key, std::size_t, KeyHash> index_;
  Key last_{};
  std::size_t last_index_ = 0;
};

Result<Batches> sort_out(const abi::MetaList& local, const abi::MetaList& remote) {
  if (local.list.size() != remote.list.size())
    return fail(Code::invalid_argument, fmt::format("{} local descriptors and {} remote ones",
                                                    local.list.size(), remote.list.size()));
  Batches batches(local.list.size());
  for (std::size_t i = 0; i < local.list.size(); ++i) {
    const auto &here = local.list[i], &there = remote.list[i];
    if (here.bytes != there.bytes)
      return fail(
          Code::invalid_argument,
          fmt::format("descriptor {} has {} bytes here and {} there", i, here.bytes, there.bytes));
    if (here.metadata == nullptr || there.metadata == nullptr)
      return fail(Code::invalid_argument, fmt::format("descriptor {} is not registered", i));
    batches.add(here, there);
  }
  return batches;
}

Result<TransferBatch> within_agent(Batch& batch, Registration& own, Loopback& loopback) {
  auto link = loopback.link();
  if (!link) return fail(std::move(link.error()));
  auto local = loopback.local(*batch.local);
  if (!local) return fail(local.error());
  const auto remote = loopback.remote(own);
  if (!remote) return fail(remote.error());
  return TransferBatch{std::move(*local), std::make_shared<Import>(std::move(*link), *remote),
                       std::move(batch.pieces)};
}

Result<TransferBatch> transfer_batch_of(Batch& batch, Agents& agents, Loopback& loopback) {
  if (auto* own = dynamic_cast<OwnMemory*>(batch.remote))
    return within_agent(batch, own->registration(), loopback);
  auto import = static_cast<RemoteMemory&>(*batch.remote).reach(agents);
  if (!import) return fail(std::move(import.error()));
  return TransferBatch{batch.local->segment(), std::move(*import), std::move(batch.pieces)};
}

/// Between a file and the CPU's memory, both of this agent.
bool drive_does(const Batch& batch) {
  const auto* own = dynamic_cast<const OwnMemory*>(batch.remote);
  if (own == nullptr) return false;
  const auto kind_of = [](const Registration& of) { return of.segment()->place().kind; };
  const MemoryKind here = kind_of(*batch.local), there = kind_of(own->registration());
  return (weft::is_file(here) && there == MemoryKind::host) ||
         (here == MemoryKind::host && weft::is_file(there));
}

Result<void> check_ranges(const Batch& batch) {
  const auto within = [](std::uint64_t offset, std::uint64_t length, std::uint64_t bytes) {
    return length <= bytes && offset <= bytes - length;
  };
  const std::uint64_t there = memory_of(*batch.remote).bytes;
  for (const Pair& each : batch.pieces)
    if (!within(each.local, each.length, batch.local->of().bytes) ||
        !within(each.remote, each.length, there))
      return fail(Code::invalid_argument, "a descriptor leaves its registration");
  return {};
}

Result<FileBatch> file_batch_of(Batch batch, Direction direction) {
  const Registration& here = *batch.local;
  const auto& there = static_cast<const OwnMemory*>(batch.remote)->registration();
  const bool reads = direction == Direction::read;
  if ((reads ? here : there).source())
    return fail(Code::permission_denied, "the file was opened for reading only");
  if (reads) return FileBatch{here.segment(), there.segment(), std::move(batch.pieces)};
  for (Pair& each : batch.pieces) std::swap(each.local, each.remote);
  return FileBatch{there.segment(), here.segment(), std::move(batch.pieces)};
}

Result<std::shared_ptr<Request>> by_the_drive(Batches& batches, Direction direction,
                                              Loopback& loopback) {
  std::vector<FileBatch> copies;
  for (Batch& batch : batches.all()) {
    auto copy = file_batch_of(std::move(batch), direction);
    if (!copy) return fail(std::move(copy.error()));
    copies.push_back(std::move(*copy));
  }
  return std::make_shared<FileRequest>(loopback, std::move(copies));
}

/// All of one other agent, or of this one.
Result<std::shared_ptr<Request>> by_transfers(Batches& batches, Direction direction, Agents& agents,
                                              Loopback& loopback) {
  std::vector<TransferBatch> transfers;
  for (Batch& batch : batches.all()) {
    auto transfer = transfer_batch_of(batch, agents, loopback);
    if (!transfer) return fail(std::move(transfer.error()));
    if (!transfers.empty() && transfers.front().remote->link() != transfer->remote->link())
      return fail(Code::invalid_argument, "the remote descriptors are of several agents");
    transfers.push_back(std::move(*transfer));
  }
  LinkPtr link = transfers.front().remote->link();
  return TransferRequest::make(std::move(link), direction, std::move(transfers));
}

}  // namespace

Result<std::shared_ptr<Request>> prepare(abi::Operation operation, const abi::MetaList& local,
                                         const abi::MetaList& remote, Agents& agents,
                                         Loopback& loopback) {
  const auto direction = operation == abi::Operation::read ? Direction::read : Direction::write;
  auto batches = sort_out(local, remote);
  if (!batches) return fail(std::move(batches.error()));
  const std::vector<Batch>& all = batches->all();
  if (all.empty()) return fail(Code::invalid_argument, "a transfer needs at least one descriptor");
  for (const Batch& batch : all)
    if (auto right = check_ranges(batch); !right) return fail(std::move(right.error()));
  if (std::all_of(all.begin(), all.end(), drive_does))
    return by_the_drive(*batches, direction, loopback);
  return by_transfers(*batches, direction, agents, loopback);
}

}  // namespace weft::nixl
