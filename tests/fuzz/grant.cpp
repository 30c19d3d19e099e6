// Grants, which may come from anywhere.
#include "target.hpp"
#include "wire/grant_codec.hpp"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace weft;
  const auto grant = core::decode_grant(fuzz::bytes_of(data, size));
  if (!grant) return 0;
  fuzz::require(!grant->engine.empty() && !grant->ranges.empty(), "a grant of nothing");
  std::uint64_t end = 0;
  for (const Range& range : grant->ranges) {
    fuzz::require(range.length > 0 && range.offset >= end, "ranges out of order");
    fuzz::require(
        range.length <= grant->segment_size && range.offset <= grant->segment_size - range.length,
        "a range beyond the segment");
    end = range.offset + range.length;
  }
  const Blob told = core::encode_grant(*grant);
  const auto again = core::decode_grant(told);
  fuzz::require(again.has_value(), "a grant that was read can't be read again");
  fuzz::require(core::encode_grant(*again) == told, "a grant changes by being read");
  return 0;
}
