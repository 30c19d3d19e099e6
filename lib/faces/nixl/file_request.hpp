// A request between files and memory of one agent.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "nixl/loopback.hpp"
#include "nixl/request.hpp"

namespace weft::nixl {

/// Pieces of one file and one piece of memory.
struct FileBatch {
  std::shared_ptr<Segment> to, from;
  std::vector<Pair> pieces;  ///< Pair::local in `to`, Pair::remote in `from`.
};

/// The drive reads and writes the memory itself: no rail, no copy. Its notification goes once all
/// of its bytes are there, and check() has seen that.
class FileRequest final : public Request {
 public:
  FileRequest(Loopback& loopback, std::vector<FileBatch> batches)
      : loopback_(loopback), batches_(std::move(batches)) {}

  Result<LinkPtr> link() override { return loopback_.link(); }
  std::size_t carriers() const noexcept override { return 0; }

 private:
  Result<void> begin(const Outgoing* notification) WEFT_REQUIRES(mutex_) override;
  Result<void> keep(const Outgoing& notification) WEFT_REQUIRES(mutex_);
  Result<bool> advance() WEFT_REQUIRES(mutex_) override;
  Result<bool> notify() WEFT_REQUIRES(mutex_);
  void cancel() WEFT_REQUIRES(mutex_) override;
  bool quiescent() WEFT_REQUIRES(mutex_) override;
  void wait_quiescent(Deadline deadline) WEFT_REQUIRES(mutex_) override;
  void withdraw() WEFT_REQUIRES(mutex_) override;
  std::string subject() const override { return "a copy between files and memory"; }

  /// That has not gone, or not all of it.
  struct Unsent {
    LinkPtr link;
    std::uint64_t id;
    std::deque<Blob> parts;
    bool begun = false;
    std::optional<Deadline> until;  // from the first try on
  };
  Loopback& loopback_;
  const std::vector<FileBatch> batches_;
  std::vector<FileCopy> copies_ WEFT_GUARDED_BY(mutex_);
  std::size_t done_ WEFT_GUARDED_BY(mutex_) = 0;  // of copies_, the first ones
  std::optional<Unsent> notification_ WEFT_GUARDED_BY(mutex_);
};

}  // namespace weft::nixl
