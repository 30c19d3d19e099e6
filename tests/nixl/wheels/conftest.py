"""What the tests are given: the backend, over what it runs, and two parties that have met."""

import collections
import os

import pytest

from moves import PROMPT, fill
from parties import Parties, introduce, together

KINDS = ("tcp", "shm", "efa")
SLACK = {"efa": 20}  # Seconds: to close simulated rails takes some.
USUAL_SLACK = 4
PATIENT = {"death_after": "20s"}  # On a machine so busy that 2 s of silence mean nothing.
Settings = collections.namedtuple("Settings", "backend parameters environment may_crash_at_exit")


def pytest_addoption(parser):
    add = parser.addoption
    add("--backend", default="WEFT", help="another one to compare with; default: WEFT")
    add("--plugin", default="", help="libplugin_WEFT.so")
    add("--providers", default="tcp,shm", help="of " + ",".join(KINDS) + "; default: tcp,shm")
    add("--long", action="store_true", help="the long forms")


def pytest_generate_tests(metafunc):
    if "providers" in metafunc.fixturenames:
        metafunc.parametrize("providers", metafunc.config.getoption("--providers").split(","),
                             scope="session")


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    report = (yield).get_result()
    item.failed = getattr(item, "failed", False) or report.failed


@pytest.fixture(scope="session")
def plugin_folder(pytestconfig, tmp_path_factory):
    """With a link to the plug-in, as NIXL_PLUGIN_DIR wants it."""
    plugin, folder = pytestconfig.getoption("--plugin"), tmp_path_factory.mktemp("plugins")
    if plugin:
        (folder / "libplugin_WEFT.so").symlink_to(os.path.abspath(plugin))
    return folder


@pytest.fixture(scope="session")
def settings(pytestconfig, plugin_folder):
    """Without providers."""
    backend = pytestconfig.getoption("--backend")
    environment = {"OMP_NUM_THREADS": "1"}
    if backend == "WEFT":
        environment["NIXL_PLUGIN_DIR"] = str(plugin_folder)
    return Settings(backend, {}, environment, may_crash_at_exit=backend != "WEFT")


@pytest.fixture(scope="session")
def over(settings, providers):
    """Settings with the providers that this run of a test is about."""
    if settings.backend != "WEFT":
        return settings
    return settings._replace(parameters={**PATIENT, "providers": providers})


@pytest.fixture
def parties(over):
    """Starts processes for this test alone."""
    started = Parties(over)
    yield started
    started.tell()
    try:
        started.end()
    finally:
        started.kill_all()


@pytest.fixture
def weft(settings):
    if settings.backend != "WEFT":
        pytest.skip("it is about WEFT")


@pytest.fixture(scope="session")
def pairs():
    """Two processes for each of the providers, which stay until a test fails."""
    kept = {}
    yield kept
    for started, _ in kept.values():
        try:
            started.end()
        finally:
            started.kill_all()


def pair_of(pairs, over, providers):
    if providers not in pairs:
        started = Parties(over)
        pairs[providers] = started, started.start_each({"initiator": None, "target": None})
    return pairs[providers]


@pytest.fixture
def two(request, pairs, over, providers):
    """Two parties that have met, with memory for this test: initiator, target = two(lengths)."""
    started, pair = pair_of(pairs, over, providers)

    def own_and_meet(lengths, paths=(None, None)):
        for party, path in zip(pair, paths):
            party.own(lengths, path)
        introduce(*pair)
        return pair

    yield own_and_meet
    broken = request.node.failed
    try:
        if not broken:
            part(*pair)
    except Exception:
        broken = True
        raise
    finally:
        if broken:
            started.tell()
            started.kill_all()
            del pairs[providers]


def part(*pair):
    for party, other in zip(pair, reversed(pair)):
        party.tidy()
        assert party.forget(peer=other.name) == "forgotten"
    for party in pair:
        assert party.disown() == "disowned"
        party.unmap()


def met(lengths, *group):
    """Each has memory of its own."""
    together(*(lambda party=party: party.own(lengths) for party in group))
    introduce(*group)
    return group


@pytest.fixture
def fresh(parties):
    """Two parties of this test alone, met: initiator, target = fresh(lengths)."""
    return lambda lengths, parameters=None, sync=None: met(lengths, *parties.start_each(
        {"initiator": parameters, "target": parameters}, sync))


@pytest.fixture
def prompt(parties):
    """The same, with an initiator that soon takes a silent peer for dead."""
    return lambda lengths: met(lengths, *parties.start_each(
        {"initiator": PROMPT, "target": None}))


@pytest.fixture
def three(parties):
    """The same with a third that has met the target only, each filled:
    initiator, target, bystander = three(lengths)."""

    def started(lengths):
        initiator, target, bystander = parties.start_each(
            {"initiator": PROMPT, "target": None, "bystander": None})
        met(lengths, initiator, target)
        bystander.own(lengths)
        introduce(target, bystander)
        fill(initiator, target)
        return initiator, target, bystander

    return started


@pytest.fixture
def slack(providers):
    """Seconds for what follows a death or a deadline, on a busy machine."""
    return SLACK.get(providers, USUAL_SLACK)


@pytest.fixture
def long(pytestconfig):
    return pytestconfig.getoption("--long")


@pytest.fixture
def shared_files():
    """Files without a name, that other processes of this user open by a path."""
    files = []

    def shared_file():
        files.append(os.memfd_create("party"))
        return f"/proc/{os.getpid()}/fd/{files[-1]}"

    yield shared_file
    for file in files:
        os.close(file)
