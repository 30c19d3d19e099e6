#include "nixl/notification.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "nixl/wire.hpp"

namespace weft::nixl {
namespace {

// A part without its agent and bytes takes less than that.
constexpr std::size_t head = 96;
// Of one notification: what a sender of another kind could ask this side to keep room for.
constexpr std::uint32_t most_parts = 1 << 20;

Blob blob_of(const flatbuffers::FlatBufferBuilder& builder) {
  const auto* begin = reinterpret_cast<const std::byte*>(builder.GetBufferPointer());
  return Blob(begin, begin + builder.GetSize());
}

Blob encode_part(std::uint64_t id, std::size_t index, std::size_t count, const std::string& agent,
                 const char* bytes, std::size_t length) {
  flatbuffers::FlatBufferBuilder builder(length + agent.size() + head);
  const auto name = agent.empty() ? 0 : builder.CreateString(agent);
  const auto data = builder.CreateVector(reinterpret_cast<const std::uint8_t*>(bytes), length);
  builder.Finish(wire::CreateNotificationPart(builder, id, static_cast<std::uint32_t>(index),
                                              static_cast<std::uint32_t>(count), name, data));
  return blob_of(builder);
}

std::size_t parts_for(std::size_t bytes, std::size_t slice, std::size_t carriers) {
  return std::max({(bytes + slice - 1) / slice, carriers, std::size_t{1}});
}

std::string slice_of(const wire::NotificationPart& part) {
  if (part.bytes() == nullptr) return {};
  return std::string(reinterpret_cast<const char*>(part.bytes()->data()), part.bytes()->size());
}

}  // namespace

Result<Outgoing> Outgoing::make(std::uint64_t id, const std::string& agent, std::string bytes,
                                std::size_t signal_bytes, std::size_t carriers) {
  const std::size_t needed = agent.size() + head;
  if (signal_bytes <= needed)
    return fail(Code::invalid_argument,
                fmt::format("signals carry {} bytes between these two (max_message), and a "
                            "notification's head takes {}",
                            signal_bytes, needed));
  const std::size_t slice = signal_bytes - needed;
  const std::size_t parts = parts_for(bytes.size(), slice, carriers);
  if (parts > most_parts)
    return fail(Code::invalid_argument,
                fmt::format("a notification of {} bytes takes too many signals of {} bytes "
                            "(max_message)",
                            bytes.size(), signal_bytes));
  return Outgoing(id, agent, std::move(bytes), slice, parts, carriers);
}

Blob Outgoing::part(std::size_t index) const {
  const std::size_t begin = std::min(index * slice_, bytes_.size());
  const std::size_t length = std::min(slice_, bytes_.size() - begin);
  return encode_part(id_, index, parts_, index == 0 ? agent_ : std::string(), bytes_.data() + begin,
                     length);
}

Blob withdrawal(std::uint64_t id) {
  return encode_part(id, 0, 0, {}, nullptr, 0);
}

std::optional<Notification> Assembly::take(const Blob& bytes) {
  const Verified<wire::NotificationPart> part(bytes.data(), bytes.size());
  if (!part || part->count() > most_parts) return std::nullopt;
  if (part->count() == 0) {
    open_.erase(part->id());
    return std::nullopt;
  }
  Open& open = open_[part->id()];
  if (open.parts == 0) open.parts = part->count();
  if (part->count() != open.parts || part->index() >= open.parts) return std::nullopt;
  if (part->agent() != nullptr) open.agent = part->agent()->str();
  open.slices.emplace(part->index(), slice_of(*part.operator->()));
  if (open.slices.size() < open.parts) return std::nullopt;
  Notification whole{std::move(open.agent), {}};
  for (const auto& [index, slice] : open.slices) whole.bytes += slice;
  open_.erase(part->id());
  return whole;
}

}  // namespace weft::nixl
