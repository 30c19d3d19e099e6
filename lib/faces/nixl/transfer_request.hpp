// A request whose bytes go to and from another engine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "nixl/remote_memory.hpp"
#include "nixl/request.hpp"

namespace weft::nixl {

/// Pieces between a registration of this side and one of the other.
struct TransferBatch {
  std::shared_ptr<Segment> local;
  ImportPtr remote;
  std::vector<Pair> pieces;
};

/// Its descriptors may lie in many registrations. Those of one registration on each side are one
/// transfer of Weft's, and each of these transfers carries a part of the notification: so it is
/// whole only when all of them are. What has to wait for the peer before they can be submitted is
/// done behind the link; meanwhile the request is under way.
class TransferRequest final : public Request {
 public:
  /// The batches' imports are over that link.
  static Result<std::shared_ptr<TransferRequest>> make(LinkPtr link, Direction direction,
                                                       std::vector<TransferBatch> batches);

  Result<LinkPtr> link() override { return link_; }
  std::size_t carriers() const noexcept override { return carriers_; }

 private:
  TransferRequest(LinkPtr link, Direction direction, std::vector<TransferBatch> batches)
      : link_(std::move(link)),
        direction_(direction),
        carriers_(batches.size()),
        batches_(std::move(batches)) {}
  Result<void> prepare() WEFT_REQUIRES(mutex_);
  Result<void> begin(const Outgoing* notification) WEFT_REQUIRES(mutex_) override;
  void begin_later(std::uint64_t post, const std::optional<Outgoing>& notification,
                   Deadline deadline);
  bool waits(std::uint64_t post) WEFT_REQUIRES(mutex_) { return waits_ && post_ == post; }
  bool is_ready(std::uint64_t post, const std::optional<Outgoing>& notification);
  Result<void> send_first_parts(const Outgoing& notification, Deadline deadline);
  Result<void> submit_all(const Outgoing* notification) WEFT_REQUIRES(mutex_);
  Result<bool> advance() WEFT_REQUIRES(mutex_) override;
  void cancel() WEFT_REQUIRES(mutex_) override;
  bool quiescent() WEFT_REQUIRES(mutex_) override;
  void wait_quiescent(Deadline deadline) WEFT_REQUIRES(mutex_) override;
  void cut_off() WEFT_REQUIRES(mutex_) override;
  bool awaits_news(const Error& error) WEFT_REQUIRES(mutex_) override;
  abi::Status told_as(abi::Status logged) WEFT_REQUIRES(mutex_) override;
  void withdraw() WEFT_REQUIRES(mutex_) override;
  std::string subject() const override;

  const LinkPtr link_;
  const Direction direction_;
  const std::size_t carriers_;
  std::vector<TransferBatch> batches_ WEFT_GUARDED_BY(mutex_);  // until they are prepared
  std::vector<Prepared> prepared_ WEFT_GUARDED_BY(mutex_);
  // Of the latest post; its transfers are not submitted yet, or could not be.
  std::uint64_t post_ WEFT_GUARDED_BY(mutex_) = 0;
  Deadline deadline_ WEFT_GUARDED_BY(mutex_) = Deadline::now();
  bool waits_ WEFT_GUARDED_BY(mutex_) = false;
  std::optional<Error> not_begun_ WEFT_GUARDED_BY(mutex_);
  std::vector<Transfer> transfers_ WEFT_GUARDED_BY(mutex_);
  std::size_t done_ WEFT_GUARDED_BY(mutex_) = 0;  // of transfers_, the first ones
  // A notification whose parts may have gone.
  std::optional<std::uint64_t> sent_in_parts_ WEFT_GUARDED_BY(mutex_);
};

}  // namespace weft::nixl
