"""weft.kv: layouts, plans, and caches that move by them."""

from __future__ import annotations

import numpy
import pytest
from support import Pair, pattern

import weft
from weft import kv


def group(**changes) -> kv.Group:
    shape = dict(
        layers=[0, 1, 2],
        blocks=16,
        tokens_per_block=4,
        kv_heads=2,
        head_size=8,
        element_size=2,
        regions=kv.Regions.per_layer,
    )
    return kv.Group(**{**shape, **changes})


def test_layouts() -> None:
    layout = kv.Layout([group()])
    assert layout.region_bytes == [16 * 2 * 4 * 2 * 8 * 2] * 3
    assert layout.bytes == sum(layout.region_bytes)
    assert layout.heads(0) == (0, 2)
    assert kv.Layout([group()], tp_size=2, tp_rank=1).heads() == (1, 1)
    with pytest.raises(weft.InvalidArgument, match="rank"):
        kv.Layout([group()], tp_size=2, tp_rank=2)
    with pytest.raises(IndexError):
        layout.heads(1)
    assert layout.groups[0].tokens_per_block == 4


def test_models() -> None:
    names = [model.name for model in kv.models()]
    assert "Llama-3.1-8B" in names
    model = kv.find_model("llama-3.1-8b")
    layout = model.layout(blocks=10, tp_size=2, tp_rank=1, parts=kv.Parts.fused)
    assert layout.tp_rank == 1
    assert model.bytes_per_token() == 2 * 32 * 8 * 128 * 2
    with pytest.raises(LookupError, match="Llama"):
        kv.find_model("none")


def as_tensors(memory: list[numpy.ndarray], blocks: int, tokens: int) -> list[numpy.ndarray]:
    return [each.view(numpy.uint16).reshape(2, blocks, tokens, 2, 8) for each in memory]


def test_a_plan_moves_the_tokens(engines: Pair) -> None:
    """Blocks of 4 tokens become blocks of 8, whose tokens numpy finds."""
    here, there = kv.Layout([group()]), kv.Layout([group(blocks=6, tokens_per_block=8)])
    sources = [pattern(size, layer) for layer, size in enumerate(here.region_bytes)]
    targets = [numpy.zeros(size, numpy.uint8) for size in there.region_bytes]
    mine = [engines.a.add(each) for each in sources]
    granted = [engines.granted(each, weft.Rights.write) for each in targets]
    src = numpy.array([3, 9, 1, 7], numpy.uint32)
    dst = numpy.array([5, 2])
    plan = kv.plan(
        kv.Cache.of_segments(here), kv.Cache.of_segments(there), kv.Blocks(src, dst, tokens=14)
    )
    assert plan.bytes == 14 * 3 * 2 * 2 * 8 * 2
    assert len(plan.copies()) == len(plan)
    assert plan.copies().shape[1] == 5
    lists = plan.transfers()
    assert [entry[:2] for entry in lists] == [(0, 0), (1, 1), (2, 2)]
    waits = engines.b.expect(engines.to_a, 1, len(lists))
    transfers = [
        engines.a.write(mine[segment], granted[remote][1], pieces, signal=1)
        for segment, remote, pieces in lists
    ]
    for transfer in transfers:
        transfer.wait()
    waits.wait()
    for source, target in zip(as_tensors(sources, 16, 4), as_tensors(targets, 6, 8)):
        expected = numpy.zeros_like(target)
        for token in range(14):
            expected[:, dst[token // 8], token % 8] = source[:, src[token // 4], token % 4]
        assert numpy.array_equal(target, expected)
    for segment, _ in granted:
        segment.close()
    assert kv.source_ranks(here, there) == [0]


def test_wrong_plans() -> None:
    cache = kv.Cache(kv.Layout([group()]))
    assert cache.bases[0] == (0, 0) and cache.bases[1][1] == cache.layout.region_bytes[0]
    with pytest.raises(ValueError):
        kv.plan(cache, cache, kv.Blocks([16], [0]))
    with pytest.raises(ValueError):
        kv.plan(cache, cache, [])
    with pytest.raises(ValueError):
        kv.Cache(cache.layout, [(0, 0), (0, 1), (0, 2)])
