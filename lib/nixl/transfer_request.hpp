// A request whose bytes go to and from another engine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "nixl/request.hpp"

namespace weft::nixl {

/// Its descriptors may lie in many registrations. Those of one registration on each side are one
/// transfer of Weft's, and each of these transfers carries a part of the notification: so it is
/// whole only when all of them are.
class TransferRequest final : public Request {
 public:
  TransferRequest(LinkPtr link, std::vector<Prepared> batches)
      : link_(std::move(link)), batches_(std::move(batches)) {}

  Result<LinkPtr> link() override { return link_; }
  std::size_t carriers() const noexcept override { return batches_.size(); }

 private:
  Result<void> begin(const Outgoing* notification) WEFT_REQUIRES(mutex_) override;
  Result<void> send_first_parts(const Outgoing& notification) WEFT_REQUIRES(mutex_);
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
  const std::vector<Prepared> batches_;
  std::vector<Transfer> transfers_ WEFT_GUARDED_BY(mutex_);
  std::size_t done_ WEFT_GUARDED_BY(mutex_) = 0;  // of transfers_, the first ones
  // A notification whose parts may have gone.
  std::optional<std::uint64_t> sent_in_parts_ WEFT_GUARDED_BY(mutex_);
};

}  // namespace weft::nixl
