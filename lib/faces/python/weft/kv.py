"""Layouts of paged KV caches, and the copies that move blocks between caches of different shapes.

Arithmetic only: no memory is touched. To copy the blocks of a request from a prefill rank to a
decode rank:

    model = weft.kv.find_model("Llama-3.1-8B")
    here = weft.kv.Cache(model.layout(blocks=4096, parallel=weft.kv.Parallel(tp_size=2)))
    there = weft.kv.Cache(model.layout(blocks=1024, tokens_per_block=64))
    plan = weft.kv.plan(
        here, weft.kv.Blocks([7, 8, 9, 12, 40]), there, weft.kv.Blocks([3, 5]), tokens=75
    )
    for segment, remote, pieces in plan.transfers():
        engine.write(segments[segment], remotes[remote], pieces, signal=request)

A Layout is the shape of one process's cache: groups of layers that share a block table, and the
rank. A hybrid model has several groups, of attention, windows and states; then there is one Blocks
for each group of a side. Layout.region_bytes must equal the sizes of your tensors, one by one:
check that before anything else. A Cache says where the regions lie. Block numbers are arrays.
Ranges of tokens and of layers are tuples (first, count).
"""

from typing import TypedDict

from ._weft import (
    Blocks,
    Cache,
    ConvOrder,
    ConvRow,
    DType,
    Field,
    Group,
    HeadOrder,
    Kind,
    Layout,
    Model,
    Order,
    Parallel,
    Piece,
    Placement,
    Plan,
    Rank,
    Regions,
    ServerLayout,
    bits_of,
    find_model,
    from_config,
    index_keys,
    keys_values,
    latent,
    latent_fp8,
    layer_ranges,
    missing,
    models,
    plan,
    recurrent_state,
    scales_of,
    server_layouts,
    source_ranks,
    stage_layers,
    with_server,
)


class ServerKeywords(TypedDict):
    """What with_server() decides."""

    placement: Placement
    order: Order
    head_order: HeadOrder
    regions: Regions


__all__ = [
    "Blocks", "Cache", "ConvOrder", "ConvRow", "DType", "Field", "Group", "HeadOrder", "Kind",
    "Layout", "Model", "Order", "Parallel", "Piece", "Placement", "Plan", "Rank", "Regions",
    "ServerKeywords", "ServerLayout", "bits_of", "find_model", "from_config", "index_keys",
    "keys_values", "latent", "latent_fp8", "layer_ranges", "missing", "models", "plan",
    "recurrent_state", "scales_of", "server_layouts", "source_ranks", "stage_layers", "with_server",
]  # fmt: skip
