"""Backends that must not open: an error in Python, and a sentence that says why in the log."""

import pytest

from parties import Parties

REFUSALS = {
    "a policy that this machine can't keep": ({"policy": "providers=efa"}, "efa"),
    "an unknown parameter": ({"provider": "tcp"}, "provider"),
    "a bad value": ({"heartbeat": "soon"}, "heartbeat"),
    "a bad deadline": ({"timeout_ms": "never"}, "timeout_ms"),
    "an unknown provider": ({"providers": "tcp,carrier-pigeon"}, "carrier-pigeon"),
}


@pytest.fixture(scope="module")
def party(settings):
    if settings.backend != "WEFT":
        pytest.skip("it is about WEFT")
    started = Parties(settings)
    process = started.begin("refused")
    assert started.open(process, parameters={"providers": "tcp"}) == "open"
    yield process
    try:
        started.end()
    finally:
        started.kill_all()


@pytest.mark.parametrize("refusal", REFUSALS)
def test_refused(party, pytestconfig, refusal):
    if "policy" in refusal and "efa" in pytestconfig.getoption("--providers"):
        pytest.skip("there is an EFA here")
    parameters, word = REFUSALS[refusal]
    before = len(party.said())
    assert party.reopen(name=refusal, backend="WEFT", parameters=parameters) == "nixlBackendError"
    lines = [line for line in party.said()[before:].splitlines()
             if "weft" in line.lower() and word in line]
    assert len(lines) == 1, party.said()[before:]
    assert party.reopen(name=refusal, backend="WEFT", parameters={"providers": "tcp"}) == "open"
