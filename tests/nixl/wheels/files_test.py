"""Files that are named by their paths, as SGLang's HiCache does it."""

from moves import INITIATOR, LIMIT, TARGET

LENGTH = 300_000
STDOUT = 1  # Of a party it is a file.
REFUSED = "nixlBackendError"  # libnixl tells no more of a registration.


def test_pages_are_kept_in_files(two, weft, tmp_path):
    party, _ = two([LENGTH])
    page, none = str(tmp_path / "page"), str(tmp_path / "none")

    def store(operation, text):
        return party.store(operation=operation, text=text, number=STDOUT, length=LENGTH,
                           limit=LIMIT)

    assert store("WRITE", "rw:/nonexistent-nixl-probe") == REFUSED
    assert store("WRITE", "") == REFUSED
    assert party.look_up(backend="WEFT", texts=[page]) == [None]
    party.fill(seed=INITIATOR)
    assert store("WRITE", f"rw,create,direct:{page}") == "DONE"
    assert party.look_up(backend="WEFT", texts=[page, none, f"ro:{page}"]) == [
        str(LENGTH), None, str(LENGTH)]
    party.fill(seed=TARGET)
    assert store("READ", f"ro:{page}") == "DONE"
    piece = [0, 0, LENGTH]
    assert party.wrong(seed=TARGET, landed=[[piece, piece, INITIATOR]]) is None
