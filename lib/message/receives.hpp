// Receives of one class of messages, posted ahead of them on one endpoint.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "base/log.hpp"
#include "message/buffer_pool.hpp"
#include "providers/endpoint.hpp"

namespace weft::core {

/// Whether a receive's buffer may be posted again, or whether its message is still needed.
enum class Received : bool { free, kept };

/// Posts one receive for each message that a peer may have under way. Any peer's message may take
/// any of them. `Owner` has `Received arrived(Buffer&, std::size_t length)`. Used by the rail's
/// owning thread only.
template <typename Owner>
class Receives final : private providers::CompletionHandler {
 public:
  Receives(providers::Endpoint& endpoint, std::string name, providers::MessageClass type,
           std::size_t buffer_bytes, Owner& owner)
      : endpoint_(endpoint),
        name_(std::move(name)),
        type_(type),
        owner_(owner),
        buffers_(endpoint, buffer_bytes) {}

  std::size_t buffer_bytes() const noexcept { return buffers_.buffer_bytes(); }
  /// For one more peer. Returns how many buffers it has allocated. May block.
  Result<std::size_t> add(std::size_t count) {
    const std::size_t missing = count - std::min(count, spare_);
    if (auto grown = buffers_.grow(missing); !grown) return fail(std::move(grown.error()));
    spare_ -= count - missing;
    while (Buffer* buffer = buffers_.take()) post(*buffer);
    post_all(failed_);
    return missing;
  }
  /// A peer is gone. Its receives can't be taken back: they are for the next peer.
  void release(std::size_t count) noexcept { spare_ += count; }
  /// A buffer whose message was kept.
  void post(Buffer& buffer) {
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
    } else {
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
  Owner& owner_;
  BufferPool buffers_;
  std::size_t spare_ = 0;         // posted for peers that are gone
  std::vector<Buffer*> refused_;  // the provider had no room for them
  // They failed, and are posted again when something arrives or a peer is added. A peer that dies
  // takes those along that its messages had come to (ofi_rxm fetches large ones by reading).
  std::vector<Buffer*> failed_;
};

}  // namespace weft::core
