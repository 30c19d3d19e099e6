// Memory, segments, grants, and peers' grants.
#include "python/binding/memory.hpp"

#include <fmt/format.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include <limits>
#include <utility>
#include <vector>
#include <weft/memory.hpp>
#include <weft/remote.hpp>
#include <weft/segment.hpp>

#include "base/descriptor.hpp"
#include "python/binding/errors.hpp"
#include "python/binding/files.hpp"
#include "python/binding/objects.hpp"
#include "python/binding/text.hpp"
#include "python/binding/waiting.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace weft::python {
namespace {

using Ranges = std::vector<std::pair<std::uint64_t, std::uint64_t>>;

Nanoseconds ttl_of(Seconds ttl) {
  if (!ttl) return unlimited;
  return duration_of(*ttl);
}

PyGrant grant(PySegment& self, Rights rights, const std::optional<Ranges>& ranges, Seconds ttl,
              Keys keys) {
  self.check();
  std::vector<Range> list;
  if (ranges && ranges->empty())
    raise(Error(Code::invalid_argument, "no ranges; None is all of the segment"));
  if (ranges)
    for (const auto& [offset, length] : *ranges) list.push_back({offset, length});
  auto made = [&] {
    const Unlocked others_run;
    return self.segment->grant(list, rights, ttl_of(ttl), keys);
  }();
  return {std::make_shared<Grant>(must(std::move(made))), self.segment, self.default_timeout,
          self.engine_over, self.buffer};
}

void close(PySegment& self, Seconds timeout) {
  if (self.closed) return;
  const Deadline deadline = deadline_of(timeout, self.default_timeout);
  const auto released = call_interruptibly(
      deadline, [segment = self.segment, deadline] { return segment->release(deadline); });
  if (!released && !*self.engine_over) raise(released.error());
  self.closed = true;
  self.tensors.clear();
  if (self.buffer) self.buffer->release();
}

nb::object owner(const PySegment& self) {
  return self.buffer && self.buffer->object().is_valid() ? self.buffer->object() : nb::none();
}

/// A tensor that lies in it must stay there while the segment is published from or written to. It
/// takes the place of one of the same name.
void watch(PySegment& self, nb::handle tensor, std::string name) {
  std::erase_if(self.tensors, [&](const Anchor& each) { return each.name() == name; });
  self.tensors.emplace_back(tensor, std::move(name));
}

/// Null, with Python's error set, where the memory is not this object's to show.
std::byte* shown(const PySegment& self, bool writable) {
  const char* const why = self.closed   ? "the segment was closed"
                          : self.buffer ? "the memory is another object's: see Segment.owner"
                          : self.segment->data() == nullptr
                              ? "a file is no memory that can be shown: see Segment.copy_from()"
                          : writable && self.read_only ? "the memory may be read and not written"
                                                       : nullptr;
  if (why == nullptr) return self.segment->data();
  PyErr_SetString(PyExc_BufferError, why);
  return nullptr;
}

/// A view keeps this object, and so the memory, even if the segment is closed meanwhile.
int give_memory(PyObject* object, Py_buffer* view, int flags) {
  const auto& self = *nb::inst_ptr<PySegment>(object);
  std::byte* const memory = shown(self, (flags & PyBUF_WRITABLE) == PyBUF_WRITABLE);
  if (memory == nullptr) return -1;
  return PyBuffer_FillInfo(view, object, memory, static_cast<Py_ssize_t>(self.segment->size()),
                           self.read_only ? 1 : 0, flags);
}

PyType_Slot memory_slots[] = {
    {Py_bf_getbuffer, reinterpret_cast<void*>(&give_memory)},
    {0, nullptr},
};

/// nanobind's object that has DLPack's methods.
nb::object dlpack(nb::handle object) {
  const auto& self = nb::cast<const PySegment&>(object);
  std::byte* const memory = shown(self, false);
  if (memory == nullptr) throw nb::python_error();
  const std::size_t bytes = self.segment->size();
  if (self.read_only)
    return nb::ndarray<nb::array_api, const std::uint8_t>(memory, {bytes}, object).cast();
  return nb::ndarray<nb::array_api, std::uint8_t>(memory, {bytes}, object).cast();
}

void quiescent_or_raise(const PyGrant& self, const Result<Revoked>& revoked) {
  if (!revoked) raise(revoked.error());
  if (*revoked == Revoked::quarantined) raise(self.grant->why_quarantined());
}

void revoke(PyGrant& self, Seconds timeout) {
  const Deadline deadline = deadline_of(timeout, self.default_timeout);
  const auto revoked = call_interruptibly(
      deadline, [grant = self.grant, deadline] { return grant->revoke(deadline); });
  if (revoked || !*self.engine_over) quiescent_or_raise(self, revoked);
}

void fence(PyGrant& self, FenceScope reach, Seconds timeout) {
  const Deadline deadline = deadline_of(timeout, self.default_timeout);
  quiescent_or_raise(self, call_interruptibly(deadline, [grant = self.grant, deadline, reach] {
                       return grant->fence(deadline, reach);
                     }));
}

nb::bytes blob(const PyGrant& self) {
  self.check();
  const Blob blob = self.grant->blob();
  return nb::bytes(blob.data(), blob.size());
}

const char* name_of(Rights rights) {
  return rights == Rights::read ? "read" : rights == Rights::write ? "write" : "read_write";
}

std::string describe(const Place& place) {
  constexpr const char* names[] = {"host", "device", "file", "buffered file"};
  std::string text = names[static_cast<std::size_t>(place.kind)];
  if (place.device >= 0) text += fmt::format(" of GPU {}", place.device);
  if (place.drive >= 0) text += fmt::format(" of drive {}", place.drive);
  if (place.numa_node >= 0) text += fmt::format(" on node {}", place.numa_node);
  return text;
}

void bind_enums(nb::module_& module) {
  nb::enum_<MemoryKind>(module, "MemoryKind", "The CPU's memory, a device's, or a file.")
      .value("host", MemoryKind::host)
      .value("device", MemoryKind::device)
      .value("file", MemoryKind::file, "By direct I/O.")
      .value("buffered_file", MemoryKind::buffered_file, "Through the page cache.");
  nb::enum_<Rights>(module, "Rights", "What a peer may do with granted memory.")
      .value("read", Rights::read)
      .value("write", Rights::write)
      .value("read_write", Rights::read_write);
  nb::enum_<Keys>(module, "Keys", "Whether a grant shares keys with others of its segment.")
      .value("automatic", Keys::automatic,
             "Where registering costs something: such a grant costs microseconds.")
      .value("own", Keys::own, "Nowhere: its keys are closed with it. Registers with each NIC.");
  nb::enum_<FenceScope>(module, "FenceScope", "How far Grant.fence() may go.")
      .value("grant", FenceScope::grant)
      .value("segment", FenceScope::segment)
      .value("rail", FenceScope::rail, "Closes rails and opens them again: hurts other peers.");
}

void bind_memory_class(nb::module_& module) {
  nb::class_<Memory> memory(module, "Memory",
                            "Fresh memory, or a file's, for Engine.add() to make a segment of.\n\n"
                            "Memory of Python objects needs none of this: Engine.add(array).");
  bind_file(memory);
  memory
      .def_static("own", &Memory::own, "bytes"_a,
                  "Fresh zeroed pages that the segment owns. OutOfMemory if the machine or the "
                  "control group has not as many left.")
      .def_static("huge", &Memory::huge, "bytes"_a, nb::kw_only(),
                  "page_bytes"_a = std::size_t{Memory::usual_huge_page},
                  "Fresh zeroed huge pages of `page_bytes`; `bytes` is rounded up to whole pages. "
                  "OutOfMemory if the system has not as many reserved, Unsupported if it has no "
                  "pages of this size.")
      .def_static("shared", &Memory::shared, "bytes"_a,
                  "Fresh zeroed pages behind a memfd, which peers on this host map: the fastest "
                  "memory to share with them.")
      .def_static("map", &Memory::map, "fd"_a, "offset"_a, "bytes"_a,
                  "`bytes` of a file from a page-aligned `offset`. Duplicates the descriptor. A "
                  "descriptor that is open for reading only gives a read-only segment.")
      .def("near_gpu", &Memory::near_gpu, "pci"_a,
           "The same, used together with the GPU at this PCI address (\"0000:53:00.0\").")
      .def("read_only", &Memory::read_only,
           "The same, as a source only: nothing is read into it, and no peer may write it.")
      .def_prop_ro("bytes", &Memory::bytes, "Size in bytes.")
      .def("__repr__",
           [](const Memory& self) { return fmt::format("<weft.Memory: {} bytes>", self.bytes()); });

  nb::class_<Place>(module, "Place", "Where memory lies.")
      .def(nb::init<MemoryKind, int, int, int>(), "kind"_a = MemoryKind::host, "numa_node"_a = -1,
           "device"_a = -1, "drive"_a = -1)
      .def_ro("kind", &Place::kind)
      .def_ro("numa_node", &Place::numa_node, "-1: unknown, or pages lie on several nodes.")
      .def_ro("device", &Place::device, "Number of the GPU in the topology; -1: none.")
      .def_ro("drive", &Place::drive,
              "Number of the drive in the topology that a file lies on; -1: none, or several.")
      .def("__repr__",
           [](const Place& self) { return fmt::format("<weft.Place: {}>", describe(self)); });
}

void bind_segment(nb::module_& module) {
  nb::class_<PySegment> segment(
      module, "Segment", nb::type_slots(memory_slots), nb::is_weak_referenceable(),
      "Memory that is registered with the engine's rails. Transfers name parts of it by offset.\n\n"
      "Engine.add() makes it. The object whose memory it is stays alive, and a buffer of Python's "
      "exported, until nothing can touch the memory any more: after close(), or, if the program "
      "forgets the segment, after its grants and transfers have ended. Until then numpy and torch "
      "refuse to move its memory (resize, share_memory_); an object that got other memory all the "
      "same, as by tensor.data = other, makes grant() and the transfers raise InvalidArgument.\n\n"
      "Weft's own memory (weft.Memory) is seen by numpy.asarray(segment), memoryview(segment), "
      "numpy.from_dlpack(segment) or torch.from_dlpack(segment), all without a copy: one dimension "
      "of uint8. A view keeps the memory mapped.\n\n"
      "As a context manager it is closed at the end.");
  bind_copies(segment);
  segment
      .def_prop_ro(
          "size", [](const PySegment& self) { return self.segment->size(); }, "Bytes.")
      .def("__len__", [](const PySegment& self) { return self.segment->size(); })
      .def_prop_ro(
          "address",
          [](const PySegment& self) {
            return reinterpret_cast<std::uintptr_t>(self.segment->data());
          },
          "Of its first byte in this process; 0 for device memory and files.")
      .def_prop_ro("place", [](const PySegment& self) { return self.segment->place(); })
      .def_prop_ro(
          "fd", [](const PySegment& self) { return self.segment->fd(); },
          "The memfd of Memory.shared or Memory.map, owned by the segment; else -1.")
      .def_prop_ro(
          "read_only", [](const PySegment& self) { return self.read_only; },
          "Whether it is a source only.")
      .def_prop_ro("owner", &owner, nb::sig("def owner(self) -> typing.Any"),
                   "The object whose memory it is; None for Weft's own, and once it is closed.")
      .def_prop_ro("closed", [](const PySegment& self) { return self.closed; })
      .def("grant", &grant, "rights"_a, "ranges"_a = nb::none(), nb::kw_only(),
           "ttl"_a = nb::none(), "keys"_a = Keys::automatic,
           "Lets peers use `ranges` of it, pairs of (offset, bytes); None: all of it.\n\n"
           "ttl: seconds; None: until it is revoked. When the time is over, peers stop by "
           "themselves; the memory is free only after Grant.revoke() or close(). "
           "PermissionDenied: Rights.write of read-only memory.")
      .def("close", &close, "timeout"_a = nb::none(),
           "Ends all grants, waits until no peer and no transfer uses the memory, unregisters it, "
           "and lets go of its owner. When it returns, nothing touches the memory any more.\n\n"
           "timeout: seconds; None: the engine's default_timeout. Raises Quarantined if it is "
           "still in use then: the memory stays registered, and must not be reused. May be called "
           "again.")
      .def(
          "__enter__", [](nb::object self) { return self; },
          nb::sig("def __enter__(self) -> Segment"))
      .def(
          "__exit__", [](PySegment& self, nb::args) { close(self, Seconds()); },
          nb::sig("def __exit__(self, *exception: object) -> None"))
      .def(
          "__dlpack__",
          [](nb::object self, nb::kwargs options) {
            return dlpack(self).attr("__dlpack__")(**options);
          },
          nb::sig("def __dlpack__(self, **options: typing.Any) -> typing.Any"))
      .def(
          "__dlpack_device__",
          [](nb::object self) { return dlpack(self).attr("__dlpack_device__")(); },
          nb::sig("def __dlpack_device__(self) -> tuple[int, int]"))
      // numpy asks for it where it gets no buffer, and would make an array of one object else.
      .def(
          "__array__",
          [](nb::object self, nb::args arguments, nb::kwargs options) {
            return nb::module_::import_("numpy").attr("array")(
                nb::steal(PyMemoryView_FromObject(self.ptr())), *arguments, **options);
          },
          nb::sig("def __array__(self, *arguments: typing.Any, **options: typing.Any) -> "
                  "typing.Any"))
      .def("_watch", &watch, "tensor"_a, "name"_a)
      .def("__repr__", [](const PySegment& self) {
        return fmt::format("<weft.Segment: {} bytes, {}{}{}>", self.segment->size(),
                           describe(self.segment->place()), self.read_only ? ", read-only" : "",
                           self.closed ? ", closed" : "");
      });
}

void bind_grants(nb::module_& module) {
  nb::class_<PyGrant>(
      module, "Grant", nb::is_weak_referenceable(),
      "A lease: the right of peers to read or write ranges of a segment.\n\n"
      "It holds until it is revoked, its time is over, or its segment is closed; not until this "
      "object goes. As a context manager it is revoked at the end.")
      .def_prop_ro("blob", &blob,
                   "The grant as bytes, some hundred. Any channel may carry them to a peer, where "
                   "Engine.import_grant() reads them. Every process that has them can use it.")
      .def_prop_ro(
          "lease_id", [](const PyGrant& self) { return self.grant->lease_id(); },
          "Identifies the grant within its engine.")
      .def(
          "renew",
          [](PyGrant& self, Seconds ttl) {
            self.check();
            must(self.grant->renew(ttl_of(ttl)));
          },
          "ttl"_a.none(),
          "Extends the grant to at least `ttl` seconds from now (None: without end). Raises Stale "
          "if it holds no more.")
      .def("revoke", &revoke, "timeout"_a = nb::none(),
           "Ends the grant. When it returns, the memory may be reused: no byte of a peer can "
           "arrive, and what a peer reads is not accepted.\n\n"
           "timeout: seconds; None: the engine's default_timeout. Raises Quarantined if a peer did "
           "not confirm by then. May be called again.")
      .def("fence", &fence, "reach"_a = FenceScope::grant, "timeout"_a = nb::none(),
           "As revoke(), without waiting for peers: closes the grant's keys. Unsupported where a "
           "rail can't cut off one grant alone, unless `reach` is FenceScope.rail.")
      .def(
          "__enter__", [](nb::object self) { return self; },
          nb::sig("def __enter__(self) -> Grant"))
      .def(
          "__exit__", [](PyGrant& self, nb::args) { revoke(self, Seconds()); },
          nb::sig("def __exit__(self, *exception: object) -> None"))
      .def("__repr__", [](const PyGrant& self) {
        return fmt::format("<weft.Grant: lease {}>", self.grant->lease_id());
      });

  nb::class_<Remote>(module, "Remote",
                     "A peer's grant: memory of the peer. Transfers name parts of it by offset.")
      .def_prop_ro("peer", &Remote::peer, "Name of the engine that owns the memory.")
      .def_prop_ro("segment_size", &Remote::segment_size,
                   "Of the peer's segment, in bytes. Offsets count from its start.")
      .def_prop_ro(
          "ranges",
          [](const Remote& self) {
            Ranges list;
            for (const Range& range : self.ranges()) list.emplace_back(range.offset, range.length);
            return list;
          },
          "The granted ranges, sorted: pairs of (offset, bytes).")
      .def_prop_ro("rights", &Remote::rights)
      .def_prop_ro("place", &Remote::place)
      .def("__repr__", [](const Remote& self) {
        return fmt::format("<weft.Remote: {} bytes of {}, {}>", self.segment_size(), self.peer(),
                           name_of(self.rights()));
      });
}

PySegment add_object(PyEngine& self, nb::handle object, bool read_only, const std::string& gpu) {
  const auto buffer = Buffer::of(object);
  Memory memory = Memory::adopt(buffer->address(), buffer->bytes(), buffer);
  read_only |= buffer->read_only();
  if (read_only) memory = memory.read_only();
  if (!gpu.empty()) memory = memory.near_gpu(gpu);
  auto added = [&] {
    const Unlocked others_run;
    return self.engine->add(memory);
  }();
  const auto segment = std::make_shared<Segment>(must(std::move(added)));
  buffer->check();  // Others ran meanwhile.
  return {segment, buffer, read_only, self.default_timeout, self.over, false, {}};
}

}  // namespace

PySegment add(PyEngine& self, nb::handle object, bool read_only, const std::string& near_gpu) {
  if (!nb::isinstance<Memory>(object)) return add_object(self, object, read_only, near_gpu);
  Memory memory = nb::cast<Memory>(object);
  if (read_only) memory = memory.read_only();
  const bool source = is_source(memory);
  if (!near_gpu.empty()) memory = memory.near_gpu(near_gpu);
  auto added = [&] {
    const Unlocked others_run;
    return self.engine->add(memory);
  }();
  auto segment = std::make_shared<Segment>(must(std::move(added)));
  const bool read = source || core::is_open_for_reading_only(segment->fd());
  return {std::move(segment), nullptr, read, self.default_timeout, self.over, false, {}};
}

PySegment share(PyEngine& self, nb::handle object, const std::string& name, Rights rights) {
  PySegment segment = add(self, object, false, "");
  must(self.engine->publish(name, must(segment.segment->grant({}, rights))));
  return segment;
}

void bind_memory(nb::module_& module) {
  bind_enums(module);
  bind_memory_class(module);
  bind_segment(module);
  bind_grants(module);
}

}  // namespace weft::python
