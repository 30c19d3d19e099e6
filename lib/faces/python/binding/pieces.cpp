#include "python/binding/pieces.hpp"

#include <fmt/format.h>
#include <nanobind/stl/array.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <array>
#include <limits>
#include <tuple>

#include "python/binding/errors.hpp"
#include "python/binding/text.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace weft::python {
namespace {

[[noreturn]] void refuse(const std::string& why) {
  raise(Error(Code::invalid_argument, why));
}

[[noreturn]] void refuse_negative(const char* name, std::int64_t value) {
  refuse(fmt::format("{} holds {}, and no number may be negative: cut off what pads the list", name,
                     value));
}

/// Raises if one is negative.
template <typename Integer>
void check_signs(std::span<const Integer> numbers, const char* name) {
  const auto first = std::find_if(numbers.begin(), numbers.end(), [](Integer n) { return n < 0; });
  if (first != numbers.end()) refuse_negative(name, *first);
}

template <typename Integer>
Integer read(const std::byte* at) {
  Integer value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

std::uint64_t read(const std::byte* at, std::size_t bytes, bool is_signed, const char* name) {
  if (is_signed) {
    const std::int64_t value = bytes == 8   ? read<std::int64_t>(at)
                               : bytes == 4 ? read<std::int32_t>(at)
                               : bytes == 2 ? read<std::int16_t>(at)
                                            : read<std::int8_t>(at);
    if (value < 0) refuse_negative(name, value);
    return static_cast<std::uint64_t>(value);
  }
  return bytes == 8   ? read<std::uint64_t>(at)
         : bytes == 4 ? read<std::uint32_t>(at)
         : bytes == 2 ? read<std::uint16_t>(at)
                      : read<std::uint8_t>(at);
}

/// One number for all, or one for each.
struct Column {
  std::optional<Integers> each;
  std::uint64_t all = 0;

  Column(nb::handle object, const char* name) {
    if (!PyLong_Check(object.ptr())) {
      each.emplace(object, name);
    } else if (!nb::try_cast(object, all)) {
      refuse(fmt::format("{}: a number from 0 to 2**64 - 1", name));
    }
  }
  std::uint64_t at(std::size_t row) const { return each ? each->at(row) : all; }
};

/// The number that all columns of more than one number agree on.
std::size_t rows_of(std::initializer_list<const Column*> columns) {
  std::optional<std::size_t> rows;
  for (const Column* column : columns) {
    if (!column->each) continue;
    if (column->each->dimensions() != 1) refuse("the offsets and lengths have one dimension each");
    if (rows && *rows != column->each->size())
      refuse(fmt::format("lists of {} and {} numbers", *rows, column->each->size()));
    rows = column->each->size();
  }
  return rows.value_or(1);
}

void make_pieces(Pieces* self, nb::handle local, nb::handle remote, nb::handle length) {
  const Column from(local, "local"), to(remote, "remote"), bytes(length, "length");
  std::vector<Pair> pairs(rows_of({&from, &to, &bytes}));
  for (std::size_t i = 0; i < pairs.size(); ++i) pairs[i] = {from.at(i), to.at(i), bytes.at(i)};
  new (self) Pieces{std::move(pairs)};
}

void make_paged(PagedPieces* self, std::uint64_t page_bytes, nb::handle local_pages,
                nb::handle remote_pages, std::uint64_t local_base, std::uint64_t remote_base,
                std::optional<std::uint64_t> local_stride,
                std::optional<std::uint64_t> remote_stride) {
  new (self) PagedPieces{PageNumbers(local_pages, "local_pages", true),
                         PageNumbers(remote_pages, "remote_pages", true),
                         page_bytes,
                         local_base,
                         local_stride.value_or(page_bytes),
                         remote_base,
                         remote_stride.value_or(page_bytes)};
}

int give_pairs(PyObject* self, Py_buffer* view, int flags) {
  const auto& pairs = nb::inst_ptr<Pieces>(self)->pairs;
  static_assert(sizeof(Pair) == 3 * sizeof(std::uint64_t));
  struct Shape {
    Py_ssize_t extents[2], strides[2];
  };
  if ((flags & PyBUF_WRITABLE) == PyBUF_WRITABLE) {
    PyErr_SetString(PyExc_BufferError, "a list of pieces can't be changed");
    return -1;
  }
  auto* const shape =
      new Shape{{static_cast<Py_ssize_t>(pairs.size()), 3}, {sizeof(Pair), sizeof(std::uint64_t)}};
  *view = {};
  view->buf = const_cast<Pair*>(pairs.data());
  view->obj = Py_NewRef(self);
  view->len = static_cast<Py_ssize_t>(pairs.size() * sizeof(Pair));
  view->itemsize = sizeof(std::uint64_t);
  view->readonly = 1;
  view->ndim = 2;
  view->format = (flags & PyBUF_FORMAT) != 0 ? const_cast<char*>("Q") : nullptr;
  view->shape = shape->extents;
  view->strides = shape->strides;
  view->internal = shape;
  return 0;
}

void take_pairs_back(PyObject*, Py_buffer* view) {
  struct Shape {
    Py_ssize_t extents[2], strides[2];
  };
  delete static_cast<Shape*>(view->internal);
}

PyType_Slot buffer_slots[] = {
    {Py_bf_getbuffer, reinterpret_cast<void*>(&give_pairs)},
    {Py_bf_releasebuffer, reinterpret_cast<void*>(&take_pairs_back)},
    {0, nullptr},
};

}  // namespace

Integers::Array Integers::array_of(nb::handle object) {
  Array array;
  if (nb::try_cast(object, array, false)) return array;
  // A list, a range or the like.
  const nb::object copy = nb::steal(
      PyObject_CallMethod(nb::module_::import_("array").ptr(), "array", "sO", "q", object.ptr()));
  if (!copy.is_valid()) throw nb::python_error();
  return nb::cast<Array>(copy);
}

std::optional<Integers> Integers::of_array(nb::handle object, const char* name) {
  Array array;
  if (!nb::try_cast(object, array, false)) return std::nullopt;
  return Integers(std::move(array), name);
}

Integers::Integers(nb::handle object, const char* name) : Integers(array_of(object), name) {}

Integers::Integers(Array array, const char* name) : name_(name), array_(std::move(array)) {
  using nb::dlpack::dtype_code;
  const auto type = array_.dtype();
  is_signed_ = type.code == static_cast<std::uint8_t>(dtype_code::Int);
  if (!is_signed_ && type.code != static_cast<std::uint8_t>(dtype_code::UInt))
    refuse(fmt::format("{}: an array of integers", name));
  if (array_.ndim() < 1 || array_.ndim() > 2)
    refuse(fmt::format("{}: an array of {} dimensions", name, array_.ndim()));
}

std::uint64_t Integers::at(std::size_t row, std::size_t column) const {
  const std::size_t bytes = array_.itemsize();
  std::int64_t elements = static_cast<std::int64_t>(row) * array_.stride(0);
  if (dimensions() == 2) elements += static_cast<std::int64_t>(column) * array_.stride(1);
  const auto* const at =
      static_cast<const std::byte*>(array_.data()) + elements * static_cast<std::int64_t>(bytes);
  return read(at, bytes, is_signed_, name_);
}

const void* Integers::dense(std::size_t bytes) const noexcept {
  const auto width = dimensions() == 2 ? static_cast<std::int64_t>(columns()) : 1;
  const bool rows_follow = size() < 2 || array_.stride(0) == width;
  const bool columns_follow = width == 1 || array_.stride(1) == 1;
  return array_.itemsize() == bytes && rows_follow && columns_follow ? array_.data() : nullptr;
}

PageNumbers::PageNumbers(nb::handle object, const char* name, bool kept) {
  const Integers& integers = integers_.emplace(object, name);
  if (integers.dimensions() != 1) refuse(fmt::format("{}: a list of page numbers", name));
  if (const void* numbers = integers.dense(sizeof(std::uint32_t)); numbers != nullptr) {
    if (integers.are_signed())
      check_signs(std::span(static_cast<const std::int32_t*>(numbers), integers.size()), name);
    numbers_ = {static_cast<const std::uint32_t*>(numbers), integers.size()};
    if (!kept) return;
    copy_.assign(numbers_.begin(), numbers_.end());
  } else {
    copy_.resize(integers.size());
    for (std::size_t i = 0; i < copy_.size(); ++i) {
      const std::uint64_t number = integers.at(i);
      if (number > std::numeric_limits<std::uint32_t>::max())
        refuse(fmt::format("{} holds {}, which is no page's number", name, number));
      copy_[i] = static_cast<std::uint32_t>(number);
    }
  }
  integers_.reset();
  numbers_ = copy_;
}

namespace {

/// Of a list of triples, or what else gives them.
std::vector<Pair> pairs_of(nb::handle object) {
  constexpr const char* wrong =
      "pieces are triples of numbers from 0: (local offset, remote offset, bytes)";
  nb::object list = nb::borrow(object);
  if (!PyList_Check(object.ptr()) && !PyTuple_Check(object.ptr())) {
    const nb::object iterator = nb::steal(PyObject_GetIter(object.ptr()));
    PyErr_Clear();
    if (!iterator.is_valid()) refuse(wrong);
    list = nb::steal(PySequence_List(iterator.ptr()));
    if (!list.is_valid()) throw nb::python_error();
  }
  std::vector<std::array<std::uint64_t, 3>> triples;
  if (!nb::try_cast(list, triples)) refuse(wrong);
  std::vector<Pair> pairs;
  pairs.reserve(triples.size());
  for (const auto& [local, remote, length] : triples) pairs.push_back({local, remote, length});
  return pairs;
}

}  // namespace

PieceArgument::PieceArgument(nb::handle object) {
  if (nb::isinstance<Pieces>(object)) {
    pairs_ = nb::cast<const Pieces&>(object).pairs;
    return;
  }
  if (nb::isinstance<Strided>(object)) {
    strided_ = nb::cast<const Strided&>(object);
    return;
  }
  if (nb::isinstance<PagedPieces>(object)) {
    paged_ = &nb::cast<const PagedPieces&>(object);
    return;
  }
  const bool in_python = PyList_Check(object.ptr()) || PyTuple_Check(object.ptr());
  if (!in_python) integers_ = Integers::of_array(object, "pieces");
  if (!integers_) {
    copy_ = pairs_of(object);
    pairs_ = copy_;
    return;
  }
  if (integers_->dimensions() != 2 || integers_->columns() != 3)
    refuse("an array of pieces has the shape (n, 3): local offset, remote offset, bytes");
  if (const void* pairs = integers_->dense(sizeof(std::uint64_t)); pairs != nullptr) {
    if (integers_->are_signed())
      check_signs(std::span(static_cast<const std::int64_t*>(pairs), 3 * integers_->size()),
                  "pieces");
    pairs_ = {static_cast<const Pair*>(pairs), integers_->size()};
    return;
  }
  copy_.reserve(integers_->size());
  for (std::size_t i = 0; i < integers_->size(); ++i)
    copy_.push_back({integers_->at(i, 0), integers_->at(i, 1), integers_->at(i, 2)});
  pairs_ = copy_;
}

std::size_t PieceArgument::size() const {
  if (strided_) return strided_->count;
  return paged_ != nullptr ? paged_->local_pages.get().size() : pairs_.size();
}

void bind_pieces(nb::module_& module) {
  nb::class_<Pieces>(module, "Pieces", nb::type_slots(buffer_slots),
                     "Pieces of a transfer, from three lists.\n\n"
                     "Reads as an array (n, 3) of uint64 without a copy: numpy.asarray(pieces).")
      .def("__init__", &make_pieces, "local"_a, "remote"_a, "length"_a,
           nb::sig("def __init__(self, local: typing.Any, remote: typing.Any, "
                   "length: typing.Any) -> None"),
           "Each is an array of n integers of any type, another iterable of them, or one number "
           "for all: bytes from the start of the local and of the remote segment, and bytes.")
      .def("__len__", [](const Pieces& self) { return self.pairs.size(); })
      .def("__repr__",
           [](const Pieces& self) { return fmt::format("<weft.Pieces: {}>", self.pairs.size()); });

  nb::class_<Strided>(module, "Strided",
                      "Pieces of one length at constant distances, such as rows of two matrices.")
      .def(
          "__init__",
          [](Strided* self, std::tuple<std::uint64_t, std::uint64_t, std::uint64_t> first,
             std::uint64_t count, std::uint64_t local_stride, std::uint64_t remote_stride) {
            const auto& [local, remote, length] = first;
            new (self) Strided{{local, remote, length}, count, local_stride, remote_stride};
          },
          "first"_a, "count"_a, "local_stride"_a, "remote_stride"_a,
          "first: (local offset, remote offset, bytes) of the first piece. count: how many. "
          "Strides: bytes between the starts of neighbours.")
      .def("__len__", [](const Strided& self) { return self.count; });

  nb::class_<PagedPieces>(module, "Paged",
                          "Pages of a paged cache: piece i is page local_pages[i] here and "
                          "remote_pages[i] there. Page p starts at base + p * stride.")
      .def("__init__", &make_paged, "page_bytes"_a, "local_pages"_a, "remote_pages"_a,
           nb::kw_only(), "local_base"_a = 0, "remote_base"_a = 0, "local_stride"_a = nb::none(),
           "remote_stride"_a = nb::none(),
           nb::sig("def __init__(self, page_bytes: int, local_pages: typing.Any, "
                   "remote_pages: typing.Any, *, local_base: int = 0, remote_base: int = 0, "
                   "local_stride: int | None = None, remote_stride: int | None = None) -> None"),
           "The lists are arrays of n integers, and are copied. Bases and "
           "strides are bytes; a stride of None is page_bytes.")
      .def("__len__", [](const PagedPieces& self) { return self.local_pages.get().size(); });
}

}  // namespace weft::python
