#include "wire/grant_codec.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "grant_generated.h"
#include "wire/aligned.hpp"
#include "wire/sentence.hpp"
#include "wire/ttl.hpp"

namespace weft::core {
namespace {

constexpr std::uint16_t version = 2;
// Far above any real machine.
constexpr std::size_t most_rails = 256;
constexpr std::size_t longest_name = 255;

bool ranges_hold(const std::vector<Range>& ranges, std::uint64_t size) {
  std::uint64_t end = 0;
  for (const Range& range : ranges) {
    if (range.length == 0 || range.offset < end) return false;
    if (range.offset > size || range.length > size - range.offset) return false;
    end = range.offset + range.length;
  }
  return !ranges.empty();
}

/// False if there are too many, or one of a rail that no machine has.
template <typename WireKey>
bool read_keys(const flatbuffers::Vector<const WireKey*>& from, std::vector<RailKey>& into) {
  if (from.size() > most_rails || !is_aligned(from)) return false;
  for (const WireKey* key : from) {
    if (key->rail() >= most_rails) return false;
    into.push_back({key->rail(), key->base(), key->key()});
  }
  return true;
}

bool read_bounced(const wire::Grant& from, std::vector<BouncedRail>& into) {
  if (from.bounced() == nullptr) return true;
  if (from.bounced()->size() > most_rails) return false;
  for (const std::uint32_t rail : *from.bounced()) {
    if (rail >= most_rails) return false;
    into.push_back({rail});
  }
  const auto* reasons = from.why_bounced();
  if (reasons == nullptr) return true;
  for (flatbuffers::uoffset_t i = 0; i < reasons->size() && i < into.size(); ++i)
    into[i].why = sentence_from(reasons->Get(i));
  return true;
}

tl::unexpected<Error> no_grant(std::string_view what) {
  return fail(Code::invalid_argument, fmt::format("this is not a grant of Weft's: {}", what));
}

}  // namespace

Blob encode_grant(const GrantDescription& grant) {
  flatbuffers::FlatBufferBuilder builder(512);
  std::vector<wire::GrantedRange> ranges;
  for (const Range& range : grant.ranges) ranges.emplace_back(range.offset, range.length);
  std::vector<wire::RailKey> keys;
  for (const RailKey& key : grant.keys) keys.emplace_back(key.base, key.key, key.rail);
  std::vector<wire::EpochKey> words;
  for (const RailKey& key : grant.epoch_keys) words.emplace_back(key.base, key.key, key.rail);
  const auto word_list = builder.CreateVectorOfStructs(words);
  const auto lease =
      wire::CreateLease(builder, grant.lease, ttl_to(grant.ttl), grant.epoch, word_list);
  const auto engine = builder.CreateString(grant.engine);
  const auto address = builder.CreateString(grant.address);
  const auto range_list = builder.CreateVectorOfStructs(ranges);
  const auto key_list = builder.CreateVectorOfStructs(keys);
  std::vector<std::uint32_t> bounced;
  std::vector<flatbuffers::Offset<flatbuffers::String>> reasons;  // one string for equal ones
  for (const BouncedRail& each : grant.bounced) {
    bounced.push_back(each.rail);
    reasons.push_back(builder.CreateSharedString(sentence_to(each.why)));
  }
  const auto bounced_list = builder.CreateVector(bounced);
  const auto reason_list = reasons.empty() ? 0 : builder.CreateVector(reasons);
  wire::FinishGrantBuffer(
      builder, wire::CreateGrant(builder, version, engine, grant.incarnation, address,
                                 grant.segment, grant.segment_size,
                                 static_cast<std::uint8_t>(grant.place.kind), grant.place.numa_node,
                                 grant.place.device, static_cast<std::uint8_t>(grant.rights), lease,
                                 range_list, key_list, bounced_list, reason_list));
  const auto* begin = reinterpret_cast<const std::byte*>(builder.GetBufferPointer());
  return Blob(begin, begin + builder.GetSize());
}

Result<GrantDescription> decode_grant(Bytes bytes) {
  // Scalars are read in place, and the bytes may lie at any address.
  const Blob blob(bytes.begin(), bytes.end());
  const auto* data = reinterpret_cast<const std::uint8_t*>(blob.data());
  flatbuffers::Verifier verifier(data, blob.size());
  // The shortest buffer that can hold a root offset and a file identifier.
  if (blob.size() < 8 || !wire::VerifyGrantBuffer(verifier))
    return no_grant(fmt::format("its {} bytes do not verify", blob.size()));
  const wire::Grant& wire = *wire::GetGrant(data);
  if (wire.version() != version)
    return fail(
        Code::protocol_mismatch,
        fmt::format("the grant has version {}, this engine reads {}", wire.version(), version));
  if (wire.engine()->size() == 0 || wire.engine()->size() > longest_name)
    return no_grant("its engine has no proper name");
  if (wire.ranges()->size() > max_granted_ranges || !is_aligned(*wire.ranges()))
    return no_grant("it lists more ranges than any grant may have, or they lie askew");
  if (wire.rights() < 1 || wire.rights() > 3) return no_grant("its rights are unknown");
  if (wire.memory_kind() > 1) return no_grant("its kind of memory is unknown");

  GrantDescription grant;
  grant.engine = wire.engine()->str();
  grant.incarnation = wire.incarnation();
  if (wire.address() != nullptr) grant.address = wire.address()->str();
  grant.segment = wire.segment();
  grant.segment_size = wire.segment_size();
  grant.place = {static_cast<MemoryKind>(wire.memory_kind()), wire.numa_node(), wire.device()};
  grant.rights = static_cast<Rights>(wire.rights());
  grant.lease = wire.lease()->id();
  grant.ttl = ttl_from(wire.lease()->ttl_ns());
  grant.epoch = wire.lease()->epoch();
  for (const wire::GrantedRange* range : *wire.ranges())
    grant.ranges.push_back({range->offset(), range->length()});
  if (!read_keys(*wire.keys(), grant.keys) ||
      !read_keys(*wire.lease()->epoch_keys(), grant.epoch_keys) ||
      !read_bounced(wire, grant.bounced))
    return no_grant("it lists more rails than any machine has, or they lie askew");
  if (!grant.bounced.empty() && grant.place.kind == MemoryKind::host)
    return no_grant("rails reach the CPU's memory");
  if (!ranges_hold(grant.ranges, grant.segment_size))
    return no_grant("its ranges overlap or leave the segment");
  return grant;
}

}  // namespace weft::core
