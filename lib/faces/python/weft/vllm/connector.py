"""The KV cache of a prompt, from a vLLM that prefills to one that decodes: `WeftConnector`.

    vllm serve MODEL --kv-transfer-config '{"kv_connector": "WeftConnector",
        "kv_connector_module_path": "weft.vllm.connector", "kv_role": "kv_producer"}'

and `kv_consumer` for decode. Both work behind the proxies that NixlConnector has: prefill is asked
first, and its answer's `kv_transfer_params` are handed to decode. Decode reads the blocks, and takes
them for good only if prefill still keeps them for this very request: see _leases.py. What was used
before, came too late, was changed on the way or belongs to another prompt, model, cache layout or
engine fails, and vLLM's `kv_load_failure_policy` decides what becomes of the request.

`kv_connector_extra_config` takes every option of weft.Engine by its name, and those of Settings.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from vllm.config import VllmConfig  # type: ignore[import-not-found]
from vllm.distributed.kv_transfer.kv_connector.v1.base import (  # type: ignore[import-not-found]
    KVConnectorBase_V1,
    KVConnectorHandshakeMetadata,
    KVConnectorMetadata,
    KVConnectorRole,
    KVConnectorTransferResults,
    KVConnectorWorkerMetadata,
    SupportsHMA,
)
from vllm.logger import init_logger  # type: ignore[import-not-found]
from vllm.utils.network_utils import get_ip  # type: ignore[import-not-found]
from vllm.v1.metrics.cache_hit_source import CacheHitSource  # type: ignore[import-not-found]
from vllm.v1.request import RequestStatus  # type: ignore[import-not-found]

import weft
from weft._options import Options

from ._caches import Caches
from ._leases import DONE, WANTED, Leases
from ._loads import Load, Loader, Pages
from ._reference import Reference, Refused, digest_of, digest_of_tokens, key_of
from ._stats import PromMetrics, Stats
from ._step import loaded_step

__all__ = ["Settings", "WeftConnector"]

# Lines below "vllm" go where vLLM's go.
logger = init_logger("vllm.weft")

# Of a model's configuration: where it lies, and who wrote it, does not change a number.
SAME_ANYWHERE = ("_name_or_path", "transformers_version")


@dataclass(frozen=True)
class Settings:
    """What `kv_connector_extra_config` may say besides the options of weft.Engine."""

    lease: float = 30.0
    """Seconds for which prefill keeps blocks that no decode has said it wants."""
    load_timeout: float = 30.0
    """Seconds after which a load has failed."""
    slots: int = 4096
    """Requests that may wait for decode at a time."""
    verify: float = 0.0
    """Share of the transfers whose bytes are compared at both ends (XXH3): 0 to 1."""
    fenced: bool = True
    """False: without the proof that the blocks are the request's. For tests of the proof."""

    @staticmethod
    def read(extra: dict[str, Any]) -> tuple[Settings, dict[str, Any]]:
        """And what is left for weft.Engine. ValueError for what neither knows."""
        own = {each.name for each in fields(Settings)}
        if unknown := sorted(set(extra) - own - set(Options.__annotations__)):
            raise ValueError(f"kv_connector_extra_config: WeftConnector knows no '{unknown[0]}'; it "
                             f"takes {', '.join(sorted(own))} and the options of weft.Engine")
        settings = Settings(**{name: extra[name] for name in own & set(extra)})
        return settings, {name: extra[name] for name in extra if name not in own}


@dataclass
class _Step(KVConnectorMetadata):  # type: ignore[misc]
    """What the scheduler tells the workers with a step."""

    loads: list[Load] = field(default_factory=list)
    refused: list[tuple[str, str]] = field(default_factory=list)
    """Loads that fail at once, and why."""
    aborted: list[str] = field(default_factory=list)
    done: list[Reference] = field(default_factory=list)
    """That nobody here needs."""
    wanted: list[Reference] = field(default_factory=list)
    released: list[str] = field(default_factory=list)
    """Requests whose blocks prefill needs no longer keep."""


@dataclass
class _Address(KVConnectorHandshakeMetadata):  # type: ignore[misc]
    """Of a worker's engine."""

    address: str


@dataclass
class _Loaded(KVConnectorWorkerMetadata):  # type: ignore[misc]
    """What a worker tells the scheduler: the step of its weights."""

    step: int

    def aggregate(self, other: KVConnectorWorkerMetadata) -> KVConnectorWorkerMetadata:
        """Steps are loaded by all workers or by none."""
        assert isinstance(other, _Loaded)
        return _Loaded(max(self.step, other.step))


class WeftConnector(KVConnectorBase_V1, SupportsHMA):  # type: ignore[misc]
    """One half in the scheduler, one in each worker."""

    _cache_hit_source = CacheHitSource.P2P

    def __init__(self, vllm_config: VllmConfig, role: KVConnectorRole,
                 kv_cache_config: Any) -> None:
        super().__init__(vllm_config, role, kv_cache_config)
        for group in kv_cache_config.transfer_groups:
            if type(group.kv_cache_spec).__name__ == "MambaSpec":
                raise ValueError("WeftConnector does not move the states of state-space layers yet: "
                                 f"{group.layer_names[0]}")
        settings, options = Settings.read(
            dict(self._kv_transfer_config.kv_connector_extra_config or {}))
        part = "scheduler" if role is KVConnectorRole.SCHEDULER else "worker"
        if role is KVConnectorRole.SCHEDULER:
            options["metrics_listen"] = ""  # The workers move the bytes.
        name = options.get("name", self._kv_transfer_config.engine_id)
        engine = _open({**options, "name": f"{name}/{part}/%p"})
        self._scheduler: _Scheduler | None = None
        self._worker: _Worker | None = None
        if role is KVConnectorRole.SCHEDULER:
            self._scheduler = _Scheduler(vllm_config, kv_cache_config, settings, engine,
                                         _key_of(engine))
        else:
            self._worker = _Worker(vllm_config, kv_cache_config, settings, engine)

    @classmethod
    def get_required_kvcache_layout(cls, vllm_config: VllmConfig) -> str | None:
        """Each block of a layer in one piece, keys and values."""
        if vllm_config.model_config is None or vllm_config.model_config.use_mla:
            return None
        return "LBHNC"

    @classmethod
    def build_kv_connector_stats(cls, data: dict[str, Any] | None = None) -> Stats:
        return Stats(data)

    @classmethod
    def build_prom_metrics(cls, vllm_config: VllmConfig, metric_types: Any, labelnames: list[str],
                           per_engine_labelvalues: dict[int, list[object]]) -> PromMetrics:
        return PromMetrics(vllm_config, metric_types, labelnames, per_engine_labelvalues)

    def get_kv_connector_stats(self) -> Stats | None:
        half = self._scheduler or self._worker
        return half.stats.taken()  # type: ignore[union-attr]

    # In the scheduler.

    def get_num_new_matched_tokens(self, request: Any,
                                   num_computed_tokens: int) -> tuple[int | None, bool]:
        return self._scheduler.matched(request, num_computed_tokens)  # type: ignore[union-attr]

    def get_loaded_kv_cache_group_ids(self, request: Any) -> tuple[int, ...]:
        return tuple(self._kv_cache_config.transfer_group_ids)

    def update_state_after_alloc(self, request: Any, blocks: Any,
                                 num_external_tokens: int) -> None:
        self._scheduler.allocated(request, blocks, num_external_tokens)  # type: ignore[union-attr]

    def build_connector_meta(self, scheduler_output: Any) -> KVConnectorMetadata:
        return self._scheduler.step(scheduler_output)  # type: ignore[union-attr]

    def on_new_request(self, request: Any) -> None:
        self._scheduler.arrived(request)  # type: ignore[union-attr]

    def update_connector_output(self, connector_output: Any) -> None:
        self._scheduler.told(connector_output)  # type: ignore[union-attr]

    def request_finished(self, request: Any,
                         block_ids: list[int]) -> tuple[bool, dict[str, Any] | None]:
        return self.request_finished_all_groups(request, (block_ids,))

    def request_finished_all_groups(
        self, request: Any, block_ids: tuple[list[int], ...]
    ) -> tuple[bool, dict[str, Any] | None]:
        return self._scheduler.finished(request, block_ids)  # type: ignore[union-attr]

    def set_xfer_handshake_metadata_pp_aware(self, metadata: dict[Any, Any]) -> None:
        assert self._scheduler is not None
        self._scheduler.workers = [metadata[rank].address for rank in sorted(metadata)]

    def reset_cache(self) -> bool | None:
        """Prefill keeps nothing for anybody any more."""
        assert self._scheduler is not None
        self._scheduler.forget_all()
        return True

    # In a worker.

    def register_kv_caches(self, kv_caches: dict[str, Any]) -> None:
        self._worker.register(kv_caches)  # type: ignore[union-attr]

    def get_handshake_metadata(self) -> KVConnectorHandshakeMetadata | None:
        return _Address(self._worker.address)  # type: ignore[union-attr]

    def start_load_kv(self, forward_context: Any, **kwargs: Any) -> None:
        step = self._get_connector_metadata()
        assert isinstance(step, _Step)
        self._worker.obey(step)  # type: ignore[union-attr]

    def get_transfer_results(self, finished_req_ids: set[str]) -> KVConnectorTransferResults:
        return self._worker.results()  # type: ignore[union-attr]

    def get_finished(self, finished_req_ids: set[str]) -> tuple[set[str], set[str]]:
        """As vLLM before get_transfer_results() asks."""
        results = self.get_transfer_results(finished_req_ids)
        return results.finished_sending, results.finished_recving

    def build_connector_worker_meta(self) -> KVConnectorWorkerMetadata | None:
        return _Loaded(loaded_step())

    def wait_for_layer_load(self, layer_name: str) -> None:
        """Requests are not scheduled before their load has ended."""

    def save_kv_layer(self, layer_name: str, kv_layer: Any, attn_metadata: Any,
                      **kwargs: Any) -> None:
        """Decode reads."""

    def wait_for_save(self) -> None:
        """Decode reads."""

    def shutdown(self) -> None:
        for half in (self._scheduler, self._worker):
            if half is not None:
                half.close()


def _open(options: dict[str, Any]) -> weft.Engine:
    """Without credentials only this machine's engines reach it."""

    def given(option: str) -> bool:
        return option in options or f"WEFT_{option.upper()}" in os.environ

    if not given("listen") and (given("secret_file") or given("tls_certificate")):
        options["listen"] = f"{_with_brackets(get_ip())}:0"
    engine = weft.Engine(**options)
    logger.info("Weft %s: engine %s at %s, rails %s", weft.__version__, engine.name, engine.address,
                ", ".join(rail.name for rail in engine.info().rails))
    return engine


def _key_of(engine: weft.Engine) -> bytes:
    """Of the secret that the engines share; without one seals find mistakes, but no forgery."""
    file = next(each.value for each in engine.info().settings if each.name == "secret_file")
    return key_of(Path(file).read_bytes().rstrip(b"\n")) if file else b""


def _with_brackets(address: str) -> str:
    return f"[{address}]" if ":" in address else address


class _Scheduler:
    """Keeps leases at prefill, and block tables at decode."""

    def __init__(self, vllm_config: VllmConfig, kv_cache_config: Any, settings: Settings,
                 engine: weft.Engine, key: bytes) -> None:
        parallel = vllm_config.parallel_config
        self.workers: list[str] = []
        self._engine, self._settings, self._key = engine, settings, key
        self._engine_id = vllm_config.kv_transfer_config.engine_id
        self._cache = kv_cache_config
        self._model = model_digest(vllm_config)
        self._leases = Leases(engine, slots=settings.slots, seconds=settings.lease,
                              ranks=parallel.tensor_parallel_size
                              * parallel.pipeline_parallel_size)
        self._step = _Step()
        self._computed: dict[str, int] = {}
        # Of requests that arrived here and have not their blocks yet.
        self._awaited: dict[str, Reference | Refused] = {}
        self._loading: dict[str, Reference | None] = {}
        self._said_wanted = time.monotonic()
        self._weights = 0
        self.stats = Stats()

    def arrived(self, request: Any) -> None:
        params = request.kv_transfer_params
        if not params or not params.get("do_remote_prefill"):
            return
        try:
            reference = Reference.read(params, self._key)
            self._awaited[request.request_id] = self._check(reference, request)
        except Refused as refused:
            self._awaited[request.request_id] = refused

    def _check(self, reference: Reference, request: Any) -> Reference:
        if reference.model != self._model:
            raise Refused("prefill serves another model, another precision or another cache type")
        prompt = request.prompt_token_ids or []
        same = prompt_digest(request, reference.tokens)
        if len(prompt) < reference.tokens or same != reference.prompt:
            raise Refused("the reference is another prompt's")
        return reference

    def matched(self, request: Any, computed: int) -> tuple[int | None, bool]:
        awaited = self._awaited.get(request.request_id)
        if awaited is None:
            return 0, False
        self._computed[request.request_id] = computed
        whole = awaited.tokens if isinstance(awaited, Reference) else request.num_prompt_tokens
        more = min(whole, request.num_prompt_tokens) - computed
        return (more, True) if more > 0 else (0, False)

    def allocated(self, request: Any, blocks: Any, external_tokens: int) -> None:
        name = request.request_id
        awaited = self._awaited.pop(name, None)
        if awaited is None:
            return
        if external_tokens == 0:
            if isinstance(awaited, Reference):
                self._step.done.append(awaited)
            return
        self._loading[name] = None
        try:
            if isinstance(awaited, Refused):
                raise awaited
            self._loading[name] = awaited
            pages = self._pages(awaited, blocks.get_block_ids(), self._computed.pop(name))
            self._step.loads.append(Load(name, replace(awaited, blocks=[]), pages))
        except Refused as refused:
            self._step.refused.append((name, str(refused)))

    def _pages(self, reference: Reference, local: Sequence[Sequence[int]],
               computed: int) -> list[Pages]:
        """What is not here yet. Block 0 is vLLM's place for none: what lies before a window."""
        local = self._cache.select_transfer_block_ids(tuple(local))
        if len(local) != len(reference.blocks):
            raise Refused(f"prefill's cache has {len(reference.blocks)} groups of layers, and this "
                          f"one {len(local)}")
        pages = []
        for group, here, there in zip(self._cache.transfer_groups, local, reference.blocks,
                                      strict=True):
            first = computed // group.kv_cache_spec.block_size
            count = min(len(here), len(there))
            pairs = [(here[i], there[i]) for i in range(first, count) if here[i] != 0]
            if any(remote == 0 for _, remote in pairs):
                raise Refused("prefill has not kept all blocks that decode needs")
            needed = -(-reference.tokens // group.kv_cache_spec.block_size)
            if count < needed:
                raise Refused(f"the reference has {count} blocks of {needed}")
            pages.append(Pages.of(pairs))
        return pages

    def step(self, scheduler_output: Any) -> _Step:
        step, self._step = self._step, _Step()
        step.aborted = [name for name in scheduler_output.finished_req_ids if name in self._loading]
        now = time.monotonic()
        if now - self._said_wanted >= self._settings.lease / 4:
            self._said_wanted = now
            step.wanted = [each for each in (*self._awaited.values(), *self._loading.values())
                           if isinstance(each, Reference)]
        for request, done in self._leases.ended():
            if not done:
                self.stats.count("given_up")
                logger.warning("Weft: no decode has wanted request %s for %.0f s: its blocks are "
                               "free again", request, self._settings.lease)
            step.released.append(request)
        return step

    def told(self, output: Any) -> None:
        for name in output.finished_recving or ():
            self._loading.pop(name, None)
        if output.kv_connector_worker_meta is not None:
            self._weights = output.kv_connector_worker_meta.step

    def finished(self, request: Any,
                 blocks: tuple[list[int], ...]) -> tuple[bool, dict[str, Any] | None]:
        name, params = request.request_id, request.kv_transfer_params or {}
        self._computed.pop(name, None)
        awaited = self._awaited.pop(name, None)
        if isinstance(awaited, Reference):  # It ends before it had blocks.
            self._step.done.append(awaited)
        whole = (RequestStatus.FINISHED_LENGTH_CAPPED, RequestStatus.FINISHED_STOPPED)
        if not params.get("do_remote_decode") or request.status not in whole:
            return False, None
        blocks = self._cache.select_transfer_block_ids(blocks)
        if not any(blocks) or not self.workers:
            return False, None
        tokens = min(request.num_computed_tokens, request.num_prompt_tokens)
        try:
            lease = self._leases.lend(name)
        except Refused as refused:
            logger.warning("Weft: request %s is not handed over: %s", name, refused)
            return False, None
        reference = Reference(
            lender=self._engine.address, workers=self.workers, slot=lease.slot,
            generation=lease.generation, seconds=self._settings.lease, model=self._model,
            weights=self._weights,
            tokens=tokens, prompt=prompt_digest(request, tokens),
            blocks=[list(each) for each in blocks])
        return True, reference.params(name, self._engine_id, self._key)

    def forget_all(self) -> None:
        self._step.released += self._leases.end_all()

    def close(self) -> None:
        self._leases.close()
        self._engine.close()


class _Worker:
    """Registers the cache, and loads into it."""

    def __init__(self, vllm_config: VllmConfig, kv_cache_config: Any, settings: Settings,
                 engine: weft.Engine) -> None:
        self._engine, self._settings = engine, settings
        self._cache_config = kv_cache_config
        parallel = vllm_config.parallel_config
        self._rank = parallel.rank % (parallel.tensor_parallel_size
                                      * parallel.pipeline_parallel_size)
        self._loader: Loader | None = None
        self._released: set[str] = set()
        self.stats = Stats()

    @property
    def address(self) -> str:
        return self._engine.address

    def register(self, tensors: dict[str, Any]) -> None:
        groups = self._cache_config.transfer_groups
        self._caches = Caches(
            self._engine, tensors, blocks=self._cache_config.num_blocks,
            groups=self._cache_config.transfer_group_index_by_layer,
            block_tokens=[group.kv_cache_spec.block_size for group in groups])
        self._loader = Loader(self._engine, self._caches, rank=self._rank,
                              timeout=self._settings.load_timeout, verify=self._settings.verify,
                              version=loaded_step, fenced=self._settings.fenced)

    def obey(self, step: _Step) -> None:
        assert self._loader is not None
        self._released.update(step.released)
        for load in step.loads:
            self._loader.begin(load)
        for name, why in step.refused:
            self._loader.refuse(name, why)
        for name in step.aborted:
            self._loader.cancel(name)
        self._loader.say(step.done, DONE)
        self._loader.say(step.wanted, WANTED)

    def results(self) -> KVConnectorTransferResults:
        results = KVConnectorTransferResults(finished_sending=self._released)
        self._released = set()
        if self._loader is None:
            return results
        for each in self._loader.results():
            results.finished_recving.add(each.request)
            self.stats.note(each)
            if each.error is None:
                logger.debug("Weft: request %s: %d bytes in %.1f ms", each.request, each.bytes,
                             1e3 * each.seconds)
                continue
            logger.error("Weft: request %s: the KV cache is not loaded: %s", each.request,
                         each.error)
            results.failed_recving.add(each.request)
        return results

    def close(self) -> None:
        if self._loader is not None:
            self._loader.close()
        self._engine.close()


def model_digest(vllm_config: VllmConfig) -> str:
    """Of what decides the numbers in the cache, but for the weights themselves."""
    model = vllm_config.model_config
    config = {name: value for name, value in model.hf_config.to_dict().items()
              if name not in SAME_ANYWHERE}
    return digest_of([config, str(model.dtype), model.quantization,
                      vllm_config.cache_config.cache_dtype])


def prompt_digest(request: Any, tokens: int) -> str:
    """Of the first tokens, and of what else decides their keys and values."""
    lora = request.lora_request.lora_name if request.lora_request else None
    features = [each.identifier for each in getattr(request, "mm_features", None) or ()]
    return digest_of([digest_of_tokens((request.prompt_token_ids or [])[:tokens]), lora, features,
                      getattr(request, "cache_salt", None)])
