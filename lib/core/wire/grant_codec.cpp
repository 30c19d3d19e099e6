#include "wire/grant_codec.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "grant_generated.h"
#include "wire/aligned.hpp"
#include "wire/sentence.hpp"
#include "wire/ttl.hpp"

namespace weft::core {
namespace {

constexpr std::uint16_t version = 3;
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
bool read_words(const flatbuffers::Vector<const wire::EpochKey*>& from,
                std::vector<RailKey>& into) {
  if (from.size() > most_rails || !is_aligned(from)) return false;
  for (const wire::EpochKey* key : from) {
    if (key->rail() >= most_rails) return false;
    into.push_back({key->rail(), key->base(), key->key()});
  }
  return true;
}

bool read_keys(const flatbuffers::Vector<const wire::RailKey*>& from, std::vector<RailKey>& into) {
  if (from.size() > max_granted_keys || !is_aligned(from)) return false;
  for (const wire::RailKey* key : from) {
    if (key->rail() >= most_rails) return false;
    into.push_back({key->rail(), key->base(), key->key(), {key->from(), key->length()}});
  }
  return true;
}

/// Each key reaches all that is granted of its extent, and no rail has two for one.
bool keys_hold(const GrantDescription& grant) {
  constexpr std::uint64_t largest = std::uint64_t{1} << 63;  // where all of it is one extent
  if (!std::has_single_bit(grant.extent_bytes) || grant.segment_size > largest) return false;
  // What the importer keeps for each extent is bounded by this.
  if ((grant.segment_size - 1) / grant.extent_bytes >= max_granted_keys) return false;
  const std::uint64_t inside = grant.extent_bytes - 1;
  std::vector<std::pair<std::uint32_t, std::uint64_t>> seen;
  for (const RailKey& key : grant.keys) {
    const auto& [from, length] = key.part;
    if (length == 0 || from > grant.segment_size || length > grant.segment_size - from)
      return false;
    const std::uint64_t begin = from & ~inside;
    const std::uint64_t room = std::min(grant.extent_bytes, grant.segment_size - begin);
    if (length > room - (from - begin)) return false;
    const Range hull = hull_within(grant.ranges, {begin, room});
    if (hull.length > 0 && (hull.offset < from || hull.offset + hull.length > from + length))
      return false;
    seen.emplace_back(key.rail, begin);
  }
  std::sort(seen.begin(), seen.end());
  return std::adjacent_find(seen.begin(), seen.end()) == seen.end();
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

Range hull_within(std::span<const Range> ranges, const Range& part) {
  const std::uint64_t end = part.offset + part.length;
  const auto after = [](const Range& range, std::uint64_t offset) {
    return range.offset + range.length <= offset;
  };
  const auto first = std::lower_bound(ranges.begin(), ranges.end(), part.offset, after);
  if (first == ranges.end() || first->offset >= end) return {part.offset, 0};
  auto last = std::lower_bound(first, ranges.end(), end, after);
  if (last == ranges.end() || last->offset >= end) --last;
  const std::uint64_t begin = std::max(first->offset, part.offset);
  return {begin, std::min(last->offset + last->length, end) - begin};
}

Blob encode_grant(const GrantDescription& grant) {
  flatbuffers::FlatBufferBuilder builder(512);
  std::vector<wire::GrantedRange> ranges;
  for (const Range& range : grant.ranges) ranges.emplace_back(range.offset, range.length);
  std::vector<wire::RailKey> keys;
  for (const RailKey& key : grant.keys)
    keys.emplace_back(key.part.offset, key.part.length, key.base, key.key, key.rail);
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
                                 range_list, grant.extent_bytes, key_list, bounced_list,
                                 reason_list, grant.place.drive, grant.block_bytes));
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

  GrantDescription grant;
  grant.engine = wire.engine()->str();
  grant.incarnation = wire.incarnation();
  if (wire.address() != nullptr) grant.address = wire.address()->str();
  grant.segment = wire.segment();
  grant.segment_size = wire.segment_size();
  grant.place = {static_cast<MemoryKind>(wire.memory_kind()), wire.numa_node(), wire.device(),
                 wire.drive()};
  grant.rights = static_cast<Rights>(wire.rights());
  grant.lease = wire.lease()->id();
  grant.ttl = ttl_from(wire.lease()->ttl_ns());
  grant.epoch = wire.lease()->epoch();
  grant.extent_bytes = wire.extent_bytes();
  grant.block_bytes = wire.block_bytes();
  for (const wire::GrantedRange* range : *wire.ranges())
    grant.ranges.push_back({range->offset(), range->length()});
  if (!read_keys(*wire.keys(), grant.keys) ||
      !read_words(*wire.lease()->epoch_keys(), grant.epoch_keys) ||
      !read_bounced(wire, grant.bounced))
    return no_grant("it lists more rails than any machine has, or they lie askew");
  if (grant.place.kind > MemoryKind::buffered_file)
    return no_grant("its memory is of no known kind");
  if (!grant.bounced.empty() && grant.place.kind == MemoryKind::host)
    return no_grant("rails reach the CPU's memory");
  if (!ranges_hold(grant.ranges, grant.segment_size))
    return no_grant("its ranges overlap or leave the segment");
  if (!std::has_single_bit(grant.block_bytes)) return no_grant("its blocks are of no size");
  if (!keys_hold(grant)) return no_grant("its keys don't fit its ranges, or its extents");
  return grant;
}

}  // namespace weft::core
