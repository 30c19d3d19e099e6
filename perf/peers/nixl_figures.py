"""What is measured of NIXL's requests: each figure gives seconds, by what they are of."""

import statistics

from cell import show_bytes
from spread import quantile

WARM_UP = 10  # One in so many of the first is not counted.
LEAST_CHECKS = 5


class List:
    """Writes of one request: so many blocks."""

    def __init__(self, size, count, posts):
        self.shape = {"size": size, "count": count}
        self.bytes, self.posts = size * count, posts
        self.title = f"list of {count} blocks of {show_bytes(size)}"

    def check(self, pair, limit):
        pair.compared(self.bytes, limit, lambda: self.taken(pair, limit, posts=1, seed=1))

    def taken(self, pair, limit, posts, seed):
        return pair.initiator.ask(2 * limit, "post_list", **self.shape, posts=posts, seed=seed,
                                  limit=limit)

    def measure(self, pair, limit, number):
        found = self.taken(pair, limit, self.posts, seed=number)
        return {f"{self.title}: made": found["made"],
                f"{self.title}: posted": statistics.median(found["posted"]),
                f"{self.title}: posted and done": statistics.median(found["done"])}


class Notification:
    """From the post of a write until the other side has seen its notification."""

    def __init__(self, size, count):
        self.bytes, self.count = size, count
        self.title = f"write of {show_bytes(size)}: posted until notified"

    def check(self, pair, limit):
        pair.compared(self.bytes, limit, lambda: pair.notify(self.bytes, 1, limit))

    def measure(self, pair, limit, number):
        del number
        found = pair.notify(self.bytes, self.count, limit)[self.count // WARM_UP:]
        return {f"{self.title}, p{part}": quantile(found, part / 100) for part in (50, 99)}


class Poll:
    """For notifications where there are none."""

    bytes, check = 0, None

    def __init__(self, calls):
        self.calls = calls

    def measure(self, pair, limit, number):
        del number
        return {f"get_new_notifs finds none, {who}": side.ask(limit, "poll", calls=self.calls)
                for who, side in (("target", pair.target), ("initiator", pair.initiator))}


class Check:
    """Of a request that is under way, where it is after its post."""

    check = None

    def __init__(self, size, count):
        self.shape, self.bytes = {"size": size, "count": count}, size * count

    def measure(self, pair, limit, number):
        found = pair.initiator.ask(2 * limit, "check_list", **self.shape, seed=number, limit=limit)
        if len(found) < LEAST_CHECKS:
            return {}
        return {f"check_xfer_state under way, p{part}": quantile(found, part / 100)
                for part in (50, 99)}
