#include "python/binding/files.hpp"

#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/variant.h>

#include <filesystem>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "base/descriptor.hpp"
#include "python/binding/errors.hpp"
#include "python/binding/pieces.hpp"
#include "python/binding/waiting.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace weft::python {
namespace {

Memory file(const std::variant<int, std::filesystem::path>& which, std::uint64_t offset,
            std::size_t bytes, bool direct, bool read_only, bool create, bool durable,
            unsigned queue_depth, std::uint64_t bytes_in_flight, double timeout,
            std::uint64_t checked_block, const std::optional<std::filesystem::path>& sums,
            bool reserve) {
  const FileOptions options{direct,
                            read_only,
                            create,
                            durable,
                            queue_depth,
                            bytes_in_flight,
                            duration_of(timeout),
                            checked_block,
                            sums ? sums->string() : "",
                            reserve};
  if (const auto* path = std::get_if<std::filesystem::path>(&which))
    return Memory::file(path->string(), offset, bytes, options);
  return Memory::file(std::get<int>(which), offset, bytes, options);
}

/// The arrays that name them may change meanwhile.
std::vector<Pair> list_of(const PieceArgument& pieces) {
  return pieces.visit([](const auto& named) -> std::vector<Pair> {
    if constexpr (std::is_convertible_v<decltype(named), std::span<const Pair>>)
      return {named.begin(), named.end()};
    else
      raise(Error(Code::invalid_argument,
                  "Segment.copy_from() takes triples: weft.Pieces, or an array (n, 3)"));
  });
}

void copy_from(PySegment& self, const PySegment& source, nb::handle pieces, Seconds timeout) {
  const Deadline deadline = deadline_of(timeout, self.default_timeout);
  self.check();
  source.check();
  must(call_interruptibly(
      deadline, [to = self.segment, from = source.segment, pairs = list_of(PieceArgument(pieces)),
                 deadline] { return to->copy_from(*from, pairs, deadline); }));
}

}  // namespace

bool is_source(const Memory& memory) {
  if (memory.is_read_only()) return true;
  const bool of_descriptor = memory.source() == Memory::Source::file && memory.path().empty();
  return of_descriptor && core::is_open_for_reading_only(memory.fd());
}

void bind_file(nb::class_<Memory>& memory) {
  const FileOptions usual;
  memory.def_static(
      "file", &file, "file"_a, "offset"_a = 0, "bytes"_a = 0, nb::kw_only(),
      "direct"_a = usual.direct, "read_only"_a = usual.read_only, "create"_a = usual.create,
      "durable"_a = usual.durable, "queue_depth"_a = usual.queue_depth,
      "bytes_in_flight"_a = usual.bytes_in_flight,
      "timeout"_a = std::chrono::duration<double>(usual.timeout).count(),
      "checked_block"_a = usual.checked_block, "sums"_a = nb::none(), "reserve"_a = usual.reserve,
      "`bytes` of a file or a block device from `offset` on; 0: up to its end.\n\n"
      "file: a path, or a descriptor, which the caller keeps. A descriptor that is open for "
      "reading "
      "only gives a read-only segment.\n"
      "direct: past the page cache, in whole pages of 4096 bytes; where the file system refuses "
      "it, through the cache: Segment.place says which.\n"
      "create: the file is made, or made longer, if that is needed; that of a descriptor grows as "
      "it is written.\n"
      "durable: a write is done only once the device has the bytes for good.\n"
      "queue_depth, bytes_in_flight: what the drive has at a time; the smallest of its files'.\n"
      "timeout: seconds, after which what the drive has not done has failed.\n"
      "checked_block: bytes of a block, each of which has its XXH3 in a file of sums, so that a "
      "read of one that does not match raises Corrupt; 0: none has. Pieces are whole blocks.\n"
      "sums: the file of sums; None: the path with '.xxh3' behind it.\n"
      "reserve: room on the disk is reserved at once, or Engine.add() raises.\n\n"
      "NotFound, PermissionDenied and the like come from Engine.add(). The file is never mapped: "
      "Segment.address is 0.");
}

void bind_copies(nb::class_<PySegment>& segment) {
  segment.def(
      "copy_from", &copy_from, "source"_a, "pieces"_a, "timeout"_a = nb::none(),
      "Copies pieces of `source` into this segment, and waits: between a file and the CPU's memory "
      "of one engine, without a peer.\n\n"
      "pieces: triples (offset here, offset in source, bytes), as an array (n, 3), weft.Pieces or "
      "a list. timeout: seconds; None: the engine's default_timeout.\n\n"
      "Raises with the file's path and the system's error; TimedOut if the drive has not done it "
      "in time. Then both segments stay in use until it has.");
}

}  // namespace weft::python
