"""What users read: signatures, help, types, options, errors."""

from __future__ import annotations

import datetime
import inspect
import json
import os
import pickle
import pydoc
import subprocess
import sys
from pathlib import Path

import numpy
import pytest
from support import Pair

import weft

PUBLIC = [getattr(weft, name) for name in weft.__all__]
CLASSES = [each for each in PUBLIC if inspect.isclass(each)]


def test_everything_is_described() -> None:
    for each in [*CLASSES, *(getattr(weft.kv, name) for name in weft.kv.__all__),
                 *(getattr(weft.weights, name) for name in weft.weights.__all__)]:
        assert each.__doc__, each
        for name in dir(each) if inspect.isclass(each) else []:
            member = getattr(each, name)
            if not name.startswith("_") and callable(member):
                assert member.__doc__ and "arg0" not in member.__doc__, (each, name)
    text = pydoc.plain(pydoc.render_doc(weft))
    for word in ("Engine", "timeout", "arg0", "Segment.close()"):
        assert (word in text) == (word != "arg0")


def test_public_names() -> None:
    assert sorted(weft.__all__) == weft.__all__
    for name in weft.__all__:
        assert hasattr(weft, name)


def test_engines_tell_of_themselves(engines: Pair) -> None:
    a = engines.a
    assert a.name in repr(a)
    info = a.info()
    assert info.name == a.name
    assert info.rails[0].capability.provider
    assert {setting.name: setting.value for setting in info.settings}["default_timeout"] == "30s"
    assert a.peers() == [engines.to_b] and hash(a.peers()[0]) == hash(engines.to_b)
    assert engines.to_b.up and engines.to_b.health in (weft.Health.up, weft.Health.slow)
    assert engines.to_b.why_down is None
    assert engines.to_b.rails
    assert "weft_" in a.metrics_text()
    assert a.snapshot().startswith("{")
    assert a.slowest_transfers() == []
    assert a.nic_counters() == []
    pieces = weft.Pieces([0], [0], 1)
    for thing in (a, info, info.rails[0], engines.to_b, a.add(bytearray(10)), pieces):
        assert repr(thing).startswith("<weft.")


def test_options() -> None:
    names = [option.name for option in weft.options()]
    assert list(weft.Options.__annotations__) == ["use_environment", *names]
    with weft.Engine(
        providers=["tcp"],
        default_timeout=1.5,
        spin="50us",
        max_message=1 << 14,
        policy=weft.Policy(max_copies=9),
        peer_policies={"x": "min_gbps=1"},
        metrics=False,
        progress="threads",
    ) as engine:
        settings = {setting.name: setting for setting in engine.info().settings}
        assert settings["default_timeout"].value == "1500ms"
        assert settings["spin"].value == "50us"
        assert settings["max_message"].value == "16384"
        assert settings["policy"].value == "max_copies=9"
        assert settings["peer_policies"].value == "x: min_gbps=1"
        assert settings["metrics"].source == weft.Setting.Source.call
        with pytest.raises(weft.TimedOut):
            engine.accept()
    with pytest.raises(weft.NotFound, match="lisen"):
        weft.Engine(lisen="x")
    with pytest.raises(weft.InvalidArgument):
        weft.Engine(heartbeat="soon")
    with pytest.raises(TypeError):
        weft.Engine("127.0.0.1:0")
    assert any(candidate.provider.startswith("tcp") for candidate in weft.discover())


def test_errors() -> None:
    error = weft.Stale("it ended", peer="decode", rail="tcp:0", fabric_code=5)
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is weft.Stale
    assert vars(again) == vars(error)
    assert str(error) == "it ended (peer decode, rail tcp:0, libfabric error 5)"
    assert issubclass(weft.TimedOut, TimeoutError) and issubclass(weft.TimedOut, weft.Error)
    assert str(weft.TimedOut("late", peer="b")) == "late (peer b)"
    assert len({kind.code for kind in weft.Error.__subclasses__()}) == 20


USERS_CODE = '''
import asyncio
import numpy as np
import weft
from weft import kv, weights


def decode(engine: weft.Engine, cache: np.ndarray) -> weft.Signals:
    with engine.add(cache) as segment, segment.grant(weft.Rights.write, ttl=60.0) as grant:
        engine.publish("kv", grant)
        peer: weft.Peer = engine.accept(timeout=60)
        return peer.expect(7, count=2).wait(timeout=1)


async def prefill(engine: weft.Engine, segment: weft.Segment, remote: weft.Remote) -> bytes:
    pages = weft.Paged(4096, np.arange(10, dtype=np.uint32), range(10))
    prepared: weft.Prepared = engine.prepare(segment, remote, weft.Direction.write, pages)
    await engine.submit(prepared, priority=weft.Priority.latency, signal=weft.Signal(1, b"x"))
    async for event in engine.events():
        error: Exception | None = event.error
        if error is not None:
            raise error
        break
    try:
        message = await engine.peers()[0].receive(1)
    except weft.Disconnected as gone:
        return gone.peer.encode()
    return message.bytes


def plan(blocks: list[int]) -> list[weft.Pieces]:
    model: kv.Model = kv.from_config("{}", "mine")
    layout = model.layout(
        blocks=4, parallel=kv.Parallel(tp_size=2), layers=(0, 4), **kv.with_server("sglang")
    )
    group = kv.Group(
        layers=range(4), blocks=4, tokens_per_block=16, fields=kv.keys_values(8, 128),
        **kv.with_server("vllm-flashinfer"),
    )  # fmt: skip
    lacking = kv.missing(group, [b"1"], [], tokens_per_hash=16, tokens=75)
    src, dst = kv.Cache(layout), kv.Cache.of_segments(kv.Layout([group]))
    made = kv.plan(src, [kv.Blocks(np.array(blocks))], dst, kv.Blocks(blocks, 0, lacking), 75)
    writers: list[kv.Rank] = kv.source_ranks([layout], dst.layout, tokens=(0, 75))
    return [pieces for _, _, pieces in made.transfers()]


def serve(engine: weft.Engine, mine: np.ndarray) -> float:
    holds, segments = weights.rank_of(
        engine, {"w": weights.Slice(mine, (8, 4), (0, 0))}, name="rank0"
    )
    with weights.Subscriber(engine, holds, [segments], leader="10.0.0.1:7000") as subscriber:
        subscriber.wait(7, timeout=60)
        step: int | None = subscriber.step
        with subscriber.read() as reading:
            shape: tuple[int, ...] = holds.shards[reading.set].shape
    made: weights.Plan = weights.plan(weights.World([holds], [holds]), host_gbps=100)
    return made.predicted_seconds + (step or 0) + len(shape)


async def train(publisher: weights.Publisher) -> int:
    published: weights.Published = await publisher.publish_async(7, timeout=10)
    return published.step + publisher.publish(8).bytes


engine = weft.Engine(listen="127.0.0.1:0", providers=["tcp"], heartbeat=0.5, metrics=False)
report: weft.Report = weft.Engine.write(
    engine, engine.add(bytearray(1)), engine.accept().lookup("x"), [(0, 0, 1)]
).report()
seconds: float = report.elapsed
view = memoryview(engine.add(weft.Memory.own(10)))
array = np.asarray(weft.Pieces([0], [0], 1))
'''


def test_types(tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    package = Path(weft.__file__).parent
    if not (package / "_weft.pyi").exists():
        pytest.skip("no stubs in a build with a sanitizer")
    good = tmp_path / "good.py"
    good.write_text(USERS_CODE)
    assert "std::" not in (package / "_weft.pyi").read_text()
    environment = dict(os.environ)
    if package.parent.name != "site-packages":  # There mypy finds it by itself.
        environment["MYPYPATH"] = str(package.parent)

    def checked(program: Path) -> subprocess.CompletedProcess[str]:
        check = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path / "cache")]
        return subprocess.run(
            [*check, str(program)], capture_output=True, text=True, cwd=tmp_path, env=environment
        )

    ran = checked(good)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    bad = tmp_path / "bad.py"
    bad.write_text("import weft\nweft.Engine(listen=5)\nweft.Engine().accept(soon=1)\n")
    ran = checked(bad)
    assert ran.stdout.count("error:") == 2, ran.stdout


def test_names_that_are_no_text() -> None:
    name = os.fsdecode(b"caf\xe9")
    with weft.Engine(providers=["tcp"], name=name, peer_events=True) as b:
        with weft.Engine(providers=["tcp"], name=name + "2", listen="") as a:
            peer = a.connect(b.address)
            assert (b.name, peer.name, a.peer(name).name) == (name, name, name)
            assert name in repr(peer) and name in a.metrics_text()
            assert b.peer(name + "2").name == name + "2"
            assert [each.peer for each in b.poll(timeout=30)] == [name + "2"]
            with b.add(weft.Memory.own(64)) as segment:
                grant = segment.grant(weft.Rights.read)
                remote = a.import_grant(grant.blob)
                assert remote.peer == name and name in repr(remote)
                b.publish(name, grant)
                assert peer.lookup(name).segment_size == 64
                grant.revoke()
                with pytest.raises(weft.Stale) as stale:
                    a.import_grant(grant.blob)
                assert stale.value.peer == name
            peer.send(1, b"x")
            assert b.peer(name + "2").recv(1, timeout=30).peer == name + "2"
            json.loads(a.snapshot())
    with pytest.raises(weft.NotFound, match="caf\udce9"):
        weft.kv.find_model(name)


def test_wrong_arguments_are_told_in_a_sentence(engines: Pair) -> None:
    there, remote = engines.granted(bytearray(10), weft.Rights.write)
    with engines.a.add(bytearray(10)) as here:
        for wrong in ("1s", datetime.timedelta(seconds=1), [1]):
            for call in (
                lambda: engines.a.accept(wrong),
                lambda: engines.a.connect("127.0.0.1:1", wrong),
                lambda: engines.to_b.expect(1).wait(timeout=wrong),
                lambda: engines.a.write(here, remote, [(0, 0, 1)], timeout=wrong),
                lambda: engines.a.write(here, remote, [(0, 0, 1)], wait_for_room=wrong),
                lambda: engines.a.poll(timeout=wrong),
                lambda: here.grant(weft.Rights.read, ttl=wrong),
                lambda: here.close(wrong),
                lambda: engines.a.accept_async(wrong),
            ):
                with pytest.raises(TypeError, match="^a time is a number of seconds, or None"):
                    call()
        for wrong in (-1, 1 << 64, "7", b"7"):
            for call in (
                lambda: engines.a.write(here, remote, [(0, 0, 1)], signal=wrong),
                lambda: engines.to_b.signal(wrong),
            ):
                with pytest.raises(TypeError, match="^a signal is a number from 0"):
                    call()
        engines.a.write(here, remote, [(0, 0, 1)], timeout=numpy.float32(30)).wait(None)
    there.close()
    with pytest.raises(weft.InvalidArgument, match="use_environment"):
        weft.Engine(use_environment="no")
    with pytest.raises(weft.InvalidArgument):
        weft.Engine(default_timeout=10**400)
