"""One side of writes by Mooncake's transfer engine, in a Python that has its wheel.

Usage: mooncake_write.py initiator|target BYTES host PROTOCOL
"""

import importlib.metadata
import sys

from side import Side, keep_answers_apart

HOST = "127.0.0.1"
WHEELS = ("mooncake-transfer-engine", "mooncake-transfer-engine-non-cuda")


def version():
    found = {each.metadata["Name"]: each.version for each in importlib.metadata.distributions()}
    return next((found[name] for name in WHEELS if name in found), "unknown")


class MooncakeSide(Side):
    def __init__(self, protocol, length):
        from mooncake.engine import TransferEngine  # It prints while it is loaded.
        super().__init__(length)
        self.engine = TransferEngine()
        if self.engine.initialize(HOST, "P2PHANDSHAKE", protocol, "") != 0:
            raise RuntimeError(f"Mooncake does not begin with {protocol}")
        if self.engine.register_memory(self.memory.address, length) != 0:
            raise RuntimeError("Mooncake does not register the memory")
        self.batches = {}

    def introduce(self):
        return {"version": version(), "address": self.memory.address,
                "host": f"{HOST}:{self.engine.get_rpc_port()}"}

    def meet(self, version, address, host):
        del version
        self.peer, self.peer_address = host, address

    def prepare(self, size, window):
        del window
        self.size = size

    def begin(self, slot):
        offset = slot * self.size
        self.batches[slot] = self.engine.transfer_submit_write(
            self.peer, self.memory.address + offset, self.peer_address + offset, self.size)
        if self.batches[slot] <= 0:
            raise RuntimeError("Mooncake refuses a transfer")

    def ended(self, slot):
        state = self.engine.transfer_check_status(self.batches[slot])
        if state < 0:
            raise RuntimeError("a transfer of Mooncake's has failed")
        return state == 1


def main():
    answers = keep_answers_apart()
    _, length, _, protocol = sys.argv[1:]
    MooncakeSide(protocol, int(length)).serve(answers)


if __name__ == "__main__":
    main()
