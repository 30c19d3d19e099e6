"""Layouts of paged KV caches, and the copies that move blocks between caches of different shapes.

Arithmetic only: no memory is touched. To copy the blocks of a request from a prefill rank to a
decode rank:

    model = weft.kv.find_model("Llama-3.1-8B")
    here = weft.kv.Cache(model.layout(blocks=4096, tp_size=2, tp_rank=0))
    there = weft.kv.Cache(model.layout(blocks=1024, tokens_per_block=64))
    plan = weft.kv.plan(here, there, weft.kv.Blocks([7, 8, 9, 12, 40], [3, 5], tokens=75))
    for segment, remote, pieces in plan.transfers():
        engine.write(segments[segment], remotes[remote], pieces, signal=request)

A Layout is the shape of one process's cache: groups of layers that share a block table, and the
tensor-parallel rank. Layout.region_bytes must equal the sizes of your tensors, one by one: check
that before anything else. A Cache says where the regions lie. Block numbers are arrays.
"""

from ._weft import (
    Attention,
    Blocks,
    Cache,
    DType,
    Group,
    HeadOrder,
    Layout,
    Model,
    Order,
    Parts,
    Plan,
    Regions,
    find_model,
    models,
    plan,
    source_ranks,
)

__all__ = [
    "Attention", "Blocks", "Cache", "DType", "Group", "HeadOrder", "Layout", "Model", "Order",
    "Parts", "Plan", "Regions", "find_model", "models", "plan", "source_ranks",
]  # fmt: skip
