"""What keeps the memory of an object where it is while a segment has it.

bytearray, mmap and the like refuse to move while a buffer of theirs is exported. Arrays of numpy
and tensors of torch do not: peers would go on in what comes to lie in the old place.
"""

from __future__ import annotations

import sys
import weakref
from typing import Any

from ._errors import InvalidArgument

# What moves a tensor's storage, of torch.UntypedStorage: resize_() is FSDP's, too; the others are
# called by share_memory_() and by the queues of torch.multiprocessing.
_MOVERS = ("resize_", "_swap_data_ptr_", "_share_fd_cpu_", "_share_filename_cpu_")


def _refuse_to_move(*_: object, **__: object) -> None:
    raise BufferError(
        "the tensor's memory is a segment of Weft, which peers may use: close the segment first, "
        "or call share_memory_() before it becomes one"
    )


# Of types that do not move while a buffer is exported.
_KEEPERS = ("builtins", "array", "mmap")


class Hold:
    """Of an object's memory, for as long as this lives.

    root: the object that the memory belongs to; it is the given one, or what that is a view of.
    memory: has the bytes, by the buffer protocol or DLPack.
    """

    def __init__(self, root: Any, memory: Any) -> None:
        self.root = root
        self.memory = memory


class _OfArray(Hold):
    """numpy does not resize what a weak reference is to, whatever `refcheck` says."""

    def __init__(self, root: Any, memory: Any) -> None:
        super().__init__(root, memory)
        self._reference = weakref.ref(root)


class _OfTensor(Hold):
    """torch asks the storage's object for what moves it; attributes of that come first."""

    def __init__(self, root: Any, memory: Any) -> None:
        super().__init__(root, memory)
        storage = root.untyped_storage()
        # What is shared already stays there: it may be shared again. So does a GPU's memory.
        self._guarded = _MOVERS[:2] if storage.is_shared() else _MOVERS
        self._attributes = storage.__dict__
        self._storage = storage
        self._attributes["_weft_holds"] = self._attributes.get("_weft_holds", 0) + 1
        for name in self._guarded:
            self._attributes[name] = _refuse_to_move

    def __del__(self) -> None:
        self._attributes["_weft_holds"] -= 1
        if self._attributes["_weft_holds"] == 0:
            for name in ("_weft_holds", *self._guarded):
                del self._attributes[name]


def _has_buffer(given: Any) -> bool:
    try:
        memoryview(given).release()
    except (TypeError, BufferError):
        return False
    return True


def _is_of(given: Any, module: str, name: str) -> bool:
    kind = getattr(sys.modules.get(module), name, None)
    return isinstance(kind, type) and isinstance(given, kind)


def is_tensor(given: Any) -> bool:
    return _is_of(given, "torch", "Tensor")


def is_array(given: Any) -> bool:
    return _is_of(given, "numpy", "ndarray")


def _root_of(given: Any) -> Any:
    while True:
        if isinstance(given, memoryview):
            base = given.obj
        elif is_array(given):
            base = given.base
        else:
            return given
        if base is None:
            return given
        given = base


def why_not_plain(tensor: Any) -> str:
    """Why the bytes of a tensor's storage are not its values, and what to do; empty if they are."""
    import torch  # type: ignore[import-not-found]

    if tensor.device.type == "meta":
        return "it has no memory (its device is meta)"
    if tensor.layout != torch.strided or tensor.is_nested:
        return f"its layout is {tensor.layout}: pass the tensors that it consists of, or to_dense()"
    if tensor.is_quantized:
        return "it is quantized: pass int_repr()"
    if tensor.is_conj():
        return "it is a view that conjugates: pass resolve_conj()"
    if tensor.is_neg():
        return "it is a view that negates: pass resolve_neg()"
    return ""


def _bytes_of(tensor: Any) -> Any:
    """The same bytes, flat: for DLPack and numpy know not all types."""
    import torch

    why = why_not_plain(tensor)
    if not why and not any(
        each.is_contiguous() for each in (tensor, tensor.permute(*reversed(range(tensor.ndim))))
    ):
        why = (
            "its elements do not lie one after the other; make it contiguous first "
            "(Tensor.contiguous)"
        )
    if why:
        raise InvalidArgument(f"{type(tensor).__name__}: {why}")
    try:
        storage = tensor.untyped_storage()
        begin = tensor.data_ptr() - storage.data_ptr()
    except (NotImplementedError, RuntimeError) as error:
        raise InvalidArgument(
            f"{type(tensor).__name__}: it has no memory of its own (of a DTensor pass to_local()): "
            f"{error}"
        ) from None
    size = tensor.numel() * tensor.element_size()
    if size and not tensor.data_ptr():
        raise InvalidArgument(f"{type(tensor).__name__}: it has no memory")
    flat = torch.empty(0, dtype=torch.uint8, device=tensor.device).set_(storage, begin, (size,))
    if flat.device.type != "cpu":
        return flat
    try:
        return flat.numpy()  # torch refuses to resize a storage that numpy has seen.
    except RuntimeError:  # There is no numpy.
        return flat


def hold(given: Any) -> Hold | None:
    """None where the exported buffer, or DLPack, is enough."""
    root = _root_of(given)
    if is_tensor(root):
        return _OfTensor(root, _bytes_of(given) if given is root else given)
    if is_array(root):
        return _OfArray(root, given)
    if type(root).__module__ in _KEEPERS or not _has_buffer(root):
        return None
    return Hold(root, given)
