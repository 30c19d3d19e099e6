// How libFuzzer changes topologies. hwloc 2.9 crashes at once where sets of processors and memory
// are wrong: so what is changed is mostly the values of other attributes, which is what Weft reads.
#include <algorithm>
#include <optional>
#include <random>

#include "target.hpp"

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t most);

namespace {

struct Span {
  std::size_t begin, end;
};

/// The value of an attribute behind `from`, without its quotes.
std::optional<Span> value_behind(std::string_view xml, std::size_t from) {
  const std::size_t open = xml.find("=\"", from);
  if (open == std::string_view::npos) return std::nullopt;
  const std::size_t close = xml.find('"', open + 2);
  if (close == std::string_view::npos || xml.substr(0, open).ends_with("set")) return std::nullopt;
  return Span{open + 2, close};
}

}  // namespace

/// libFuzzer calls it instead of its own.
extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t most, unsigned seed) {
  constexpr std::size_t longest_value = 64;
  std::minstd_rand random(seed);
  const std::string_view xml = weft::fuzz::text_of(data, size);
  std::optional<Span> value;
  if (size > 0 && seed % 16 != 0)
    for (int tries = 0; tries < 8 && !value; ++tries) value = value_behind(xml, random() % size);
  if (!value) return LLVMFuzzerMutate(data, size, most);
  std::string changed(xml.substr(value->begin, value->end - value->begin));
  const std::size_t room = std::max(changed.size(), longest_value);
  const std::size_t old_size = changed.size();
  changed.resize(room);
  changed.resize(LLVMFuzzerMutate(reinterpret_cast<std::uint8_t*>(changed.data()), old_size, room));
  for (char& c : changed)
    if (c < ' ' || c == '"' || c == '<' || c == '>' || c == '&') c = '_';
  const std::string whole =
      std::string(xml.substr(0, value->begin)) + changed + std::string(xml.substr(value->end));
  if (whole.size() > most) return LLVMFuzzerMutate(data, size, most);
  std::copy(whole.begin(), whole.end(), data);
  return whole.size();
}
