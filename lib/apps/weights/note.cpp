#include "weights/note.hpp"

#include <array>
#include <cstring>
#include <span>
#include <type_traits>

namespace weft::weights {
namespace {

template <typename T>
constexpr bool is_number = std::is_arithmetic_v<T> || std::is_enum_v<T>;

/// Numbers go as the machine has them: all machines that Weft runs on are little-endian.
class Writer {
 public:
  template <typename T>
  requires is_number<T>
  void operator()(const T& value) {
    const auto* bytes = reinterpret_cast<const std::byte*>(&value);
    out.insert(out.end(), bytes, bytes + sizeof value);
  }
  void operator()(const std::string& text) { append(std::as_bytes(std::span(text))); }
  void operator()(const Blob& blob) { append(blob); }
  template <typename T>
  std::uint64_t size(const std::vector<T>& list) {
    (*this)(std::uint64_t{list.size()});
    return list.size();
  }
  Blob out;

 private:
  void append(Bytes bytes) {
    (*this)(std::uint64_t{bytes.size()});
    out.insert(out.end(), bytes.begin(), bytes.end());
  }
};

class Reader {
 public:
  explicit Reader(Bytes bytes) : left_(bytes) {}
  template <typename T>
  requires is_number<T>
  void operator()(T& value) {
    std::array<std::byte, sizeof(T)> bytes{};
    if (take(bytes.data(), bytes.size())) std::memcpy(&value, bytes.data(), sizeof value);
  }
  void operator()(bool& value) {
    std::uint8_t byte = 0;
    (*this)(byte);
    value = byte != 0;
  }
  void operator()(std::string& text) {
    text.resize(count());
    take(text.data(), text.size());
  }
  void operator()(Blob& blob) {
    blob.resize(count());
    take(blob.data(), blob.size());
  }
  template <typename T>
  std::uint64_t size(std::vector<T>& list) {
    list.resize(count());
    return list.size();
  }
  bool all_read() const { return good_ && left_.empty(); }
  void refuse() { good_ = false; }

 private:
  /// Each item has a byte at least: no count is believed that is larger than what is left.
  std::uint64_t count() {
    std::uint64_t value = 0;
    (*this)(value);
    if (value > left_.size()) good_ = false;
    return good_ ? value : 0;
  }
  bool take(void* to, std::size_t bytes) {
    good_ &= bytes <= left_.size();
    if (!good_) return false;
    if (bytes > 0) std::memcpy(to, left_.data(), bytes);
    left_ = left_.subspan(bytes);
    return true;
  }
  Bytes left_;
  bool good_ = true;
};

/// One list of fields for both directions.
template <typename Archive, typename List, typename Each>
void visit_list(Archive& archive, List& list, Each&& each) {
  archive.size(list);
  for (auto& item : list) each(item);
}

template <typename Archive, typename D>
void visit_dims(Archive& archive, D& dims) {
  std::vector<std::uint64_t> values(dims.begin(), dims.end());
  visit_list(archive, values, archive);
  if constexpr (!std::is_const_v<D>) dims = Dims(std::span<const std::uint64_t>(values));
}

template <typename Archive, typename N>
void visit(Archive& archive, N& note) {
  archive(note.kind);
  archive(note.round.leader);
  archive(note.round.number);
  archive(note.call);
  archive(note.step);
  archive(note.rank);
  archive(note.side);
  archive(note.stand);
  archive(note.commit);
  archive(note.outcome);
  archive(note.microseconds);
  archive(note.text);
  archive(note.description.name);
  archive(note.description.host);
  archive(note.description.nics);
  archive(note.description.gbps);
  visit_list(archive, note.description.shards, [&](auto& shard) {
    archive(shard.name);
    archive(shard.dtype);
    visit_dims(archive, shard.shape);
    visit_dims(archive, shard.begin);
    visit_dims(archive, shard.extent);
    archive(shard.segment);
    archive(shard.offset);
    visit_dims(archive, shard.strides);
  });
  archive(note.verify);
  visit_list(archive, note.members, [&](auto& member) {
    archive(member.rank);
    archive(member.address);
  });
  visit_list(archive, note.sources, [&](auto& source) {
    archive(source.address);
    archive(source.stage);
    archive(source.writes);
  });
  visit_list(archive, note.sends, [&](auto& send) {
    archive(send.to);
    archive(send.stage);
    archive(send.passed_on);
    visit_list(archive, send.pieces, [&](auto& piece) {
      archive(piece.src_segment);
      archive(piece.dst_segment);
      archive(piece.src_offset);
      archive(piece.dst_offset);
      archive(piece.length);
      archive(piece.count);
      archive(piece.src_stride);
      archive(piece.dst_stride);
    });
  });
  visit_list(archive, note.grants, archive);
}

}  // namespace

Blob encode(const Note& note) {
  Writer writer;
  visit(writer, note);
  return std::move(writer.out);
}

std::optional<Note> decode(Bytes bytes) {
  Reader reader(bytes);
  Note note;
  visit(reader, note);
  const bool known = note.kind <= NoteKind::outcome && note.side <= Side::subscriber &&
                     note.stand <= Stand::voided && note.outcome <= Outcome::unknown;
  for (const Shard& shard : note.description.shards)
    if (shard.dtype > DType::boolean) reader.refuse();
  if (!known || !reader.all_read()) return std::nullopt;
  return note;
}

}  // namespace weft::weights
