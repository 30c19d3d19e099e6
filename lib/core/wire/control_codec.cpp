#include "wire/control_codec.hpp"

#include <flatbuffers/flatbuffers.h>
#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <string_view>

#include "control_generated.h"
#include "wire/aligned.hpp"
#include "wire/sentence.hpp"
#include "wire/ttl.hpp"

namespace weft::core {
namespace {

namespace fb = weft::wire::control;
using flatbuffers::FlatBufferBuilder;
using flatbuffers::Offset;

/// Depth: envelope, hello, rail. Tables: one for each rail, and some.
constexpr flatbuffers::uoffset_t max_depth = 8;
constexpr flatbuffers::uoffset_t max_tables = limits::rails + 16;

bool is_name(std::string_view name) {
  return !name.empty() && name.size() <= limits::name &&
         std::none_of(name.begin(), name.end(), is_control_character);
}

struct Body {
  fb::Body type;
  Offset<void> value;
};

template <typename Table>
Body body(Offset<Table> table) {
  return {fb::BodyTraits<Table>::enum_value, table.Union()};
}

Offset<flatbuffers::Vector<std::uint8_t>> bytes_of(FlatBufferBuilder& to, Bytes bytes) {
  return to.CreateVector(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
}

Offset<flatbuffers::String> sentence_of(FlatBufferBuilder& to, std::string_view text) {
  return to.CreateString(sentence_to(text));
}

template <typename... Args>
tl::unexpected<Error> malformed(fmt::format_string<Args...> text, Args&&... args) {
  return fail(Code::protocol_mismatch,
              "malformed control message: " + fmt::format(text, std::forward<Args>(args)...));
}

Offset<flatbuffers::Vector<const fb::RenewedKey*>> keys_of(FlatBufferBuilder& to,
                                                           const std::vector<RenewedKey>& keys) {
  std::vector<fb::RenewedKey> out;
  out.reserve(keys.size());
  for (const RenewedKey& each : keys)
    if (!each.why_lost)
      out.emplace_back(each.lease, each.from, each.key, each.epoch_key, each.rail);
  return to.CreateVectorOfStructs(out);
}

Offset<flatbuffers::Vector<Offset<fb::LostKey>>> lost_of(FlatBufferBuilder& to,
                                                         const std::vector<RenewedKey>& keys) {
  std::vector<Offset<fb::LostKey>> out;
  for (const RenewedKey& each : keys)
    if (each.why_lost)
      out.push_back(fb::CreateLostKey(to, each.lease, each.from, each.epoch_key, each.rail,
                                      to.CreateSharedString(sentence_to(*each.why_lost))));
  if (out.empty()) return 0;
  return to.CreateVector(out);
}

std::size_t count_lost(const std::vector<RenewedKey>& keys) {
  return static_cast<std::size_t>(std::count_if(
      keys.begin(), keys.end(), [](const RenewedKey& each) { return each.why_lost.has_value(); }));
}

struct Encoder {
  FlatBufferBuilder& to;

  Body operator()(const Hello& hello) const {
    const Introduction& who = hello.introduction;
    std::vector<Offset<fb::Rail>> rails;
    rails.reserve(who.rails.size());
    for (const RailAddress& rail : who.rails)
      rails.push_back(fb::CreateRail(to, to.CreateString(rail.provider), rail.protocol,
                                     rail.address_format, rail.same_host_only,
                                     bytes_of(to, rail.address), rail.mbps, rail.packet));
    return body(fb::CreateHello(to, to.CreateString(who.name), who.incarnation,
                                to.CreateString(who.address), to.CreateVector(rails), who.token,
                                who.max_message, who.message_credits, who.bounce_buffers,
                                who.bounce_buffer_bytes, hello.host.pid, hello.host.descriptor,
                                to.CreateString(hello.host.boot),
                                to.CreateString(hello.host.socket), bytes_of(to, hello.host.pass)));
  }
  Body operator()(const Proof& proof) const {
    if (proof.proven) return body(fb::CreateProof(to, bytes_of(to, proof.nonce)));
    return body(fb::CreateProof(to, 0, sentence_of(to, proof.reason)));
  }
  Body operator()(const Choice&) const { return body(fb::CreateChoice(to)); }
  Body operator()(const Duplicate& duplicate) const {
    return body(fb::CreateDuplicate(to, duplicate.token));
  }
  Body operator()(const Lost&) const { return body(fb::CreateLost(to)); }
  Body operator()(const Ready& ready) const {
    std::vector<Offset<fb::RailOut>> out;
    out.reserve(ready.out.size());
    for (const RailOut& each : ready.out)
      out.push_back(fb::CreateRailOut(to, each.rail, sentence_of(to, each.why)));
    return body(fb::CreateReady(to, to.CreateVector(out)));
  }
  Body operator()(const Refusal& refusal) const {
    return body(fb::CreateRefusal(to, static_cast<std::uint8_t>(refusal.code),
                                  sentence_of(to, refusal.reason)));
  }
  Body operator()(const Heartbeat& heartbeat) const {
    return body(fb::CreateHeartbeat(to, heartbeat.progressing));
  }
  Body operator()(const Goodbye& goodbye) const {
    return body(fb::CreateGoodbye(to, sentence_of(to, goodbye.reason), goodbye.taken));
  }
  Body operator()(const Notice& notice) const { return std::visit(*this, notice); }
  Body operator()(const LookupRequest& lookup) const {
    return body(fb::CreateLookupRequest(to, lookup.request, to.CreateString(lookup.name)));
  }
  Body operator()(const LookupAbandoned& lookup) const {
    return body(fb::CreateLookupAbandoned(to, lookup.request));
  }
  Body operator()(const LookupReply& reply) const {
    return body(fb::CreateLookupReply(to, reply.request, bytes_of(to, reply.grant)));
  }
  Body operator()(const SignalFailed& failed) const {
    return body(fb::CreateSignalFailed(to, failed.signal, static_cast<std::uint8_t>(failed.code),
                                       sentence_of(to, failed.reason), failed.reads,
                                       failed.carried));
  }
  Body operator()(const LeaseRenewed& renewed) const {
    return body(fb::CreateLeaseRenewed(to, renewed.lease));
  }
  Body operator()(const KeysReplaced& replaced) const {
    const auto renewed = keys_of(to, replaced.renewed);
    const auto lost = lost_of(to, replaced.renewed);
    return body(fb::CreateKeysReplaced(to, replaced.request, renewed, lost));
  }
  Body operator()(const KeysDrained& drained) const {
    return body(fb::CreateKeysDrained(to, drained.request));
  }
  Body operator()(const RevokeRequest& revoke) const {
    return body(fb::CreateRevokeRequest(to, revoke.lease));
  }
  Body operator()(const RevokeConfirmed& revoked) const {
    return body(fb::CreateRevokeConfirmed(to, revoked.lease, revoked.strays));
  }
  Body operator()(const GrantQuery& query) const {
    return body(fb::CreateGrantQuery(to, query.request, query.lease, query.maps));
  }
  Body operator()(const GrantStatus& status) const {
    const auto lent = status.lent ? fb::CreateLent(to, bytes_of(to, status.lent->handle),
                                                   status.lent->offset, status.lent->address)
                                  : flatbuffers::Offset<fb::Lent>();
    return body(fb::CreateGrantStatus(
        to, status.request, status.held, ttl_to(status.left), keys_of(to, status.renewed), lent,
        sentence_of(to, status.not_lent), lost_of(to, status.renewed)));
  }
  Body operator()(const FallbackMessage& fallback) const {
    return body(fb::CreateFallbackMessage(to, bytes_of(to, fallback.bytes)));
  }
  Body operator()(const RailFollowed& followed) const {
    return body(fb::CreateRailFollowed(to, followed.rail));
  }
  Body operator()(const CreditsGivenBack& given_back) const {
    return body(fb::CreateCreditsGivenBack(to, given_back.count));
  }
  Body operator()(const BounceCredits& credits) const {
    return body(fb::CreateBounceCredits(to, static_cast<std::uint8_t>(credits.step), credits.giver,
                                        credits.user, credits.count));
  }
  Body operator()(const FallbackTaken&) const { return body(fb::CreateFallbackTaken(to)); }
  Body operator()(const CheckRequest& check) const {
    std::vector<fb::CheckedRange> ranges;
    ranges.reserve(check.ranges.size());
    for (const Range& range : check.ranges) ranges.emplace_back(range.offset, range.length);
    return body(
        fb::CreateCheckRequest(to, check.request, check.lease, to.CreateVectorOfStructs(ranges)));
  }
  Body operator()(const CheckReply& reply) const {
    return body(
        fb::CreateCheckReply(to, reply.request, static_cast<std::uint8_t>(reply.code), reply.hash));
  }
  Body operator()(const RailMoved& moved) const {
    return body(fb::CreateRailMoved(to, moved.rail, bytes_of(to, moved.address),
                                    keys_of(to, moved.renewed), lost_of(to, moved.renewed)));
  }
  Body operator()(const UnknownMessage&) const { return {fb::Body::NONE, 0}; }
};

Result<void> check_outgoing(const Introduction& who) {
  const auto too_large = [](std::string_view what, std::size_t size, std::size_t bound) {
    return fail(Code::invalid_argument,
                fmt::format("{} has {} bytes, more than the {} allowed", what, size, bound));
  };
  if (!is_name(who.name))
    return fail(Code::invalid_argument,
                fmt::format("an engine's name has 1 to {} bytes without control characters; this "
                            "one has {} bytes",
                            limits::name, who.name.size()));
  if (who.address.size() > limits::address)
    return too_large("the engine's address", who.address.size(), limits::address);
  if (who.rails.size() > limits::rails)
    return fail(Code::invalid_argument, fmt::format("{} rails, more than the {} that peers accept",
                                                    who.rails.size(), limits::rails));
  for (const RailAddress& rail : who.rails)
    if (rail.address.size() > limits::address || rail.provider.size() > limits::name)
      return too_large("a rail's address", rail.address.size(), limits::address);
  return {};
}

Result<void> check_outgoing(const ControlMessage& message) {
  if (const auto* hello = std::get_if<Hello>(&message)) return check_outgoing(hello->introduction);
  if (std::holds_alternative<UnknownMessage>(message))
    return fail(Code::internal, "a control message without content");
  const auto* notice = std::get_if<Notice>(&message);
  if (notice == nullptr) return {};
  if (const auto* lookup = std::get_if<LookupRequest>(notice);
      lookup != nullptr && lookup->name.size() > limits::name)
    return fail(Code::invalid_argument, fmt::format("a grant's name has {} bytes, more than {}",
                                                    lookup->name.size(), limits::name));
  if (const auto* reply = std::get_if<LookupReply>(notice);
      reply != nullptr && reply->grant.size() > limits::grant)
    return fail(Code::invalid_argument, fmt::format("a grant has {} bytes, more than {}",
                                                    reply->grant.size(), limits::grant));
  if (const auto* fallback = std::get_if<FallbackMessage>(notice);
      fallback != nullptr && fallback->bytes.size() > limits::message)
    return fail(Code::invalid_argument, fmt::format("a message has {} bytes, more than {}",
                                                    fallback->bytes.size(), limits::message));
  if (const auto* check = std::get_if<CheckRequest>(notice);
      check != nullptr && check->ranges.size() > limits::checked_ranges)
    return fail(Code::invalid_argument, fmt::format("a check of {} ranges, more than {}",
                                                    check->ranges.size(), limits::checked_ranges));
  const std::vector<RenewedKey>* renewed = nullptr;
  if (const auto* moved = std::get_if<RailMoved>(notice)) renewed = &moved->renewed;
  if (const auto* replaced = std::get_if<KeysReplaced>(notice)) renewed = &replaced->renewed;
  if (renewed != nullptr && renewed->size() > limits::renewed_keys)
    return fail(Code::invalid_argument, fmt::format("{} renewed keys, more than {}",
                                                    renewed->size(), limits::renewed_keys));
  if (renewed != nullptr && count_lost(*renewed) > limits::lost_keys)
    return fail(Code::invalid_argument,
                fmt::format("{} lost keys, more than {}", count_lost(*renewed), limits::lost_keys));
  return {};
}

Blob blob_from(const flatbuffers::Vector<std::uint8_t>& bytes) {
  const auto* begin = reinterpret_cast<const std::byte*>(bytes.data());
  return Blob(begin, begin + bytes.size());
}

Code code_from(std::uint8_t code) {
  const bool known = code >= static_cast<std::uint8_t>(Code::invalid_argument) &&
                     code <= static_cast<std::uint8_t>(last_code);
  return known ? static_cast<Code>(code) : Code::remote_failed;
}

Result<RailAddress> from(const fb::Rail& rail) {
  if (rail.provider()->size() > limits::name)
    return malformed("a provider's name of {} bytes", rail.provider()->size());
  if (rail.address()->size() > limits::address)
    return malformed("a rail address of {} bytes", rail.address()->size());
  return RailAddress{.provider = sentence_from(rail.provider()),
                     .protocol = rail.protocol(),
                     .address_format = rail.address_format(),
                     .same_host_only = rail.same_host_only(),
                     .address = blob_from(*rail.address()),
                     .mbps = rail.mbps(),
                     .packet = rail.packet()};
}

/// A part of a path: it must not lead out of its folder.
bool is_socket_name(std::string_view name) {
  return name.size() <= limits::socket && std::all_of(name.begin(), name.end(), [](char each) {
           return (each >= 'a' && each <= 'z') || (each >= '0' && each <= '9') || each == '-';
         });
}

Result<void> from(const fb::Hello& hello, HostClaim& out) {
  out.pid = hello.pid();
  out.descriptor = hello.descriptor();
  out.boot = sentence_from(hello.boot());
  if (hello.socket() != nullptr) {
    if (!is_socket_name(hello.socket()->string_view()))
      return malformed("a socket's name of {} bytes", hello.socket()->size());
    out.socket = hello.socket()->str();
  }
  if (hello.pass() == nullptr) return {};
  if (hello.pass()->size() != out.pass.size())
    return malformed("a pass of {} bytes", hello.pass()->size());
  std::memcpy(out.pass.data(), hello.pass()->data(), out.pass.size());
  return {};
}

Result<ControlMessage> from(const fb::Hello& hello) {
  const std::string_view name = hello.name()->string_view();
  if (!is_name(name))
    return malformed("an engine's name of {} bytes, or with control characters", name.size());
  Hello out;
  Introduction& who = out.introduction;
  who.name = name;
  who.incarnation = hello.incarnation();
  if (hello.address() != nullptr) {
    if (hello.address()->size() > limits::address)
      return malformed("an engine's address of {} bytes", hello.address()->size());
    who.address = sentence_from(hello.address());
  }
  if (hello.rails() != nullptr) {
    if (hello.rails()->size() > limits::rails) return malformed("{} rails", hello.rails()->size());
    for (const fb::Rail* rail : *hello.rails()) {
      Result<RailAddress> read = from(*rail);
      if (!read) return fail(std::move(read.error()));
      who.rails.push_back(std::move(*read));
    }
  }
  who.token = hello.token();
  who.max_message = hello.max_message();
  who.message_credits = hello.message_credits();
  who.bounce_buffers = hello.bounce_buffers();
  who.bounce_buffer_bytes = hello.bounce_buffer_bytes();
  return from(hello, out.host).map([&] { return ControlMessage(std::move(out)); });
}

Result<ControlMessage> from(const fb::Proof& proof) {
  Proof out{.reason = sentence_from(proof.reason())};
  if (proof.nonce() == nullptr) return out;
  if (proof.nonce()->size() != out.nonce.size())
    return malformed("a nonce of {} bytes", proof.nonce()->size());
  out.proven = true;
  std::memcpy(out.nonce.data(), proof.nonce()->data(), out.nonce.size());
  return out;
}

Result<ControlMessage> from(const fb::Ready& ready) {
  Ready out;
  if (ready.out() == nullptr) return out;
  if (ready.out()->size() > limits::rails) return malformed("{} rails out", ready.out()->size());
  for (const fb::RailOut* each : *ready.out()) {
    if (each->rail() >= limits::rails) return malformed("rail {} out", each->rail());
    out.out.push_back({each->rail(), sentence_from(each->why())});
  }
  return out;
}

Result<ControlMessage> from(const fb::LookupRequest& lookup) {
  if (lookup.name()->size() > limits::name)
    return malformed("a grant's name of {} bytes", lookup.name()->size());
  return Notice(LookupRequest{lookup.request(), lookup.name()->str()});
}

Result<ControlMessage> from(const fb::LookupReply& reply) {
  if (reply.grant()->size() > limits::grant)
    return malformed("a grant of {} bytes", reply.grant()->size());
  return Notice(LookupReply{reply.request(), blob_from(*reply.grant())});
}

Result<ControlMessage> from(const fb::FallbackMessage& fallback) {
  if (fallback.message()->size() > limits::message)
    return malformed("a message of {} bytes", fallback.message()->size());
  return Notice(FallbackMessage{blob_from(*fallback.message())});
}

Result<ControlMessage> from(const fb::BounceCredits& credits) {
  const auto step = static_cast<BounceCredits::Step>(credits.step());
  if (step < BounceCredits::Step::wanted || step > BounceCredits::Step::given_back)
    return malformed("step {} of bounce buffers' credits", credits.step());
  if (credits.giver() >= limits::rails || credits.user() >= limits::rails)
    return malformed("credits of rail {} for rail {}", credits.giver(), credits.user());
  return Notice(BounceCredits{step, credits.giver(), credits.user(), credits.count()});
}

Result<ControlMessage> from(const fb::CheckRequest& check) {
  if (check.ranges() == nullptr || check.ranges()->size() == 0 ||
      check.ranges()->size() > limits::checked_ranges)
    return malformed("a check of {} ranges", check.ranges() ? check.ranges()->size() : 0);
  if (!is_aligned(*check.ranges())) return malformed("the ranges of a check lie askew");
  CheckRequest out{check.request(), check.lease(), {}};
  for (const fb::CheckedRange* range : *check.ranges())
    out.ranges.push_back({range->offset(), range->length()});
  return Notice(std::move(out));
}

using WireLost = flatbuffers::Vector<Offset<fb::LostKey>>;

Result<void> add_lost(const WireLost* lost, std::vector<RenewedKey>& out) {
  if (lost == nullptr) return {};
  if (lost->size() > limits::lost_keys) return malformed("{} lost keys", lost->size());
  for (const fb::LostKey* key : *lost) {
    if (key->rail() >= limits::rails) return malformed("a lost key of rail {}", key->rail());
    out.push_back(
        {key->lease(), key->rail(), key->from(), 0, key->epoch_key(), sentence_from(key->why())});
  }
  return {};
}

Result<std::vector<RenewedKey>> from(const flatbuffers::Vector<const fb::RenewedKey*>* keys,
                                     const WireLost* lost) {
  std::vector<RenewedKey> out;
  if (auto added = add_lost(lost, out); !added) return fail(std::move(added.error()));
  if (keys == nullptr) return out;
  if (out.size() + keys->size() > limits::renewed_keys)
    return malformed("{} renewed keys", out.size() + keys->size());
  if (!is_aligned(*keys)) return malformed("renewed keys lie askew");
  out.reserve(out.size() + keys->size());
  for (const fb::RenewedKey* key : *keys) {
    if (key->rail() >= limits::rails) return malformed("a key of rail {}", key->rail());
    out.push_back(
        {key->lease(), key->rail(), key->from(), key->key(), key->epoch_key(), std::nullopt});
  }
  return out;
}

Result<std::optional<Lent>> from(const fb::Lent* lent) {
  if (lent == nullptr) return std::nullopt;
  if (lent->handle()->size() > limits::handle)
    return malformed("a handle of {} bytes", lent->handle()->size());
  return Lent{blob_from(*lent->handle()), lent->offset(), lent->address()};
}

Result<ControlMessage> from(const fb::GrantStatus& status) {
  auto lent = from(status.lent());
  if (!lent) return fail(std::move(lent.error()));
  return from(status.renewed(), status.lost())
      .map([&](std::vector<RenewedKey>&& renewed) -> ControlMessage {
        return Notice(GrantStatus{status.request(), status.held(), ttl_from(status.left_ns()),
                                  std::move(renewed), std::move(*lent),
                                  sentence_from(status.not_lent())});
      });
}

Result<ControlMessage> from(const fb::RailMoved& moved) {
  if (moved.rail() >= limits::rails) return malformed("a move of rail {}", moved.rail());
  if (moved.address() != nullptr && moved.address()->size() > limits::address)
    return malformed("a rail address of {} bytes", moved.address()->size());
  return from(moved.renewed(), moved.lost())
      .map([&](std::vector<RenewedKey>&& renewed) -> ControlMessage {
        return Notice(RailMoved{moved.rail(),
                                moved.address() ? blob_from(*moved.address()) : Blob(),
                                std::move(renewed)});
      });
}

Result<ControlMessage> from(const fb::KeysReplaced& replaced) {
  return from(replaced.renewed(), replaced.lost())
      .map([&](std::vector<RenewedKey>&& renewed) -> ControlMessage {
        return Notice(KeysReplaced{replaced.request(), std::move(renewed)});
      });
}

Result<ControlMessage> from(const fb::Envelope& envelope) {
  switch (envelope.body_type()) {
    case fb::Body::NONE:
      return malformed("it is empty");
    case fb::Body::Hello:
      return from(*envelope.body_as_Hello());
    case fb::Body::Proof:
      return from(*envelope.body_as_Proof());
    case fb::Body::Choice:
      return Choice{};
    case fb::Body::Duplicate:
      return Duplicate{envelope.body_as_Duplicate()->token()};
    case fb::Body::Lost:
      return Lost{};
    case fb::Body::Ready:
      return from(*envelope.body_as_Ready());
    case fb::Body::Refusal: {
      const fb::Refusal& refusal = *envelope.body_as_Refusal();
      return Refusal{code_from(refusal.code()), sentence_from(refusal.reason())};
    }
    case fb::Body::Heartbeat:
      return Heartbeat{envelope.body_as_Heartbeat()->progressing()};
    case fb::Body::Goodbye: {
      const fb::Goodbye& goodbye = *envelope.body_as_Goodbye();
      return Goodbye{sentence_from(goodbye.reason()), goodbye.taken()};
    }
    case fb::Body::LookupRequest:
      return from(*envelope.body_as_LookupRequest());
    case fb::Body::LookupAbandoned:
      return Notice(LookupAbandoned{envelope.body_as_LookupAbandoned()->request()});
    case fb::Body::LookupReply:
      return from(*envelope.body_as_LookupReply());
    case fb::Body::SignalFailed: {
      const fb::SignalFailed& failed = *envelope.body_as_SignalFailed();
      return Notice(SignalFailed{failed.signal(), code_from(failed.code()),
                                 sentence_from(failed.reason()), failed.reads(), failed.carried()});
    }
    case fb::Body::LeaseRenewed:
      return Notice(LeaseRenewed{envelope.body_as_LeaseRenewed()->lease()});
    case fb::Body::KeysReplaced:
      return from(*envelope.body_as_KeysReplaced());
    case fb::Body::KeysDrained:
      return Notice(KeysDrained{envelope.body_as_KeysDrained()->request()});
    case fb::Body::RevokeRequest:
      return Notice(RevokeRequest{envelope.body_as_RevokeRequest()->lease()});
    case fb::Body::RevokeConfirmed: {
      const auto* revoked = envelope.body_as_RevokeConfirmed();
      return Notice(RevokeConfirmed{revoked->lease(), revoked->strays()});
    }
    case fb::Body::GrantQuery:
      return Notice(GrantQuery{envelope.body_as_GrantQuery()->request(),
                               envelope.body_as_GrantQuery()->lease(),
                               envelope.body_as_GrantQuery()->maps()});
    case fb::Body::GrantStatus:
      return from(*envelope.body_as_GrantStatus());
    case fb::Body::FallbackMessage:
      return from(*envelope.body_as_FallbackMessage());
    case fb::Body::RailFollowed:
      return Notice(RailFollowed{envelope.body_as_RailFollowed()->rail()});
    case fb::Body::FallbackTaken:
      return Notice(FallbackTaken{});
    case fb::Body::CreditsGivenBack:
      return Notice(CreditsGivenBack{envelope.body_as_CreditsGivenBack()->count()});
    case fb::Body::BounceCredits:
      return from(*envelope.body_as_BounceCredits());
    case fb::Body::CheckRequest:
      return from(*envelope.body_as_CheckRequest());
    case fb::Body::CheckReply: {
      const fb::CheckReply& reply = *envelope.body_as_CheckReply();
      return Notice(CheckReply{reply.request(),
                               reply.code() == 0 ? Code{} : code_from(reply.code()), reply.hash()});
    }
    case fb::Body::RailMoved:
      return from(*envelope.body_as_RailMoved());
  }
  return UnknownMessage{};
}

}  // namespace

Result<Blob> encode(const ControlMessage& message) {
  if (Result<void> checked = check_outgoing(message); !checked)
    return fail(std::move(checked.error()));
  FlatBufferBuilder builder;
  const Body body = std::visit(Encoder{builder}, message);
  fb::FinishSizePrefixedEnvelopeBuffer(builder, fb::CreateEnvelope(builder, body.type, body.value));
  const auto* begin = reinterpret_cast<const std::byte*>(builder.GetBufferPointer());
  return Blob(begin, begin + builder.GetSize());
}

Result<ControlMessage> decode(Bytes frame) {
  const auto* data = reinterpret_cast<const std::uint8_t*>(frame.data());
  if (frame.size() < limits::frame_header || frame.size() > limits::frame + limits::frame_header)
    return malformed("{} bytes", frame.size());
  flatbuffers::Verifier verifier(data, frame.size(), max_depth, max_tables);
  if (!fb::VerifySizePrefixedEnvelopeBuffer(verifier))
    return malformed("{} bytes that are not a valid frame", frame.size());
  return from(*fb::GetSizePrefixedEnvelope(data));
}

}  // namespace weft::core
