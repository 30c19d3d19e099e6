"""One side of writes by NIXL, in a Python that has its wheel.

Usage: nixl_write.py initiator|target BYTES host|gpu BACKEND [NAME=VALUE...]
"""

import sys

from nixl_side import NixlSide, parameters_of
from side import keep_answers_apart


def main():
    answers = keep_answers_apart()
    role, length, memory, backend, *words = sys.argv[1:]
    # The target's CPU takes part in what tcp brings; the initiator polls by itself.
    NixlSide(role, int(length), memory, backend, parameters_of(words),
             progress_thread=role == "target").serve(answers)


main()
