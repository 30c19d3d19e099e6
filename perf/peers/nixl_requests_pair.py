"""The two sides of NIXL's requests, with one of its backends."""

from children import answers
from pair import START_SECONDS, Pair


class RequestsPair(Pair):
    def __init__(self, name, venv, engine):
        super().__init__(name, venv, "nixl_requests_side.py", engine)

    def introduce(self):
        super().introduce()
        self.target.ask(START_SECONDS, "meet", **self.initiator.ask(START_SECONDS, "introduce"))

    def notify(self, size, count, limit):
        """Seconds from the post of each write until the target has its notification."""
        self.target.tell("receive", count=count, limit=limit)
        self.initiator.tell("send", size=size, count=count, limit=limit)
        seen, posted = answers([self.target, self.initiator], 2 * limit)
        return [(after - before) / 1e9 for before, after in zip(posted, seen, strict=True)]
