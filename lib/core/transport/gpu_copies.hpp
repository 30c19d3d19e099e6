// A device's copies straight between its memory and memory that another process of the host has
// lent: one copy, no host memory, no message. The lease word proves that a read counts, as for RMA.
#pragma once

#include "transport/staging.hpp"
#include "transport/transport.hpp"

namespace weft::core {

class GpuCopies final : public Transport {
 public:
  GpuCopies() : Transport({.on_rail = false}) {}

  /// Before it carries the first bytes of a device's. May block.
  Result<void> serve(const Device& device) { return staging_.serve(device); }

  std::uint64_t chunk_limit(const Route& route) const override;
  std::size_t room(const Route& route) const override;
  providers::Post post(Op& op) override;
  std::size_t progress() override;

  bool copying() const noexcept { return staging_.under_way() > 0; }
  /// Waits until no device copies any more; the sink is not told. False if one has not ended by the
  /// deadline.
  bool settle(Deadline deadline) {
    return staging_.settle(deadline, [](Op*, const auto&) {});
  }

 private:
  void failed(Op& op, const Error& error);

  Staging<Op*> staging_;
  bool second_ = false;  // the stream of the copy before
};

}  // namespace weft::core
