"""Eight agents, each in a process of its own, each with all others at once."""

from moves import LIMIT, done
from parties import introduce, together

AGENTS, SLOT = 8, 150_001
OUT, WRITTEN, READ = range(3)  # Regions, with a slot for each agent.


def slot(region, agent):
    return [region, agent * SLOT, SLOT]


def handles_of(number, party, mesh):
    for other, peer in enumerate(mesh):
        if peer is not party:
            yield party.make(operation="WRITE", peer=peer.name, mine=[slot(OUT, other)],
                             theirs=[slot(WRITTEN, number)], with_note=[number, 5000])
            yield party.make(operation="READ", peer=peer.name, mine=[slot(READ, other)],
                             theirs=[slot(OUT, number)], with_note=[AGENTS + number, 50])


def landed_at(number, others):
    for other in others:
        yield [slot(WRITTEN, other), slot(OUT, number), other]
        yield [slot(READ, other), slot(OUT, number), other]


def test_a_mesh(parties, long):
    mesh = [parties.begin(f"agent-{number}") for number in range(AGENTS)]
    assert together(*(lambda party=party: parties.open(party) for party in mesh)) == (
        ["open"] * AGENTS)
    for seed, party in enumerate(mesh):
        party.own([AGENTS * SLOT] * 3)
        party.fill(seed=seed)
    introduce(*mesh)
    handles = [list(handles_of(number, party, mesh)) for number, party in enumerate(mesh)]
    for _ in range(50 if long else 3):
        for moved in together(*(lambda party=party, its=its: party.move(handles=its, limit=LIMIT)
                                for party, its in zip(mesh, handles))):
            done(moved)
        for number, party in enumerate(mesh):
            others = [other for other in range(AGENTS) if other != number]
            came = party.collect(count=2 * len(others), limit=LIMIT)
            assert sorted(came) == sorted(
                [f"agent-{other}", *note] for other in others
                for note in ([other, 5000], [AGENTS + other, 50]))
            assert party.wrong(seed=number, landed=list(landed_at(number, others))) is None
    for party in mesh:
        assert party.quiet(during=0.05) == []
