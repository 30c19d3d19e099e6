"""What the two sides of a driven peer have in common: their memory, and the commands they obey.

A side reads commands as lines of JSON and answers each with one. It ends with its input.
"""

import json
import os
import sys
import time

from memory import KINDS


class Side:
    """A library under measurement adds introduce, meet, prepare, begin and ended.

    begin(slot) starts a write, ended(slot) tells without waiting whether it is done.
    """

    def __init__(self, length, memory="host"):
        self.memory = KINDS[memory](length)

    def write(self, size, window, count, limit):
        """Keeps the window full until count writes are done; the seconds that they took."""
        self.prepare(size, window)
        self._keep_in_flight(window, window, limit)
        return self._keep_in_flight(window, count, limit)

    def latencies(self, size, count, limit):
        """The seconds that each write took, one after the other."""
        self.prepare(size, 1)
        return [self._keep_in_flight(1, 1, limit) for _ in range(count)]

    def _keep_in_flight(self, window, count, limit):
        start = time.perf_counter()
        begun = min(window, count)
        busy = list(range(begun))
        for slot in busy:
            self.begin(slot)
        while busy:
            if time.perf_counter() - start > limit:
                raise TimeoutError(f"{len(busy)} of {count} writes have not ended in {limit} s")
            still = []
            for slot in busy:
                if not self.ended(slot):
                    still.append(slot)
                elif begun < count:
                    self.begin(slot)
                    begun += 1
                    still.append(slot)
            busy = still
        return time.perf_counter() - start

    def serve(self, answers):
        for line in sys.stdin:
            request = json.loads(line)
            try:
                answer = {"answer": self._obey(**request)}
            except Exception as error:  # Whatever the library throws is told in a line.
                answer = {"error": f"{type(error).__name__}: {error}"}
            print(json.dumps(answer), file=answers, flush=True)

    def commands(self):
        return {"cpu": time.process_time, "introduce": self.introduce, "meet": self.meet, "write": self.write,
                "latencies": self.latencies, "fill": self.memory.fill,
                "first_wrong": self.memory.first_wrong}

    def _obey(self, do, **arguments):
        return self.commands()[do](**arguments)


def keep_answers_apart():
    """Standard output for answers alone: what libraries print there goes to standard error."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    return answers
