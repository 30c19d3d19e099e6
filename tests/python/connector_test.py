"""The parts of weft.vllm.connector that need no vLLM: references, leases, layouts, loads."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy
import pytest
from support import PROVIDERS, pattern

import weft
from weft.vllm._caches import Caches, Layout, copies_between, regions_of
from weft.vllm._leases import Lease, Leases
from weft.vllm._loads import Load, Loader, Pages, Result
from weft.vllm._reference import Reference, Refused, digest_of

BLOCKS, TOKENS, LAYERS = 40, 16, 6
LEASE_SECONDS = 60.0
SECONDS = 20.0
ALL = Pages.of([(each, each) for each in range(BLOCKS)])


class Tensor:
    """What is asked of torch's."""

    def __init__(self, array: Any) -> None:
        self.array = array
        self.shape, self.dtype, self.device = array.shape, array.dtype, "cpu"

    def dim(self) -> int:
        return int(self.array.ndim)

    def stride(self) -> tuple[int, ...]:
        return tuple(each // self.array.itemsize for each in self.array.strides)

    def element_size(self) -> int:
        return int(self.array.itemsize)

    def data_ptr(self) -> int:
        return int(self.array.ctypes.data)

    def untyped_storage(self) -> Tensor:
        return self if self.array.base is None else Tensor(self.array.base)


class NumpyCaches(Caches):
    @staticmethod
    def _add(engine: weft.Engine, storage: Any, device: Any) -> weft.Segment:
        return engine.add(storage.array)


def cache(seed: int) -> dict[str, Tensor]:
    """Layers of two allocations, the numbers of which tell their position."""
    length = BLOCKS * 2 * TOKENS * 8
    both = [pattern(LAYERS // 2 * length, seed + each).copy() for each in range(2)]
    return {
        f"layers.{i}": Tensor(
            both[i % 2][i // 2 * length :][:length].reshape(BLOCKS, 2, TOKENS, 8)
        )
        for i in range(LAYERS)
    }


class Site:
    """Prefill's scheduler and worker, and decode's worker."""

    def __init__(self, provider: str, opened: contextlib.ExitStack, **settings: Any) -> None:
        def engine(name: str) -> weft.Engine:
            return opened.enter_context(weft.Engine(name=name, providers=[provider]))

        self.scheduler, self.prefill, decode = engine("s"), engine("p"), engine("d")
        self.theirs, self.ours = cache(1), cache(5)
        groups = {layer: 0 for layer in self.ours}
        shape: dict[str, Any] = {"blocks": BLOCKS, "groups": groups, "block_tokens": [TOKENS]}
        NumpyCaches(self.prefill, self.theirs, **shape)
        self.leases = Leases(self.scheduler, slots=2, ranks=1, seconds=LEASE_SECONDS)
        self.loader = Loader(
            decode, NumpyCaches(decode, self.ours, **shape),
            **{"rank": 0, "timeout": SECONDS, "verify": 0.0, "version": lambda: 0, **settings},
        )
        opened.callback(self.leases.close)
        opened.callback(self.loader.close)

    def reference(self, lease: Lease, blocks: list[int]) -> Reference:
        return Reference(
            lender=self.scheduler.address, workers=[self.prefill.address], slot=lease.slot,
            generation=lease.generation, seconds=LEASE_SECONDS, model="m", weights=0,
            tokens=len(blocks) * TOKENS, prompt="p", blocks=[blocks],
        )

    def load(self, reference: Reference, local: list[int]) -> Result:
        pages = Pages.of(list(zip(local, reference.blocks[0], strict=True)))
        self.loader.begin(Load("request", reference, [pages]))
        return self.result()

    def result(self) -> Result:
        until = time.monotonic() + 2 * SECONDS
        while not (results := self.loader.results()):
            assert time.monotonic() < until, "the load never ends"
            time.sleep(0.001)
        return results[0]

    def ended(self) -> list[tuple[str, bool]]:
        until = time.monotonic() + SECONDS
        while not (ended := self.leases.ended()):
            assert time.monotonic() < until, "prefill is not told"
            time.sleep(0.001)
        return ended

    def same(self, local: list[int], remote: list[int]) -> bool:
        return all(
            (self.ours[layer].array[local] == self.theirs[layer].array[remote]).all()
            for layer in self.ours
        )


@pytest.fixture(params=PROVIDERS)
def site(request: pytest.FixtureRequest) -> Iterator[Site]:
    with contextlib.ExitStack() as opened:
        yield Site(request.param, opened)


def test_blocks_come_and_prefill_is_told(site: Site) -> None:
    before = {layer: tensor.array.copy() for layer, tensor in site.ours.items()}
    for _ in range(5):  # More than there are slots.
        lease = site.leases.lend("a")
        result = site.load(site.reference(lease, [10, 11, 30]), [3, 5, 7])
        assert result.error is None
        assert result.bytes == 3 * LAYERS * 2 * TOKENS * 8
        assert site.ended() == [("a", True)]
    assert site.same([3, 5, 7], [10, 11, 30])
    others = [each for each in range(BLOCKS) if each not in (3, 5, 7)]
    assert all((site.ours[layer].array[others] == before[layer][others]).all() for layer in before)


def test_a_reference_is_good_once(site: Site) -> None:
    reference = site.reference(site.leases.lend("a"), [1])
    assert site.load(reference, [2]).error is None
    site.ended()
    for _ in range(2):  # At once, and when another request has the slot and the blocks.
        assert "does not keep" in str(site.load(reference, [2]).error)
        site.leases.lend("b")


def test_a_lease_that_ends_under_the_read_is_seen(site: Site) -> None:
    lease = site.leases.lend("a")
    reference = site.reference(lease, list(range(BLOCKS)))
    site.loader.begin(Load("request", reference, [ALL]))
    site.leases.end("a")  # Before, while or after bytes come: by then none counts.
    error = site.result().error
    assert error is None or "does not keep" in str(error)
    assert "does not keep" in str(site.load(reference, list(range(BLOCKS))).error)


def test_without_the_proof_wrong_blocks_are_taken() -> None:
    """So it is the proof that refuses, and nothing else."""
    with contextlib.ExitStack() as opened:
        site = Site("shm", opened, fenced=False)
        reference = site.reference(site.leases.lend("a"), [1])
        site.leases.end("a")
        site.theirs["layers.0"].array[1] = 77
        assert site.load(reference, [2]).error is None
        assert (site.ours["layers.0"].array[2] == 77).all()


def test_other_weights_are_refused() -> None:
    with contextlib.ExitStack() as opened:
        site = Site("shm", opened, version=lambda: 3)
        error = site.load(site.reference(site.leases.lend("a"), [1]), [2]).error
        assert "the weights of step 0, and this worker has those of step 3" in str(error)


def test_a_lease_lasts_while_it_is_wanted(site: Site) -> None:
    site.leases.seconds = 0.3
    site.leases.lend("kept")
    lease = site.leases.lend("given up")
    reference = replace(site.reference(lease, [1]), slot=1 - lease.slot)
    from weft.vllm._leases import WANTED

    gone: list[tuple[str, bool]] = []
    until = time.monotonic() + 1
    while time.monotonic() < until:
        site.loader.say([reference], WANTED)
        gone += site.leases.ended()
        time.sleep(0.02)
    assert gone == [("given up", False)]
    assert len(site.leases) == 1


def test_no_slot_is_told(site: Site) -> None:
    site.leases.lend("a")
    site.leases.lend("b")
    with pytest.raises(Refused, match="2 requests wait for decode already"):
        site.leases.lend("c")
    assert sorted(site.leases.end_all()) == ["a", "b"]
    site.leases.lend("c")


def test_an_abort_ends_the_load(site: Site) -> None:
    site.load(site.reference(site.leases.lend("a"), [1]), [2])
    reference = site.reference(site.leases.lend("b"), list(range(BLOCKS)))
    begun = time.monotonic()
    for number in range(50):
        site.loader.begin(Load(f"{number}", reference, [ALL]))
        site.loader.cancel(f"{number}")
    left = {f"{number}" for number in range(50)}
    while left:
        left -= {each.request for each in site.loader.results()}
        assert time.monotonic() < begun + SECONDS
    # Nothing is under way any more: what is written here now stays.
    for tensor in site.ours.values():
        tensor.array[:] = 9
    time.sleep(0.05)
    assert all((tensor.array == 9).all() for tensor in site.ours.values())


def test_prefill_that_is_gone_is_told_in_time(site: Site) -> None:
    reference = site.reference(site.leases.lend("a"), [1])
    assert site.load(reference, [2]).error is None
    again = site.reference(site.leases.lend("b"), [1])
    site.prefill.close()
    begun = time.monotonic()
    assert isinstance(site.load(again, [2]).error, weft.Error)
    assert isinstance(site.load(again, [2]).error, weft.Error), "it is not met either"
    assert time.monotonic() < begun + SECONDS


def reference() -> Reference:
    return Reference("h:1", ["h:2"], 3, 4, 5.0, "m", 0, 32, "p", [[7, 8]])


def test_a_reference_survives_a_proxy() -> None:
    params = reference().params("r", "e")
    assert params["do_remote_prefill"] and not params["do_remote_decode"]
    assert Reference.read(params) == reference()


@pytest.mark.parametrize("name", [*vars(reference()), "format"])
def test_a_changed_field_is_found(name: str) -> None:
    params = reference().params("r", "e")
    value = params["weft"][name]
    params["weft"][name] = value + 1 if isinstance(value, (int, float)) else [value, value]
    with pytest.raises(Refused, match="was changed"):
        Reference.read(params)
    del params["weft"][name]
    with pytest.raises(Refused, match="was changed"):
        Reference.read(params)


def test_what_is_no_reference_is_refused() -> None:
    for params, why in (
        ({}, "not one of WeftConnector's"),
        ({"weft": 5}, "not one of WeftConnector's"),
        ({"weft": {"format": 9}, "weft_seal": digest_of({"format": 9})}, "format 9"),
        ({"weft": {"format": 1}, "weft_seal": digest_of({"format": 1})}, "'lender' is missing"),
        ({**reference().params("r", "e"), "remote_block_ids": [[7, 9]]}, "blocks were changed"),
    ):
        with pytest.raises(Refused, match=why):
            Reference.read(params)


@pytest.mark.parametrize("name", vars(reference()))
def test_nonsense_is_refused_whoever_sealed_it(name: str) -> None:
    """Clients of the server can write references, too."""
    for value in (None, -1, 2**70, True, [], [[]], {}, [["x"]], [[-1]], float("nan"), [None]):
        if name == "blocks" and value == [[]]:
            continue
        own = reference().params("r", "e")["weft"] | {name: value}
        with pytest.raises(Refused, match=f"'{name}' is missing or makes no sense"):
            Reference.read({"weft": own, "weft_seal": digest_of(own)})


def test_a_forged_reference_is_refused() -> None:
    params = reference().params("r", "e", b"secret")
    assert Reference.read(params, b"secret") == reference()
    for key in (b"", b"another"):
        with pytest.raises(Refused, match="not the same secret_file"):
            Reference.read(params, key)
        with pytest.raises(Refused, match="not the same secret_file"):
            Reference.read(reference().params("r", "e", key), b"secret")


@pytest.mark.parametrize("field", ["slot", "blocks"])
def test_numbers_that_lead_nowhere_end_the_load(site: Site, field: str) -> None:
    right = site.reference(site.leases.lend("a"), [1])
    wrong = replace(right, **{field: {"slot": 2**32 - 1, "blocks": [[2**32 - 1]]}[field]})
    assert "leaves what the peer granted" in str(site.load(wrong, [2]).error)
    assert site.load(replace(right, workers=["nowhere"]), [2]).error is not None
    assert site.load(right, [2]).error is None


def layout(**changes: Any) -> Layout:
    tensor = Tensor(numpy.zeros((BLOCKS, 2, TOKENS, 8), numpy.float16))
    regions = [
        replace(each, **changes)
        for layer in ("layers.0", "layers.1")
        for each in regions_of(layer, tensor, group=0, blocks=BLOCKS, segment=0, base=0)
    ]
    return Layout((TOKENS,), regions)


def test_layouts_that_differ_are_refused_by_name() -> None:
    here = layout()
    assert len(copies_between(here, Layout.decoded(layout(base=4096, segment=1).encoded()))) == 2
    for there, why in (
        (layout(dtype="torch.bfloat16"), "layer layers.0: dtype is torch.bfloat16 at prefill"),
        (layout(shape=(1, 4, TOKENS, 8)), r"layer layers.0: shape is \(1, 4, 16, 8\) at prefill"),
        (layout(group=1), "layer layers.0: group is 1 at prefill"),
        (replace(here, block_tokens=(32,)), r"blocks have \[32\] tokens at prefill and \[16\]"),
        (replace(here, regions=here.regions[:1]), "layer layers.1 is only here"),
    ):
        with pytest.raises(Refused, match=why):
            copies_between(here, there)


def test_blocks_of_any_form() -> None:
    def found(array: Any, blocks: int = BLOCKS) -> list[tuple[int, int, int]]:
        tensor = Tensor(array)
        regions = regions_of("x", tensor, group=0, blocks=blocks, segment=0, base=100)
        return [(each.base, each.stride, each.bytes) for each in regions]

    zeros = numpy.zeros
    assert found(zeros((BLOCKS, TOKENS, 576), numpy.int8)) == [(100, 9216, 9216)]
    # Keys and values apart, heads before tokens, blocks of two of the kernel's, gaps.
    assert found(zeros((2, BLOCKS, TOKENS, 4), numpy.int8)) == [(100, 64, 64), (2660, 64, 64)]
    assert found(zeros((BLOCKS, TOKENS, 4), numpy.int8).transpose(0, 2, 1)) == [(100, 64, 64)]
    assert found(zeros((BLOCKS, TOKENS, 4), numpy.int8), BLOCKS // 2) == [(100, 128, 128)]
    assert found(zeros((BLOCKS, 3, TOKENS, 4), numpy.int8)[:, 1]) == [(100, 192, 64)]
    with pytest.raises(Refused, match="do not lie in one piece each"):
        found(zeros((TOKENS, BLOCKS, 4), numpy.int8).transpose(1, 0, 2))
    with pytest.raises(Refused, match="do not lie in one piece each"):
        found(zeros((BLOCKS + 1, 4), numpy.int8))
