"""Runs both roles of an example, and looks that every byte came."""

import socket
import subprocess
import sys
import time

PATIENCE = 60  # seconds


def main():
    program = sys.argv[1]
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{probe.getsockname()[1]}"
    decode = subprocess.Popen([program, "decode", address], stdout=subprocess.PIPE, text=True)
    try:
        give_up = time.monotonic() + PATIENCE
        prefill = [program, "prefill", address]
        while subprocess.run(prefill, timeout=PATIENCE, check=False).returncode:
            if time.monotonic() > give_up or decode.poll() is not None:
                sys.exit("prefill did not reach decode")
            time.sleep(0.1)  # it does not listen yet
        said, _ = decode.communicate(timeout=PATIENCE)
    finally:
        decode.kill()
    if decode.returncode or said.count("65536 of 65536 bytes are right") != 2:
        sys.exit(f"decode ended with {decode.returncode} and said: {said}")


if __name__ == "__main__":
    main()
