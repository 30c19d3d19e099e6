"""What WeftConnector counts, for vLLM's log and for its /metrics."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from vllm.distributed.kv_transfer.kv_connector.v1.metrics import (  # type: ignore[import-not-found]
    KVConnectorPromMetrics,
    KVConnectorStats,
)
from vllm.v1.metrics.utils import create_metric_per_engine  # type: ignore[import-not-found]

from ._loads import Result
from ._reference import Refused

__all__ = ["PromMetrics", "Stats"]

SECONDS_BUCKETS = [0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30]
BYTES_BUCKETS = [2**exponent for exponent in range(12, 36, 2)]
COUNTERS = {
    "refused": "Loads that were refused: the reference was stale, changed, or another request's.",
    "failed": "Loads that failed otherwise: prefill was gone, or too slow.",
    "given_up": "Requests whose blocks prefill freed because no decode had wanted them in time.",
}


class Stats(KVConnectorStats):  # type: ignore[misc]
    """`data`: seconds and bytes of each load, and the counts of COUNTERS."""

    def __init__(self, data: dict[str, Any] | None = None) -> None:
        super().__init__()
        self.reset()
        for name, value in (data or {}).items():
            self.data[name] += value  # A copy: others keep theirs.

    def reset(self) -> None:
        self.data = {"seconds": [], "bytes": [], **dict.fromkeys(COUNTERS, 0)}

    def note(self, result: Result) -> None:
        if result.error is None:
            self.data["seconds"].append(result.seconds)
            self.data["bytes"].append(result.bytes)
        else:
            self.count("refused" if isinstance(result.error, Refused) else "failed")

    def count(self, what: str, by: int = 1) -> None:
        self.data[what] += by

    def taken(self) -> Stats | None:
        """What there is, and begins anew; None: nothing."""
        if self.is_empty():
            return None
        taken = Stats(self.data)
        self.reset()
        return taken

    def aggregate(self, other: KVConnectorStats) -> KVConnectorStats:
        for name, value in other.data.items():
            self.data[name] += value
        return self

    def reduce(self) -> dict[str, int | float]:
        seconds = sorted(self.data["seconds"])
        return {
            "Loads": len(seconds),
            "Median load time (ms)": round(1e3 * seconds[len(seconds) // 2], 3) if seconds else 0,
            "Longest load time (ms)": round(1e3 * seconds[-1], 3) if seconds else 0,
            "MB": round(sum(self.data["bytes"]) / 1e6, 3),
            **{name.replace("_", " ").capitalize(): self.data[name] for name in COUNTERS},
        }

    def is_empty(self) -> bool:
        return not any(self.data.values())


class PromMetrics(KVConnectorPromMetrics):  # type: ignore[misc]
    def __init__(self, config: Any, types: Any, labels: list[str],
                 per_engine: dict[int, list[object]]) -> None:
        super().__init__(config, types, labels, per_engine)

        def of_engines(metric: Any) -> Any:
            return create_metric_per_engine(metric, per_engine)

        self._observed = {
            name: of_engines(self._histogram_cls(name=f"vllm:weft_load_{name}", documentation=about,
                                                 buckets=buckets, labelnames=labels))
            for name, about, buckets in (
                ("seconds", "Time of a request's load.", SECONDS_BUCKETS),
                ("bytes", "Bytes of a request's load.", BYTES_BUCKETS))
        }
        self._counted = {
            name: of_engines(self._counter_cls(name=f"vllm:weft_loads_{name}", documentation=about,
                                               labelnames=labels))
            for name, about in COUNTERS.items()
        }

    def observe(self, transfer_stats_data: dict[str, Any], engine_idx: int = 0) -> None:
        for name, metric in self._observed.items():
            values: Iterable[float] = transfer_stats_data[name]
            for value in values:
                metric[engine_idx].observe(value)
        for name, metric in self._counted.items():
            if transfer_stats_data[name]:
                metric[engine_idx].inc(transfer_stats_data[name])
