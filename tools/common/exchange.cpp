#include "common/exchange.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace weft::tool {
namespace {

// Engine's default for the largest message is 8 KiB.
constexpr std::size_t fragment_bytes = 8000;
constexpr std::size_t largest_document = std::size_t{256} << 20;

// The first byte of each fragment.
constexpr std::byte more_follows{1};
constexpr std::byte last{0};

// In which the end of a process is noticed at the latest.
constexpr auto goodbye_patience = std::chrono::seconds(3);

// Never raised: expecting it waits for the end of the connection.
constexpr std::uint64_t no_signal = ~std::uint64_t{0};

}  // namespace

Blob to_bytes(const Json& json) {
  const std::string text = json.dump();
  Blob bytes(text.size());
  std::memcpy(bytes.data(), text.data(), text.size());
  return bytes;
}

Result<Json> parse(Bytes bytes) {
  const auto* begin = reinterpret_cast<const char*>(bytes.data());
  // Printing takes stack for each level.
  constexpr int most_depth = 64;
  bool too_deep = false;
  const auto is_shallow = [&](int depth, Json::parse_event_t, const Json&) {
    too_deep = too_deep || depth > most_depth;
    return !too_deep;
  };
  Json json = Json::parse(begin, begin + bytes.size(), is_shallow, false);
  if (too_deep)
    return fail(Code::protocol_mismatch, "the other side's message is nested too deeply");
  if (json.is_discarded())
    return fail(Code::protocol_mismatch,
                fmt::format("the other side's message of {} bytes is no JSON", bytes.size()));
  return json;
}

Result<void> Exchange::tell(std::uint64_t tag, const Json& document) {
  const Blob bytes = to_bytes(document);
  const Deadline until = deadline();
  for (std::size_t at = 0; at < bytes.size(); at += fragment_bytes) {
    const Bytes piece = Bytes(bytes).subspan(at, std::min(fragment_bytes, bytes.size() - at));
    Blob fragment;
    fragment.reserve(1 + piece.size());
    fragment.push_back(at + piece.size() < bytes.size() ? more_follows : last);
    fragment.insert(fragment.end(), piece.begin(), piece.end());
    if (auto sent = peer_.send(tag, fragment, until); !sent) return sent;
  }
  return {};
}

Result<Json> Exchange::hear(std::uint64_t tag) {
  const Deadline until = deadline();
  Blob bytes;
  for (bool more = true; more;) {
    auto message = peer_.recv(tag, ~std::uint64_t{0}, until);
    if (!message) return fail(std::move(message.error()));
    if (message->bytes.empty() || bytes.size() > largest_document)
      return fail(Code::protocol_mismatch, "the other side sent a message that is none of weft's");
    more = message->bytes.front() == more_follows;
    bytes.insert(bytes.end(), message->bytes.begin() + 1, message->bytes.end());
  }
  return parse(bytes);
}

void Exchange::wait_for_goodbye(Nanoseconds timeout) {
  // Ends with an error in any case.
  if (auto never = peer_.expect(no_signal, 1)) (void)never->wait(Deadline::in(timeout));
}

Error Exchange::end_after(Error failure) {
  // A rail may notice the end of the other process before the control connection does, and what it
  // reports then is hard to understand.
  const bool may_be_echo = failure.code() == Code::fabric_failed ||
                           failure.code() == Code::remote_failed ||
                           failure.code() == Code::quarantined;
  if (may_be_echo && peer_.up()) wait_for_goodbye(goodbye_patience);
  if (!peer_.up() && failure.code() != Code::closed) {
    if (auto why = peer_.why_down()) failure = std::move(*why);
  }
  (void)peer_.disconnect();
  return failure;
}

}  // namespace weft::tool
