"""Gives to a fuzz target what the encoders write now, and its part of the corpus.

Usage: replay.py TARGET PROGRAM SEEDS: the programs fuzz-TARGET and fuzz-seeds
"""

import os
import subprocess
import sys
import tarfile
import tempfile

CORPUS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "corpus.tar.xz")


def main():
    target, program, seeds = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([seeds, folder], check=True)
        with tarfile.open(CORPUS) as corpus:
            corpus.extractall(folder, [member for member in corpus.getmembers()
                                       if member.name.startswith(target + "/")])
        return subprocess.run([program, os.path.join(folder, target)], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
