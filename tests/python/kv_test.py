"""weft.kv: layouts, plans, and caches that move by them."""

from __future__ import annotations

import json
from typing import Any

import numpy
import pytest
from support import Pair, pattern

import weft
from weft import kv

TWO_RANKS = [kv.Parallel(tp_size=2, tp_rank=rank) for rank in (0, 1)]


def group(**changes: Any) -> kv.Group:
    shape: dict[str, Any] = dict(
        layers=[0, 1, 2],
        blocks=16,
        tokens_per_block=4,
        fields=kv.keys_values(2, 8),
        regions=kv.Regions.per_layer,
    )
    return kv.Group(**{**shape, **changes})


def test_layouts() -> None:
    layout = kv.Layout([group()])
    assert layout.region_bytes == [16 * 2 * 4 * 2 * 8 * 2] * 3
    assert layout.bytes == sum(layout.region_bytes)
    assert layout.bytes_per_token == 3 * 2 * 2 * 8 * 2 and layout.state_bytes == 0
    assert layout.heads() == (0, 2)
    half = kv.Layout([group()], parallel=TWO_RANKS[1])
    assert half.heads(0, 1) == (1, 1)
    assert (half.parallel.tp_size, half.parallel.tp_rank, half.parallel.dp_size) == (2, 1, 1)
    with pytest.raises(weft.InvalidArgument, match="rank"):
        kv.Layout([group()], parallel=kv.Parallel(tp_size=2, tp_rank=2))
    with pytest.raises(IndexError):
        layout.heads(1)
    with pytest.raises(IndexError):
        layout.heads(0, 2)
    assert layout.groups[0].tokens_per_block == 4


def test_fields() -> None:
    keys, values = kv.keys_values(4, 192, kv.DType.fp8, 128)
    assert (keys.heads, keys.vector) == (4, [kv.Piece(kv.DType.fp8, 192)])
    assert values.vector == [kv.Piece(kv.DType.fp8, 128)] != keys.vector
    scales = kv.scales_of(keys, 16, kv.DType.fp8)
    assert scales.vector == [kv.Piece(kv.DType.fp8, 12)] and not scales.beside
    wide = sum(kv.bits_of(piece.type) * piece.elements for piece in kv.latent_fp8()[0].vector)
    assert wide == 656 * 8
    assert [field.heads for field in kv.latent(576) + kv.index_keys()] == [1, 1, 1]
    beside = kv.Field("scales", [kv.Piece(kv.DType.fp32, 1)], heads=4, beside=True)
    fields = [*kv.keys_values(4, 16, kv.DType.int8)[:1], beside]
    layout = kv.Layout([group(layers=[0], fields=fields)])
    assert layout.bytes_per_token == 4 * (16 + 4)
    with pytest.raises(weft.InvalidArgument, match="rows"):
        kv.Layout([group(fields=[kv.Field("x", [kv.Piece(kv.DType.bf16, 1)], rows=2)])])
    with pytest.raises(weft.InvalidArgument):
        kv.Layout([group(fields=[])])
    for thing in (keys, keys.vector[0], layout, layout.groups[0], layout.parallel):
        assert repr(thing).startswith("<weft.kv.")


def test_models() -> None:
    names = [model.name for model in kv.models()]
    assert "Llama-3.1-8B" in names
    model = kv.find_model("llama-3.1-8b")
    layout = model.layout(blocks=10, parallel=TWO_RANKS[1], placement=kv.Placement.fused)
    assert layout.parallel.tp_rank == 1
    assert model.bytes_per_token() == 2 * 32 * 8 * 128 * 2
    with pytest.raises(LookupError, match="Llama"):
        kv.find_model("none")
    hybrid = kv.find_model("Nemotron-3-Nano")
    assert [(kind.name, kind.state) for kind in hybrid.kinds] == [
        ("attention", False),
        ("state", True),
    ]
    assert hybrid.request_bytes(10) == 10 * hybrid.bytes_per_token() + hybrid.state_bytes()
    groups = hybrid.layout(blocks=10, state_blocks=2, layers=(0, 20)).groups
    assert [(each.blocks, each.tokens_per_block) for each in groups] == [(10, 16), (2, 0)]
    assert all(layer < 20 for each in groups for layer in each.layers)


def test_servers() -> None:
    model = kv.find_model("Llama-3.1-8B")
    keywords = kv.with_server("sglang")
    assert len(model.layout(blocks=3, **keywords).region_bytes) == 2 * model.layers
    assert len(kv.Layout([group(**{**keywords, "blocks": 3})]).region_bytes) == 2 * 3
    with pytest.raises(LookupError, match="vllm-flash-attn"):
        kv.with_server("none")
    for server in kv.server_layouts():
        assert kv.with_server(server.name)["regions"] == server.regions and server.read_in


def test_configs() -> None:
    config = {
        "model_type": "gpt_oss",
        "num_hidden_layers": 3,
        "num_key_value_heads": 2,
        "head_dim": 8,
        "sliding_window": 16,
        "layer_types": ["sliding_attention", "full_attention", "sliding_attention"],
    }
    model = kv.from_config(json.dumps(config), "mine")
    assert (model.name, model.layers) == ("mine", 3)
    assert [(kind.layers, kind.window) for kind in model.kinds] == [([0, 2], 16), ([1], 0)]
    with pytest.raises(weft.Unsupported, match="deepseek_v4"):
        kv.from_config(json.dumps({**config, "model_type": "deepseek_v4"}))
    with pytest.raises(weft.Unsupported, match="index_head_dim"):
        kv.from_config(json.dumps({**config, "index_head_dim": 128}))
    with pytest.raises(weft.InvalidArgument, match="head_dim"):
        kv.from_config(json.dumps({**config, "head_dim": -1}))
    with pytest.raises(weft.InvalidArgument):
        kv.from_config("{")


def test_stages() -> None:
    """Two stages of a model write to each of four ranks; layers come in ranges."""
    assert [kv.stage_layers(61, 4, rank)[1] for rank in range(4)] == [15, 15, 16, 15]
    with pytest.raises(weft.InvalidArgument):
        kv.stage_layers(61, 4, 4)
    with pytest.raises(weft.InvalidArgument):
        kv.stage_layers(61, 0, 0)
    model = kv.find_model("Llama-3.1-8B")
    stages = [
        model.layout(
            blocks=4, layers=kv.stage_layers(32, 2, pp), parallel=kv.Parallel(tp_size=2, dp_rank=0)
        )
        for pp in (0, 1)
    ]
    writers = [
        kv.source_ranks(stages, model.layout(blocks=4, parallel=kv.Parallel(tp_size=4, tp_rank=tp)))
        for tp in range(4)
    ]
    assert writers[3] == [kv.Rank(0, 1), kv.Rank(1, 1)]
    assert len(set(rank for ranks in writers for rank in ranks)) == 4
    whole = model.layout(blocks=4)
    assert kv.source_ranks(stages[:1], whole, layers=(16, 8)) == []
    assert kv.source_ranks(stages, whole, tokens=5, layers=(20, 1)) == [
        kv.Rank(1, 0), kv.Rank(1, 1)
    ]  # fmt: skip
    assert kv.layer_ranges(stages[1], whole, 3) == [(16, 5), (21, 5), (26, 6)]
    assert kv.layer_ranges(stages[0], stages[1], 3) == []
    with pytest.raises(weft.InvalidArgument):
        kv.layer_ranges(whole, whole, 0)
    with pytest.raises(weft.InvalidArgument):
        kv.source_ranks([stages[0], stages[0]], whole)


def test_context_parallel() -> None:
    """Ranks with the same head share the tokens out: one has the even ones, one the odd ones."""
    shared = kv.Parallel(tp_size=4, tp_rank=1, dcp_size=2)
    here = kv.Cache(kv.Layout([group()], parallel=shared))
    there = kv.Cache(kv.Layout([group()]))
    plan = kv.plan(here, kv.Blocks([0, 1]), there, kv.Blocks([0, 1, 2, 3]), tokens=15)
    assert plan.bytes == 7 * 3 * 2 * 8 * 2  # 1, 3, ..., 13: one of two heads


def test_prefixes() -> None:
    hashes = [bytes([number]) * 32 for number in range(5)]
    attention, window, state = group(), group(window=40), group(tokens_per_block=0, fields=[])
    sizes = dict(tokens_per_hash=16, tokens=90)
    assert kv.missing(attention, hashes, set(hashes[:2]), **sizes) == (32, 58)
    assert kv.missing(attention, hashes, [], **sizes) == (0, 90)
    assert kv.missing(window, hashes, iter(hashes[3:]), **sizes) == (80, 10)
    assert kv.missing(state, hashes, hashes, **sizes) == (0, 90)
    assert kv.missing(state, hashes, hashes, tokens_per_hash=16, tokens=80) == (80, 0)
    assert kv.missing(attention, [b"short"], [b"short"], **sizes) == (16, 74)
    with pytest.raises(weft.InvalidArgument, match="33"):
        kv.missing(attention, [bytes(33)], [], **sizes)
    with pytest.raises(weft.InvalidArgument):
        kv.missing(attention, hashes, [], tokens_per_hash=16, tokens=10)
    with pytest.raises(TypeError, match="bytes"):
        kv.missing(attention, ["text"], [], **sizes)  # type: ignore[list-item]
    # What is missing is what a plan copies.
    here, there = kv.Cache(kv.Layout([group()])), kv.Cache(kv.Layout([group(blocks=9)]))
    lacking = kv.missing(attention, hashes[:3], hashes[:1], tokens_per_hash=4, tokens=14)
    assert lacking == (4, 10)
    plan = kv.plan(
        here,
        kv.Blocks([3, 9, 1, 7]),
        there,
        kv.Blocks([5, 2, 8], first_token=4, tokens=lacking),
        tokens=14,
    )
    assert plan.bytes == 10 * here.layout.bytes_per_token


def as_tensors(memory: list[Any], blocks: int, tokens: int) -> list[Any]:
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
    source, target = kv.Cache.of_segments(here), kv.Cache.of_segments(there)
    plan = kv.plan(source, kv.Blocks(src), target, [kv.Blocks(dst)], tokens=14)
    assert plan.bytes == 14 * 3 * 2 * 2 * 8 * 2
    assert len(plan.copies()) == len(plan)
    assert plan.copies().shape[1] == 5
    lists = plan.transfers()
    assert [entry[:2] for entry in lists] == [(0, 0), (1, 1), (2, 2)]
    waits = engines.to_a.expect(1, len(lists))
    transfers = [
        engines.a.write(mine[segment], granted[remote][1], pieces, signal=1)
        for segment, remote, pieces in lists
    ]
    for transfer in transfers:
        transfer.wait()
    waits.wait()
    for sent, came in zip(as_tensors(sources, 16, 4), as_tensors(targets, 6, 8)):
        expected = numpy.zeros_like(came)
        for token in range(14):
            expected[:, dst[token // 8], token % 8] = sent[:, src[token // 4], token % 4]
        assert numpy.array_equal(came, expected)
    for segment, _ in granted:
        segment.close()
    assert kv.source_ranks([here], there) == [kv.Rank()]


# A hybrid model: attention in layers 1 and 4, Mamba's states in the others.
HEADS, SIZE, CHANNELS, GROUP_CHANNELS, STATE = 4, 8, 8, 4, 16


def hybrid(layers: range, tokens_per_block: int, parallel: kv.Parallel | None = None) -> kv.Layout:
    rows = [kv.ConvRow("x", HEADS, CHANNELS)]
    rows += [kv.ConvRow(name, 2, GROUP_CHANNELS) for name in ("B", "C")]
    state = kv.recurrent_state(
        rows,
        kernel=4,
        order=kv.ConvOrder.channels,
        conv_type=kv.DType.bf16,
        heads=HEADS,
        state_elements=STATE,
        state_type=kv.DType.fp32,
    )
    attention = group(
        layers=[layer for layer in layers if layer in (1, 4)],
        tokens_per_block=tokens_per_block,
        fields=kv.keys_values(HEADS, SIZE),
        placement=kv.Placement.fused,
    )
    states = group(
        layers=[layer for layer in layers if layer not in (1, 4)],
        blocks=3,
        tokens_per_block=0,
        fields=state,
        placement=kv.Placement.fused,
    )
    return kv.Layout([attention, states], parallel=parallel)


def pages(region: Any, tokens: int, heads: int) -> Any:
    """A layer of attention: [blocks][2][tokens][heads][size]."""
    return region.view(numpy.uint16).reshape(16, 2, tokens, heads, SIZE)


def states(region: Any, ranks: int) -> tuple[Any, Any]:
    """A layer of states: [blocks][3][x, B and C], and [blocks][heads][state] behind it."""
    channels = (HEADS * CHANNELS + 2 * 2 * GROUP_CHANNELS) // ranks
    blocks = region.reshape(3, -1)
    convolution = numpy.ascontiguousarray(blocks[:, : 3 * channels * 2]).view(numpy.uint16)
    recurrent = numpy.ascontiguousarray(blocks[:, 3 * channels * 2 :]).view(numpy.uint32)
    return convolution.reshape(3, 3, channels), recurrent.reshape(3, HEADS // ranks, STATE)


def channels_of(rank: int) -> list[int]:
    """Where one of two ranks finds its x, B and C among all channels."""
    wide, narrow = HEADS * CHANNELS, 2 * GROUP_CHANNELS
    ranges = [(0, wide), (wide, narrow), (wide + narrow, narrow)]
    return [
        first + channel
        for first, count in ranges
        for channel in range(rank * count // 2, (rank + 1) * count // 2)
    ]


def check_rank(rank: int, sources: list[list[Any]], targets: list[Any]) -> None:
    """Regions are by group, then by layer; `sources` has those of each stage."""
    src, dst, tokens = [3, 9, 1, 7], [5, 2], 14
    mine = slice(rank * HEADS // 2, (rank + 1) * HEADS // 2)
    for layer, source in enumerate([sources[0][0], sources[1][0]]):
        target = pages(targets[layer], 8, HEADS // 2)
        expected = numpy.zeros_like(target)
        for token in range(tokens):
            found = pages(source, 4, HEADS)[src[token // 4], :, token % 4, mine]
            expected[dst[token // 8], :, token % 8] = found
        assert numpy.array_equal(target, expected)
    for layer, source in enumerate(sources[0][1:] + sources[1][1:]):
        convolution, recurrent = states(targets[2 + layer], 2)
        all_rows, all_heads = states(source, 1)
        assert numpy.array_equal(convolution[2], all_rows[1][:, channels_of(rank)])
        assert numpy.array_equal(recurrent[2], all_heads[1][mine])
        assert not convolution[:2].any() and not recurrent[:2].any()


def test_a_hybrid_request_from_two_stages_to_two_ranks(engines: Pair) -> None:
    stages = [hybrid(range(3), 4), hybrid(range(3, 6), 4)]
    sources = [
        [pattern(size, 10 * pp + number) for number, size in enumerate(stage.region_bytes)]
        for pp, stage in enumerate(stages)
    ]
    mine = [[engines.a.add(each) for each in regions] for regions in sources]
    here = [kv.Blocks([3, 9, 1, 7]), kv.Blocks([1])]
    there = [kv.Blocks([5, 2]), kv.Blocks([2])]
    for rank, parallel in enumerate(TWO_RANKS):
        layout = hybrid(range(6), 8, parallel)
        assert kv.source_ranks(stages, layout) == [kv.Rank(0), kv.Rank(1)]
        targets = [numpy.zeros(size, numpy.uint8) for size in layout.region_bytes]
        granted = [engines.granted(each, weft.Rights.write) for each in targets]
        cache = kv.Cache.of_segments(layout)
        plans = [
            kv.plan(kv.Cache.of_segments(stage), here, cache, there, tokens=14) for stage in stages
        ]
        request = 14 * layout.bytes_per_token + layout.state_bytes
        assert sum(plan.bytes for plan in plans) == request
        waits = engines.to_a.expect(7 + rank, sum(len(p.transfers()) for p in plans))
        transfers = [
            engines.a.write(mine[pp][segment], granted[remote][1], pieces, signal=7 + rank)
            for pp, plan in enumerate(plans)
            for segment, remote, pieces in plan.transfers()
        ]
        for transfer in transfers:
            transfer.wait()
        waits.wait()
        check_rank(rank, sources, targets)
        for segment, _ in granted:
            segment.close()


def test_wrong_plans() -> None:
    cache = kv.Cache(kv.Layout([group()]))
    assert cache.bases[0] == (0, 0) and cache.bases[1][1] == cache.layout.region_bytes[0]
    one = kv.Blocks([0])
    with pytest.raises(ValueError):
        kv.plan(cache, kv.Blocks([16]), cache, one, 4)
    with pytest.raises(ValueError):
        kv.plan(cache, [], cache, one, 4)
    with pytest.raises(ValueError):
        kv.plan(cache, one, cache, one, (0, 5))
    with pytest.raises(TypeError, match="Blocks"):
        kv.plan(cache, [[0]], cache, one, 4)  # type: ignore[list-item]
    with pytest.raises(ValueError):
        kv.Cache(cache.layout, [(0, 0), (0, 1), (0, 2)])
    with pytest.raises(weft.InvalidArgument, match="keys"):
        other = kv.Cache(kv.Layout([group(fields=kv.keys_values(2, 8, kv.DType.fp8))]))
        kv.plan(cache, one, other, one, 4)
    assert kv.plan(cache, kv.Blocks(), cache, kv.Blocks(), 0).bytes == 0
