"""Which engines a case takes. Cases share engines, for to start them takes longest."""

import contextlib
import functools

import cases
import references
import updates
from engines import OWN, running

SMALL_BLOCK = 32
ABORT_SECONDS = 60
LOAD_SECONDS = 10
PROOF_BYTES = 8  # The lease's number, which WeftConnector reads with each request.


def pull(campaign, fabric, wanted):
    """NixlConnector: decode reads."""
    engines = [campaign.engine(fabric, role) for role in ("prefill", "decode")]
    if {"frozen", "killed"} & wanted:
        engines.append(campaign.engine(fabric, "decode", policy="recompute"))
    with running(engines) as (prefill, decode, *others), contextlib.ExitStack() as ends:
        pair = cases.Pair(prefill, decode, campaign.alone(), fabric)
        for case in (cases.tokens, cases.changed):
            campaign.attempt(case.__name__, fabric, wanted, lambda case=case: case(pair))
        if not others:
            return

        def another():
            return ends.enter_context(
                running([campaign.engine(fabric, "prefill", port=prefill.port)]))[0]

        failures = cases.Failures(pair, others[0])
        campaign.attempt("killed", fabric, wanted, lambda: failures.killed(another))
        campaign.attempt("frozen", fabric, wanted, failures.frozen)


def push(campaign, fabric, wanted):
    """NixlPushConnector: prefill writes."""
    with running([campaign.engine(fabric, role, connector="NixlPushConnector")
                  for role in ("prefill", "decode")]) as (prefill, decode):
        pair = cases.Pair(prefill, decode, campaign.alone(), fabric, direction="write")
        campaign.attempt("push", fabric, wanted, lambda: cases.tokens(pair))


def own(campaign, fabric, wanted):
    """WeftConnector. The second decode computes what it can't load."""
    engine = functools.partial(campaign.engine, fabric, connector=OWN)
    with running([engine("prefill"), engine("decode"),
                  engine("decode", policy="recompute")]) as (prefill, decode, other), \
            contextlib.ExitStack() as ends:
        alone = campaign.alone()
        cases.handed_over(prefill, decode, cases.prompt_of(1))  # They meet.
        pair = cases.Pair(prefill, decode, alone, fabric, proof=PROOF_BYTES)
        campaign.attempt("own", fabric, wanted, lambda: cases.tokens(pair))
        campaign.attempt("recomputed", fabric, wanted, lambda: references.refused_then_recomputed(
            prefill, other, alone))
        campaign.attempt("aborted", fabric, wanted, lambda: references.aborts(
            prefill, decode, alone, ABORT_SECONDS))

        def another():
            return ends.enter_context(running([engine("prefill")]))[0]

        campaign.attempt("references", fabric, wanted, lambda: refer(
            references.Table(prefill, decode, alone, another)))


def refer(table):
    table.common()
    table.own()
    return table.check_none_wrong()


def chaos(campaign, fabric, wanted):
    """WeftConnector under faults."""
    options = {"lease": references.LEASE_SECONDS, "load_timeout": LOAD_SECONDS}

    def engine(role):
        return campaign.engine(fabric, role, connector=OWN, options=options)

    with running([engine("prefill"), engine("decode")]) as pair, contextlib.ExitStack() as ends:
        storm = references.Chaos(*pair, campaign.alone(),
                                 lambda role: ends.enter_context(running([engine(role)]))[0])
        campaign.attempt("chaos", fabric, wanted, lambda: storm.run(60 * campaign.minutes))


def unfenced(campaign, fabric, wanted):
    """WeftConnector without its proof."""
    with running([campaign.engine(fabric, role, connector=OWN, options={"fenced": False})
                  for role in ("prefill", "decode")]) as (prefill, decode):
        campaign.attempt("unfenced", fabric, wanted, lambda: references.without_the_proof(
            prefill, decode, campaign.alone()))


def nixl_references(campaign, fabric, wanted):
    """The same table for NixlConnector, as it comes: over Weft and over UCX."""
    def measured(engine):
        with running([engine("prefill"), engine("decode")]) as (prefill, decode):
            table = references.Table(prefill, decode, campaign.alone())
            table.common()
            return table.told()

    campaign.attempt("nixl_references", fabric, wanted, lambda: (
        f"WEFT: {measured(functools.partial(campaign.engine, fabric))}. "
        f"UCX: {measured(campaign.engine_over_ucx)}"))


def mla(campaign, fabric, wanted):
    """One latent vector for all heads."""
    with beside_ucx(campaign, fabric, {"model": "mla"}, {"model": "mla"}) as pair:
        campaign.attempt("mla", fabric, wanted, lambda: cases.tokens(pair))


def blocks(campaign, fabric, wanted):
    """Prefill's blocks are half as long as decode's."""
    with beside_ucx(campaign, fabric, {"block_size": SMALL_BLOCK}, {}) as pair:
        campaign.attempt("blocks", fabric, wanted, lambda: cases.tokens(pair))


def waits(campaign, fabric, wanted):
    """How long decode waits, over NIXL's UCX, over NIXL with Weft, and by WeftConnector. One pair
    after the other: prefill polls for as long as it keeps blocks."""
    ucx = {"variables": {"UCX_TLS": {"shm": "shm,cma,tcp,self"}.get(fabric.name, "tcp,self")}}
    seconds = {}
    for name, engine, settings in (("UCX", campaign.engine_over_ucx, ucx),
                                   ("WEFT", functools.partial(campaign.engine, fabric), {}),
                                   (OWN, functools.partial(campaign.engine, fabric),
                                    {"connector": OWN})):
        with running([engine(role, **settings) for role in ("prefill", "decode")]) as pair:
            measured = cases.Waits(cases.Pair(*pair, None, fabric))
            seconds[name] = {case: getattr(measured, case)() for case in sorted(wanted)}
    for case in sorted(wanted):
        campaign.attempt(case, fabric, wanted, lambda case=case: cases.not_longer(
            {name: each[case] for name, each in seconds.items()}, than="UCX"))


def new_weights(campaign, fabric, wanted):
    """A trainer sends new weights to a running engine, by Weft's package for Python."""
    with contextlib.ExitStack() as ends:
        node = campaign.engine(fabric, "alone", receives="weft")
        ends.callback(node.end)
        tokens = campaign.fresh_loads()  # Engines that begin beside it.
        node.await_ready()
        board = updates.Board(campaign.site, fabric, node, tokens)
        for case in (updates.updates, updates.trainer_killed):
            campaign.attempt(case.__name__, fabric, wanted, lambda case=case: case(board))


@contextlib.contextmanager
def beside_ucx(campaign, fabric, of_prefill, of_decode):
    """A pair whose tokens should be those of two such engines over NIXL's UCX. Those of one engine
    alone are others, by vLLM itself: see README.md."""
    with running([campaign.engine(fabric, "prefill", **of_prefill),
                  campaign.engine(fabric, "decode", **of_decode),
                  campaign.engine_over_ucx("prefill", **of_prefill),
                  campaign.engine_over_ucx("decode", **of_decode)]) as engines:
        yield cases.Pair(*engines[:2], cases.another_pair(*engines[2:]), fabric,
                         model=of_prefill.get("model", "llama"))
