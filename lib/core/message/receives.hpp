// Receives of one class of messages, posted ahead of them on one endpoint.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/log.hpp"
#include "message/buffer_pool.hpp"
#include "providers/endpoint.hpp"

namespace weft::core {

/// Whether a receive's buffer may be posted again, or whether its message is still needed.
enum class Received : bool { free, kept };

/// Keeps a receive posted for each message that was promised to a peer. Any peer's message may take
/// any of them, so what one peer gives back serves the next. `Owner` has `Received arrived(Buffer&,
/// std::size_t length)`. Used by the rail's owning thread only.
template <typename Owner>
class Receives final : private providers::CompletionHandler {
 public:
  /// `most`: receives that may be posted. `slab`: how many come at a time, at least. `head`: as of
  /// BufferPool.
  Receives(providers::Endpoint& endpoint, std::string name, providers::MessageClass type,
           std::size_t buffer_bytes, std::size_t slab, std::size_t most, Owner& owner,
           std::size_t head = 0)
      : endpoint_(endpoint),
        name_(std::move(name)),
        type_(type),
        most_(most),
        owner_(owner),
        buffers_(endpoint, buffer_bytes, slab, head) {}

  std::size_t buffer_bytes() const noexcept { return buffers_.buffer_bytes(); }
  std::size_t most() const noexcept { return most_; }
  // From any thread.
  std::size_t promised() const noexcept { return promised_.load(std::memory_order_relaxed); }
  std::size_t posted() const noexcept { return buffers_.size(); }
  std::uint64_t bytes() const noexcept { return buffers_.bytes(); }
  /// How many more may be promised.
  std::size_t left() const noexcept { return most_ - promised(); }

  /// To a peer, which may send so many messages more. An error: none was promised. May block.
  Result<void> promise(std::size_t count) {
    if (count > left())
      return fail(Code::unavailable,
                  fmt::format("{}: {} of {} receives are promised to peers, and {} more are needed",
                              name_, promised(), most_, count));
    if (auto grown = buffers_.grow_to(promised() + count, most_); !grown) return grown;
    promised_ += count;
    least_spare_ = std::min(least_spare_, posted() - promised());
    while (Buffer* buffer = buffers_.take()) post(*buffer);
    post_all(failed_);
    return {};
  }
  /// The peer is gone, or has given so many back.
  void release(std::size_t count) noexcept { promised_ -= count; }
  /// Takes those back that were not promised since the last call, as far as the provider can. The
  /// others go when a message has taken them.
  void tidy() {
    buffers_.retire(least_spare_, [this](Buffer& buffer) {
      const bool idle = std::erase(refused_, &buffer) + std::erase(failed_, &buffer) > 0;
      buffer.called_back = !idle && !endpoint_.take_back(buffer, type_);
      if (!buffer.called_back) buffers_.put_back(buffer);
    });
    least_spare_ = posted() - promised();
  }
  /// A buffer whose message was kept.
  void post(Buffer& buffer) {
    buffer.called_back = false;
    if (BufferPool::retired(buffer)) return buffers_.put_back(buffer);
    buffer.handler = this;
    const providers::Post post = endpoint_.receive(
        buffer, {buffer.data, buffers_.buffer_bytes(), buffer.registration}, type_);
    if (post.status == providers::PostStatus::again) refused_.push_back(&buffer);
    if (post.status == providers::PostStatus::failed)
      log(LogLevel::error, "{}: can't post a receive: {}", name_,
          providers::fabric_text(post.fabric_code));
  }
  /// Tries those again that the provider had no room for.
  void progress() {
    if (!refused_.empty()) post_all(refused_);
  }

  Result<void> pin(const Device& device) { return buffers_.pin(device); }
  void leak() { buffers_.leak(); }

 private:
  void completed(providers::Posted& posted, const providers::Completion& completion) override {
    auto& buffer = static_cast<Buffer&>(posted);
    if (completion.ok) {
      if (!failed_.empty()) post_all(failed_);
      if (owner_.arrived(buffer, completion.length) == Received::kept) return;
    } else if (!buffer.called_back) {
      log(LogLevel::debug, "{}: a receive failed: {}", name_,
          providers::fabric_text(completion.fabric_code));
      if (completion.cut) return refused_.push_back(&buffer);
      // An endpoint that fails all receives would do so for ever, if they were posted again at
      // once. But a message that is too long is its sender's fault, and the sender may be a
      // stranger: it must not use up the receives of others.
      if (!completion.too_long) return failed_.push_back(&buffer);
    }
    post(buffer);
  }
  void post_all(std::vector<Buffer*>& buffers) {
    for (Buffer* buffer : std::exchange(buffers, {})) post(*buffer);
  }

  providers::Endpoint& endpoint_;
  const std::string name_;  // for the log
  const providers::MessageClass type_;
  const std::size_t most_;
  Owner& owner_;
  BufferPool buffers_;
  std::atomic<std::size_t> promised_{0};
  std::size_t least_spare_ = 0;   // posted and not promised, since the last tidy()
  std::vector<Buffer*> refused_;  // the provider had no room for them
  // They failed, and are posted again when something arrives or more are promised. A peer that dies
  // takes those along that its messages had come to (ofi_rxm fetches large ones by reading).
  std::vector<Buffer*> failed_;
};

}  // namespace weft::core
