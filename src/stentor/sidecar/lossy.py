"""Lost host reads around any torch code: how "short works, medium hangs" is reproduced without the chip (DESIGN.md 8).

Owns what counts as a host read of device data. Every tensor counts as that, also on a build without a GPU, unless a
device type is named. The function mode sees what Python calls on a tensor, the dispatch mode what C++ does below it
(`x[mask]`, a size taken from a tensor); a read that the first has counted is not counted again by the second. Imports
torch, so it is imported only where torch already is. Knows no engine: any torch code can be put in it, the official
packages included.

Not seen: what other threads do, because torch's modes belong to a thread; `torch.cuda.synchronize()` and event waits,
which read nothing; reads of a tensor's storage, pickling among them; `torch.tensor([x[0]])`.
"""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, Literal

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from ..errors import EngineFailed

# Python's own ways to a tensor's numbers: on a CPU build many of them end in no operator that a dispatch mode sees.
_METHODS = {
    "item", "tolist", "cpu", "numpy", "is_nonzero", "allclose", "equal",
    "__array__", "__bool__", "__complex__", "__float__", "__format__", "__index__", "__int__", "__repr__",
}  # fmt: skip

# Operators that need a number, or the size of their own result, on the host.
_OPERATORS = {
    "_local_scalar_dense": "item",
    "bincount": "bincount",
    "equal": "equal",
    "masked_select": "masked_select",
    "nonzero": "nonzero",
    "_unique": "unique",
    "_unique2": "unique",
    "unique_dim": "unique",
    "unique_consecutive": "unique",
    "unique_dim_consecutive": "unique",
}
_WRITES_BY_INDEX = {"index_put", "index_put_", "_index_put_impl_"}
_MASKS = (torch.bool, torch.uint8)


class LostSignal(EngineFailed):
    """A host read of device data whose completion never came."""

    code = "lost_signal"


class Lossy:
    """Within it, each host read of device data is lost with probability `p`.

        with Lossy(0.01, seed=1) as lossy:
            model.generate(ids)
        assert lossy.losses.total() == 0, "or LostSignal was raised"

    A lost read raises LostSignal, or with on_loss="hang" waits for ever with the GIL released, as it does on the chip.
    With a `device` ("cuda"), only tensors of that type count. May be entered again; the draws go on.
    """

    def __init__(
        self, p: float, seed: int = 0, on_loss: Literal["raise", "hang"] = "raise", *, device: str | None = None
    ) -> None:
        self.reads: Counter[str] = Counter()
        self.losses: Counter[str] = Counter()
        self._p = p
        self._random = random.Random(seed)
        self._hangs = on_loss == "hang"
        self._device = device
        self._inside = False
        self._modes = ExitStack()

    def __enter__(self) -> Lossy:
        self._modes.enter_context(_Operators(self))
        self._modes.enter_context(_Methods(self))
        return self

    def __exit__(self, *_: object) -> None:
        self._modes.close()

    @contextmanager
    def read(self, name: str | None, tensors: tuple[Any, ...]) -> Iterator[None]:
        """Around one call. Where it reads the device (`name` says as what), it is counted, and perhaps lost."""
        if name is None or self._inside or not any(self._is_on_device(one) for one in tensors):
            yield
            return
        self._inside = True
        try:
            self._count(name)
            yield
        finally:
            self._inside = False

    def _is_on_device(self, value: Any) -> bool:
        return isinstance(value, torch.Tensor) and self._device in (None, value.device.type)

    def _count(self, name: str) -> None:
        self.reads[name] += 1
        if self._random.random() >= self._p:
            return
        self.losses[name] += 1
        if self._hangs:
            threading.Event().wait()
        raise LostSignal(f"the signal of read {self.reads.total()} ({name}) was lost")


class _Methods(TorchFunctionMode):  # type: ignore[misc, unused-ignore]
    def __init__(self, lossy: Lossy) -> None:
        super().__init__()
        self._lossy = lossy

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        with self._lossy.read(_method_read(func, args, kwargs or {}), args):
            return func(*args, **(kwargs or {}))


class _Operators(TorchDispatchMode):  # type: ignore[misc, unused-ignore]
    def __init__(self, lossy: Lossy) -> None:
        super().__init__()  # type: ignore[no-untyped-call, unused-ignore]
        self._lossy = lossy

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        with self._lossy.read(_operator_read(func, args, kwargs or {}), args):
            return func(*args, **(kwargs or {}))


def _method_read(func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> str | None:
    """What a call from Python reads the device as, if it does."""
    name: str = getattr(func, "__name__", "")
    if name == "to":
        return "to" if _goes_to_host(args, kwargs) else None
    return name if name in _METHODS else None


def _goes_to_host(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """`.to("cpu")` in so many words; `.to(x.device)` follows the model, and a non-blocking copy waits for nothing."""
    target = kwargs.get("device", args[1] if len(args) > 1 else None)
    if kwargs.get("non_blocking") or (len(args) > 3 and args[3]):
        return False
    return bool(target == "cpu")


def _operator_read(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str | None:
    """What an operator reads the device as, if it does."""
    name: str = func.overloadpacket.__name__
    if name == "index":
        return "index" if _has_mask(args[1]) else None
    if name in _WRITES_BY_INDEX:
        # one value goes by masked_fill, which needs no size
        return "index_put" if _has_mask(args[1]) and args[2].numel() != 1 else None
    if name == "_to_copy":
        return "to" if _copies_to_host(args[0], kwargs) else None
    if name == "copy_":
        return "copy_" if _fills_host(*args) else None
    if name == "repeat_interleave":
        return name if kwargs.get("output_size") is None else None
    return _OPERATORS.get(name)


def _copies_to_host(source: torch.Tensor, kwargs: dict[str, Any]) -> bool:
    target = kwargs.get("device")
    goes = target is not None and target.type == "cpu" and source.device.type != "cpu"
    return goes and not kwargs.get("non_blocking")


def _fills_host(target: torch.Tensor, source: torch.Tensor, non_blocking: bool = False) -> bool:
    """A copy that waits, from a device into memory of the host. Between tensors of one kind, nobody waits."""
    return target.device.type == "cpu" and source.device.type != "cpu" and not non_blocking


def _has_mask(indices: Any) -> bool:
    return any(one is not None and one.dtype in _MASKS for one in indices)
