// Control messages: one frame, as it came, and with a header that tells its size.
#include <cstring>

#include "target.hpp"
#include "wire/control_codec.hpp"

namespace {

using namespace weft;
using namespace weft::core;

/// What was read can be told again, but for messages of later versions.
void look_at(const Blob& frame) {
  const Result<ControlMessage> message = decode(frame);
  if (!message) {
    fuzz::require(message.error().code() == Code::protocol_mismatch, "an error of another kind");
    return;
  }
  if (std::holds_alternative<UnknownMessage>(*message)) return;
  const Result<Blob> told = encode(*message);
  fuzz::require(told.has_value(), "a message that was read can't be written");
  const Result<ControlMessage> again = decode(*told);
  fuzz::require(again && again->index() == message->index(), "what was written can't be read");
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const Bytes bytes = fuzz::bytes_of(data, size);
  Blob frame(bytes.begin(), bytes.end());
  look_at(frame);
  if (frame.size() < limits::frame_header) return 0;
  const auto told = static_cast<std::uint32_t>(frame.size() - limits::frame_header);
  std::memcpy(frame.data(), &told, sizeof told);
  look_at(frame);
  return 0;
}
