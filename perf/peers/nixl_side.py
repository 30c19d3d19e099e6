"""One side of transfers by NIXL, in a Python that has its wheel."""

import importlib.metadata
import sys

from side import Side

MEMORY_TYPES = {"host": "DRAM", "gpu": "VRAM"}


def parameters_of(words):
    """Of a backend, each as NAME=VALUE."""
    return dict(word.split("=", 1) for word in words)


class NixlSide(Side):
    def __init__(self, role, length, memory, backend, parameters, progress_thread):
        from nixl import nixl_agent, nixl_agent_config  # It prints while it is loaded.
        super().__init__(length, memory)
        self.memory_type = MEMORY_TYPES[memory]
        config = nixl_agent_config(enable_prog_thread=progress_thread, backends=[])
        self.agent = nixl_agent(role, config)
        try:
            self.agent.create_backend(backend, parameters)
        except Exception as error:  # NIXL's own kinds, which say no more than their names.
            sys.exit(f"this NIXL can't open its backend {backend} here "
                     f"({type(error).__name__}; NIXL_LOG_LEVEL=DEBUG says why)")
        self.agent.register_memory([(self.memory.address, length, 0, "")],
                                   mem_type=self.memory_type)
        self.handles, self.shape = [], None

    def introduce(self):
        return {"version": importlib.metadata.version("nixl"), "address": self.memory.address,
                "metadata": self.agent.get_agent_metadata().hex()}

    def meet(self, version, address, metadata):
        del version
        self.peer = self.agent.add_remote_agent(bytes.fromhex(metadata))
        self.peer_address = address

    def prepare(self, size, window):
        """A handle for each slot of the window, to be posted again and again."""
        if self.shape == (size, window):
            return
        for handle in self.handles:
            self.agent.release_xfer_handle(handle)
        self.handles = [self._handle(slot * size, size) for slot in range(window)]
        self.shape = size, window

    def _handle(self, offset, size):
        mine, theirs = (
            self.agent.get_xfer_descs([(start + offset, size, 0)], mem_type=self.memory_type)
            for start in (self.memory.address, self.peer_address))
        return self.agent.initialize_xfer("WRITE", mine, theirs, self.peer)

    def post(self, handle, message=b""):
        if self.agent.transfer(handle, message) == "ERR":
            raise RuntimeError("NIXL refuses a transfer")

    def done(self, handle):
        state = self.agent.check_xfer_state(handle)
        if state == "ERR":
            raise RuntimeError("a transfer of NIXL's has failed")
        return state == "DONE"

    def begin(self, slot):
        self.post(self.handles[slot])

    def ended(self, slot):
        return self.done(self.handles[slot])
