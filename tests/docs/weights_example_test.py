"""Runs both sides of the example of weights, and looks that every byte of each step came."""

import socket
import subprocess
import sys

PATIENCE = 60  # seconds


def main():
    program = sys.argv[1]
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{probe.getsockname()[1]}"
    rank = subprocess.Popen([program, "rank", address], stdout=subprocess.PIPE, text=True)
    try:
        subprocess.run([program, "trainer", address], timeout=PATIENCE, check=True)
        said, _ = rank.communicate(timeout=PATIENCE)
    finally:
        rank.kill()
    if rank.returncode or said.count("1048576 of 1048576 bytes are right") != 3:
        sys.exit(f"the rank ended with {rank.returncode} and said: {said}")


if __name__ == "__main__":
    main()
