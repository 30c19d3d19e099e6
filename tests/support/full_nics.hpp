// Rails whose NICs pin memory, and have room for little, as real ones have.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

#include "forwarding.hpp"

namespace weft::test {

/// What NICs have room for, and what is registered with them; for all endpoints that are opened in
/// wrapped() while they are set, each of them with a NIC of its own.
struct NicLimits {
  std::uint64_t most_at_once = ~std::uint64_t{0};  // bytes that peers may write
  std::uint64_t pages = 0;                         // Capability::registration_pages
  std::uint64_t room = ~std::uint64_t{0};          // bytes
  bool local = false;                              // what is not granted takes room too
};
inline NicLimits& nic_limits() {
  static NicLimits limits;
  return limits;
}

/// Has room for few bytes. To be opened in wrapped().
class FullNic final : public ForwardingEndpoint {
 public:
  explicit FullNic(std::unique_ptr<providers::Endpoint> real)
      : ForwardingEndpoint(std::move(real)), limits_(nic_limits()), record_(inner().capability()) {
    record_.pins_memory = true;
    record_.registration_pages = limits_.pages;
    record_.local_registration = record_.local_registration || limits_.local;
  }
  const Capability& capability() const noexcept override { return record_; }
  Result<std::unique_ptr<providers::Registration>> register_memory(
      const providers::Extent& memory, providers::Access access) override {
    using providers::Access;
    const bool written = access == Access::remote_write || access == Access::remote_read_write;
    const bool granted = written || access == Access::remote_read;
    if (memory.length <= buffer || (!granted && !limits_.local))
      return ForwardingEndpoint::register_memory(memory, access);
    if (written && memory.length > limits_.most_at_once) return full();
    auto made = ForwardingEndpoint::register_memory(memory, access);
    if (!made) return made;
    if (*used_ + memory.length > limits_.room) return full();
    *used_ += memory.length;
    ++made_;
    return std::make_unique<Counted>(std::move(*made), used_, memory.length);
  }

  /// Registrations of segments since the process began, by all of them.
  static std::uint64_t made() { return made_; }

 private:
  /// The engine's own buffers are not counted.
  static constexpr std::uint64_t buffer = std::uint64_t{1} << 20;
  using Used = std::shared_ptr<std::atomic<std::uint64_t>>;

  class Counted final : public providers::Registration {
   public:
    Counted(std::unique_ptr<Registration> real, Used used, std::uint64_t bytes)
        : real_(std::move(real)), used_(std::move(used)), bytes_(bytes) {}
    ~Counted() override { free(); }
    void* descriptor() const noexcept override { return real_->descriptor(); }
    std::uint64_t key() const noexcept override { return real_->key(); }
    bool close() override {
      if (!real_->close()) return false;
      free();
      return true;
    }
    void retire() noexcept override { real_->retire(); }
    const Error* lost() const noexcept override { return real_->lost(); }
    const Registration& real() const noexcept { return *real_; }

   private:
    void free() { *used_ -= std::exchange(bytes_, 0); }
    const std::unique_ptr<Registration> real_;
    const Used used_;
    std::uint64_t bytes_;
  };
  static tl::unexpected<Error> full() {
    return fail(Error(Code::out_of_memory, "the NIC is full").with_fabric_code(ENOMEM));
  }

  const NicLimits limits_;
  Capability record_;
  const Used used_ = std::make_shared<std::atomic<std::uint64_t>>(0);
  static inline std::atomic<std::uint64_t> made_{0};
};

}  // namespace weft::test
