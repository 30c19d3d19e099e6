// A transfer that was over before the application had it: the caller has copied all its bytes, and
// nothing was to follow.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "transfer/inline_copied.hpp"
#include "transfer/prepared.hpp"
#include "transfer/submitted.hpp"

namespace weft::core {

class TransferHost;

class CopiedTransfer final : public Submitted {
 public:
  struct Facts {
    std::shared_ptr<const PreparedState> prepared;
    std::uint64_t ranges = 0;
    Priority priority = Priority::normal;
    Clock::time_point submitted{}, ended{};
    std::size_t rail = 0;  // by which it was copied
    InlineCopied copied = {};
  };
  /// `host` has to be there as long as the engine is.
  CopiedTransfer(Facts facts, TransferHost& host) : facts_(std::move(facts)), host_(host) {}
  ~CopiedTransfer() override { CopiedTransfer::see(); }

  const Facts& facts() const noexcept { return facts_; }
  /// The same as report(), but for what only the engine knows: copies, and amplification.
  Report own_report() const;

  const PreparedState& prepared() const noexcept override { return *facts_.prepared; }
  State state() const noexcept override { return State::done; }
  std::optional<Error> error() const override { return std::nullopt; }
  bool quiescent() const override { return true; }
  void cancel() override {}
  Report report() const override;
  std::vector<Placed> placed() const override {
    return std::vector<Placed>(facts_.ranges, Placed::all);
  }
  bool wait_ended(Deadline) const override { return true; }
  bool wait_quiescent(Deadline) const override { return true; }
  void see() noexcept override { prepared().see(facts_.submitted); }

 private:
  void await_first(Deadline deadline) noexcept override {
    prepared().await(facts_.copied.bytes, facts_.ended, deadline);
  }

  const Facts facts_;
  TransferHost& host_;
};

}  // namespace weft::core
