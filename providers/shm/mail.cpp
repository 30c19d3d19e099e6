#include "providers/shm/mail.hpp"

#include <algorithm>
#include <cerrno>

namespace weft::providers::shm {
namespace {

// More than the engine's credits let it have under way.
constexpr std::size_t most_waiting = 256;
// Looking whether a process lives is a system call: only for those that take nothing for long.
constexpr unsigned looks_before_asking = 256;

std::span<std::byte> bytes_of(const Local& local) {
  return {static_cast<std::byte*>(local.address), local.length};
}

bool known(std::uint64_t type) {
  return type == static_cast<std::uint64_t>(MessageClass::message) ||
         type == static_cast<std::uint64_t>(MessageClass::bounce);
}

}  // namespace

std::optional<Receives::Buffer> Receives::take(MessageClass type) {
  std::vector<Buffer>& buffers = of(type);
  if (buffers.empty()) return std::nullopt;
  const Buffer buffer = buffers.back();
  buffers.pop_back();
  return buffer;
}

bool Outbound::send(Posted& posted, const Local& local, MessageClass type) {
  if (given_up_ || messages_.size() >= most_waiting) return false;
  messages_.push_back({&posted, local, {static_cast<std::uint64_t>(type), local.length}});
  return true;
}

/// Writes what there is room for; true if that was the rest of it.
bool Outbound::stream(Message& message) {
  Slot& slot = neighbour_->slot();
  if (!message.begun) {
    if (writer_.room(slot) < sizeof message.head) return false;
    writer_.write(slot, std::as_bytes(std::span(&message.head, 1)));
    message.begun = true;
  }
  message.sent += writer_.write(slot, bytes_of(message.local).subspan(message.sent));
  message.end = writer_.written();
  return message.sent == message.local.length;
}

void Outbound::pump(std::vector<Ended>& ended, bool rare) {
  Slot& slot = neighbour_->slot();
  // Before the room is used: what is consumed later than this is news (ready()).
  const std::uint64_t consumed = slot.consumed.load(std::memory_order_seq_cst);
  const std::uint64_t before = writer_.written();
  while (streamed_ < messages_.size() && stream(messages_[streamed_])) ++streamed_;
  if (writer_.written() != before) {
    writer_.publish(slot);
    neighbour_->announce();
  }
  for (; streamed_ > 0 && messages_.front().end <= consumed; --streamed_) {
    ended.push_back({messages_.front().posted, messages_.front().local.length, {}});
    messages_.pop_front();
  }
  idle_looks_ = consumed == seen_ ? idle_looks_ + 1 : 0;
  seen_ = consumed;
  if (messages_.empty() || (idle_looks_ < looks_before_asking && !rare)) return;
  idle_looks_ = 0;
  if (neighbour_->closed()) return give_up({ECONNRESET, "the peer closed its endpoint"}, ended);
  if (neighbour_->gone()) return give_up({ECONNRESET, "the peer's process has ended"}, ended);
}

void Outbound::give_up(const Outcome& why, std::vector<Ended>& ended) {
  for (const Message& message : messages_) ended.push_back({message.posted, 0, why});
  messages_.clear();
  streamed_ = 0;
  given_up_ = true;
}

bool Outbound::ready() const noexcept {
  return !messages_.empty() && neighbour_->slot().consumed.load(std::memory_order_seq_cst) != seen_;
}

/// Reads a head and finds a buffer for it; false if it has to wait for more.
bool Inbound::begin(std::size_t available, Receives& receives, std::vector<Ended>& ended) {
  if (!within_) {
    if (available < sizeof head_) return false;
    reader_.read(*slot_, std::as_writable_bytes(std::span(&head_, 1)));
    within_ = true;
    received_ = 0;
    broken_ = !known(head_.type);
    if (broken_) return false;
  }
  const auto buffer = receives.take(static_cast<MessageClass>(head_.type));
  waiting_ = !buffer;
  if (waiting_) return false;
  buffer_ = *buffer;
  if (head_.length > buffer_.local.length) {
    // Its bytes are skipped.
    ended.push_back({buffer_.posted, 0, {EMSGSIZE, "the message is larger than the buffer"}});
    buffer_.posted = nullptr;
    buffer_.local = {};
  }
  return true;
}

bool Inbound::take(Receives& receives, std::vector<Ended>& ended) {
  bool taken = false;
  while (!broken_) {
    auto available = reader_.available(*slot_);
    broken_ = !available;
    if (broken_) break;
    if (!within_ || waiting_) {
      if (!begin(*available, receives, ended)) break;
      taken = true;
      continue;  // the head has been read since
    }
    const auto wanted =
        static_cast<std::size_t>(std::min<std::uint64_t>(head_.length - received_, *available));
    if (wanted == 0 && received_ < head_.length) break;
    if (buffer_.posted != nullptr)
      reader_.read(*slot_, bytes_of(buffer_.local).subspan(received_, wanted));
    else
      reader_.skip(wanted);
    received_ += wanted;
    taken = taken || wanted > 0;
    if (received_ < head_.length) continue;
    if (buffer_.posted != nullptr) ended.push_back({buffer_.posted, received_, {}});
    buffer_ = {};
    within_ = false;
    taken = true;
  }
  if (taken) reader_.publish(*slot_);
  return taken;
}

void Inbound::reset(Receives& receives) {
  if (buffer_.posted != nullptr) receives.post(static_cast<MessageClass>(head_.type), buffer_);
  buffer_ = {};
  slot_->written.store(0);
  slot_->consumed.store(0);
}

}  // namespace weft::providers::shm
