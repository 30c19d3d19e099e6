"""What keeps the memory of an object where it is while a segment has it.

bytearray, mmap and the like refuse to move while a buffer of theirs is exported. Arrays of numpy
and tensors of torch do not: peers would go on in what comes to lie in the old place.
"""

from __future__ import annotations

import contextlib
import sys
import threading
import weakref
from typing import Any

from ._errors import InvalidArgument

# What moves a tensor's storage, of torch.UntypedStorage: resize_() is FSDP's, too; the others are
# called by share_memory_() and by the queues of torch.multiprocessing.
_MOVERS = ("resize_", "_swap_data_ptr_", "_share_fd_cpu_", "_share_filename_cpu_")


# The attributes of storages, by all guards.
_guarding = threading.RLock()


def _refuse_to_move(*_: object, **__: object) -> None:
    raise BufferError(
        "the tensor's memory is a segment of Weft, which peers may use: close the segment first, "
        "or call share_memory_() before it becomes one"
    )


class Hold:
    """Of an object's memory, for as long as this lives.

    root: the object that the memory belongs to; it is the given one, or what that is a view of.
    memory: has the bytes, by the buffer protocol or DLPack.
    """

    def __init__(self, root: Any, memory: Any, keeper: object = None) -> None:
        self.root = root
        self.memory = memory
        self._keeper = keeper


class _Guard:
    """Of a storage: torch asks its object for what moves it, and an attribute comes first."""

    def __init__(self, storage: Any) -> None:
        # What is shared already, and a GPU's memory, stay there: they may be shared again.
        self._names = _MOVERS[:2] if storage.is_shared() else _MOVERS
        self._attributes = attributes = storage.__dict__
        with _guarding:
            # Another guard of it may end in between, in this thread too.
            while id(self) not in attributes.get("_weft_guards", ()):
                attributes.setdefault("_weft_guards", set()).add(id(self))
            for name in self._names:
                attributes[name] = _refuse_to_move

    def __del__(self) -> None:
        with _guarding:
            guards = self._attributes["_weft_guards"]
            guards.discard(id(self))
            if not guards:
                for name in ("_weft_guards", *self._names):
                    del self._attributes[name]


def _is_of(given: Any, module: str, name: str) -> bool:
    kind = getattr(sys.modules.get(module), name, None)
    return isinstance(kind, type) and isinstance(given, kind)


def is_tensor(given: Any) -> bool:
    return _is_of(given, "torch", "Tensor")


def is_array(given: Any) -> bool:
    return _is_of(given, "numpy", "ndarray")


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
    try:
        if tensor.numel() and not tensor.data_ptr():
            return "it has no memory"
    except RuntimeError as error:
        return f"it has no memory of its own (of a DTensor pass to_local()): {error}"
    return ""


def _is_dense(tensor: Any) -> bool:
    turned = tensor.permute(tuple(reversed(range(tensor.ndim))))
    return bool(tensor.is_contiguous() or turned.is_contiguous())


def _hold_tensor(root: Any, given: Any) -> Hold:
    import torch

    why = why_not_plain(root)
    if not why and given is root and not _is_dense(root):
        why = "its elements do not lie one after the other; make it contiguous first (contiguous())"
    if why:
        raise InvalidArgument(f"{type(root).__name__}: {why}")
    storage = root.untyped_storage()
    guard = _Guard(storage)
    if given is not root:
        return Hold(root, given, guard)
    # As plain bytes, for DLPack and numpy do not know all types.
    place = (root.data_ptr() - storage.data_ptr(), (root.numel() * root.element_size(),))
    flat = torch.empty(0, dtype=torch.uint8, device=root.device).set_(storage, *place)
    if flat.device.type == "cpu":
        with contextlib.suppress(RuntimeError):  # There may be no numpy.
            flat = flat.numpy()  # Keeps torch from resizing the storage.
    return Hold(root, flat, guard)


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


def hold(given: Any) -> Hold | None:
    """None where the exported buffer, or DLPack, is enough."""
    root = _root_of(given)
    if is_tensor(root):
        return _hold_tensor(root, given)
    if is_array(root):  # numpy resizes nothing that a weak reference is to.
        return Hold(root, given, weakref.ref(root))
    if any(kind.__module__ == "_ctypes" for kind in type(root).__mro__):
        return Hold(root, given)  # Nothing keeps ctypes.resize() from moving it.
    return None
