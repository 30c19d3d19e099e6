"""What WeftConnector takes of vLLM, beside what the vLLM of this Python has. Prints a line for each
difference, and ends with their number.

    PYTHONPATH=PACKAGE PYTHON tests/vllm/contract.py

For a wheel that can't be run here, unpack it and put its folder first in PYTHONPATH.
"""

import inspect
import sys

# Called from within the connector, on vLLM's objects.
USED = {
    "vllm.v1.request:Request": (
        "request_id", "num_prompt_tokens", "num_computed_tokens", "prompt_token_ids",
        "kv_transfer_params", "lora_request", "mm_features", "cache_salt", "status"),
    "vllm.v1.request:RequestStatus": ("FINISHED_LENGTH_CAPPED", "FINISHED_STOPPED"),
    "vllm.v1.kv_cache_interface:KVCacheConfig": (
        "num_blocks", "transfer_groups", "transfer_group_ids", "transfer_group_index_by_layer",
        "select_transfer_block_ids"),
    "vllm.v1.core.kv_cache_manager:KVCacheBlocks": ("get_block_ids",),
    "vllm.config:KVTransferConfig": ("engine_id", "kv_connector_extra_config"),
}


def found(path):
    module, name = path.split(":")
    return getattr(__import__(module, fromlist=[name]), name)


def attributes(path):
    """Names in the class's source: what only __init__ sets has no other place."""
    return inspect.getsource(found(path))


def parameters(function):
    return [name for name, each in inspect.signature(function).parameters.items()
            if each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)]


def overridden(connector, bases):
    for name, member in vars(connector).items():
        base = next((vars(each)[name] for each in bases if name in vars(each)), None)
        if not name.startswith("_") or name == "__init__":
            yield name, member, base


def differences():
    from vllm.distributed.kv_transfer.kv_connector.v1 import base
    from weft.vllm.connector import WeftConnector
    bases = (base.KVConnectorBase_V1, base.SupportsHMA)
    for name, member, theirs in overridden(WeftConnector, bases):
        if theirs is None:
            yield f"{name}: vLLM does not call it any more"
            continue
        plain = [getattr(each, "__func__", each) for each in (member, theirs)]
        if not callable(plain[1]):
            continue
        ours, wanted = (parameters(each) for each in plain)
        if ours != wanted:
            yield f"{name}: vLLM passes {wanted}, and WeftConnector takes {ours}"
    for name in sorted(WeftConnector.__abstractmethods__):
        yield f"{name}: vLLM wants it, and WeftConnector has none"
    for path, names in USED.items():
        source = attributes(path)
        for name in names:
            if name not in source:
                yield f"{path}: has no {name} any more"
    fields = base.KVConnectorTransferResults.__dataclass_fields__
    for name in ("finished_sending", "finished_recving", "failed_recving"):
        if name not in fields:
            yield f"KVConnectorTransferResults: has no {name} any more"


def main():
    lines = list(differences())
    print("\n".join(lines) or "as WeftConnector knows it")
    return len(lines)


if __name__ == "__main__":
    sys.exit(main())
