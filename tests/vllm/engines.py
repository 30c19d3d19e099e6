"""vLLM engines of a test: each is a group of processes that is asked, frozen, killed."""

import contextlib
import itertools
import json
import pathlib
import shutil
import time
from dataclasses import dataclass

import leavings
from counters import Counters
from models import LONGEST
from ports import free_port
from processes import Child

HERE = pathlib.Path(__file__).resolve().parent
START_SECONDS = 1800  # A minute on two idle cores for three at once; others may compute there too.
ANSWER_SECONDS = 120
END_SECONDS = 60
BLOCK_SIZE = 64
# Prefill's cache holds a few requests only: it would run out of room if decode's notifications did
# not free what decode has read, for these leases outlast every test.
TOKENS_OF_CACHE = 5 * LONGEST
LEASE_SECONDS = 3600
# For prefill: keep what was computed, somebody will fetch it.
TO_BE_FETCHED = {
    "do_remote_decode": True, "do_remote_prefill": False, "remote_engine_id": None,
    "remote_block_ids": None, "remote_host": None, "remote_port": None}
# Silence that counts as death: less than the usual 15 s, since `frozen` waits for it.
DEATH_AFTER = "10s"
OWN = "WeftConnector"
ROLES = {"prefill": "kv_producer", "decode": "kv_consumer"}


@dataclass
class Site:
    """Where engines run."""

    python: str            # That has vLLM and NIXL.
    backend: str           # The name of NIXL's.
    plugins: str           # The folder with the plug-in; empty: NIXL's own.
    package: str           # The folder with the Python package weft and its entry points.
    folder: pathlib.Path   # Temporary: models, and whatever vLLM writes.
    logs: pathlib.Path     # Where what the engines said is kept; None: nowhere.


def environment_of(site, variables, with_package=False):
    """Nothing is asked of a model hub, nothing written outside the folder."""
    modules = f"{HERE}:{site.package}" if with_package else str(HERE)
    own = {name: str(site.folder) for name in (
        "TMPDIR", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "HF_HOME", "VLLM_CACHE_ROOT",
        "VLLM_CONFIG_ROOT")}
    if site.plugins:
        own["NIXL_PLUGIN_DIR"] = site.plugins
    return {**own, "PYTHONPATH": modules, "PYTHONDONTWRITEBYTECODE": "1", "HF_HUB_OFFLINE": "1",
            "VLLM_NO_USAGE_STATS": "1", "VLLM_CPU_OMP_THREADS_BIND": "nobind",
            "OMP_NUM_THREADS": "1", "VLLM_NIXL_SIDE_CHANNEL_HOST": "127.0.0.1",
            "WEFT_DEATH_AFTER": DEATH_AFTER, **variables}


def settings_of(site, model, block_size):
    return {"model": str(site.folder / model), "skip_tokenizer_init": True,
            "dtype": "float32", "max_model_len": LONGEST, "enforce_eager": True, "seed": 1,
            "enable_prefix_caching": False, "disable_hybrid_kv_cache_manager": True,
            "block_size": block_size,
            "kv_cache_memory_bytes": 1 << 30,
            "num_gpu_blocks_override": TOKENS_OF_CACHE // block_size,
            "worker_extension_cls": "overwriting.Overwriting"}


def transfer_of(site, role, connector, policy, options):
    if connector == OWN:
        own = {"kv_connector_module_path": "weft.vllm.connector",
               "kv_connector_extra_config": {"lease": LEASE_SECONDS, **options}}
    else:
        own = {"kv_connector_extra_config": {"backends": [site.backend],
                                             "kv_lease_duration": LEASE_SECONDS, **options}}
    return {"kv_connector": connector, "kv_role": ROLES[role], "kv_buffer_device": "cpu",
            "kv_load_failure_policy": policy, **own}


class Engine(Child):
    def __init__(self, site, role, model="llama", connector="NixlConnector", policy="fail",
                 block_size=BLOCK_SIZE, port=None, variables=None, receives=None,
                 one_process=False, options=None, **more):
        settings = {**settings_of(site, model, block_size), **more}
        variables = dict(variables or {})
        if one_process:
            settings["distributed_executor_backend"] = "uni"
            variables["VLLM_ENABLE_V1_MULTIPROCESSING"] = "0"
        if receives:
            settings["weight_transfer_config"] = {"backend": receives}
        self.port = port or free_port()
        self.metrics = f"127.0.0.1:{free_port()}"
        if role != "alone":
            settings["kv_transfer_config"] = transfer_of(site, role, connector, policy,
                                                         options or {})
        super().__init__(
            [site.python, str(HERE / "node.py"), json.dumps(settings)],
            environment_of(site, {"VLLM_NIXL_SIDE_CHANNEL_PORT": str(self.port),
                                  "WEFT_METRICS_LISTEN": self.metrics, **variables},
                           with_package=receives is not None or connector == OWN))
        self.name, self.logs = role, site.logs
        self.begun = time.monotonic()

    def await_ready(self):
        self.begin("about")
        left = START_SECONDS - (time.monotonic() - self.begun)
        self.block_size = self.answer(max(1, left))["block_size"]

    def begin(self, do, **arguments):
        try:
            self.process.stdin.write(json.dumps({"do": do, **arguments}).encode() + b"\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            raise self.failed("has ended") from None

    def reply(self, seconds):
        """An answer or an error."""
        return json.loads(self.line(time.monotonic() + seconds))

    def answer(self, seconds=ANSWER_SECONDS):
        reply = self.reply(seconds)
        if "error" in reply:
            raise self.failed("says " + reply["error"])
        return reply["answer"]

    def generate(self, requests):
        self.begin("generate", requests=requests)
        return self.answer()

    def overwrite(self, value):
        self.begin("overwrite", value=value)
        return self.answer()

    def counters(self):
        return Counters(self.metrics)

    def kill(self):
        """As when the system kills: none of it is asked to end."""
        leavings.kill_but_trackers(self.process.pid)
        self.thaw()
        self._await_gone()
        self._keep_log()
        super().end()

    def end(self):
        """vLLM's processes end each other, if they are given the time."""
        with contextlib.suppress(OSError):
            self.process.stdin.close()
        self._await_gone()
        self.kill()

    def _await_gone(self):
        with contextlib.suppress(Exception):
            self.process.wait(END_SECONDS)
        leavings.await_gone(self.process.pid, END_SECONDS)

    def _keep_log(self):
        if self.logs is None or self.complaints.closed:
            return
        self.complaints.seek(0)
        number = next(numbers)
        with open(self.logs / f"{number:02}-{self.name}.log", "w", encoding="utf-8") as file:
            shutil.copyfileobj(self.complaints, file)


numbers = itertools.count(1)


@contextlib.contextmanager
def running(engines):
    """Engines that were all begun, when all are ready; ended whatever happens."""
    try:
        for engine in engines:
            engine.await_ready()
        yield engines
    finally:
        for engine in engines:
            with contextlib.suppress(OSError):
                engine.process.stdin.close()  # So that they end side by side.
        for engine in engines:
            engine.end()
