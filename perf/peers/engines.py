"""Engines that scripts of ours drive from Python: what each is given, besides its memory."""

import os

from children import Failed
from stand_ins import without_cuda
from ucx import TRANSPORTS


class Engine:
    # Whether a write counts as done before all its bytes are there.
    done_early = False


class Mooncake(Engine):
    software, wheel = "mooncake", "mooncake-transfer-engine (or its -non-cuda)"
    script, words = "mooncake_write.py", ["tcp"]

    def environment(self, scratch):
        del scratch
        return {"MC_TCP_ENABLE_CONNECTION_POOL": "1"}


class Nixl(Engine):
    """One of its backends adds backend, parameters and environment."""

    software = wheel = "nixl"
    script = "nixl_write.py"

    @property
    def words(self):
        return [self.backend, *(f"{name}={value}" for name, value in self.parameters.items())]


class NixlUcx(Nixl):
    backend = "UCX"
    # UCX's shared memory can't tell that a peer has gone, and is not taken if that is asked for.
    parameters = {"ucx_error_handling_mode": "none"}

    def __init__(self, fabric):
        self.transports = TRANSPORTS[fabric]

    def environment(self, scratch):
        del scratch
        return self.transports


class NixlWeft(Nixl):
    """Weft as a backend of NIXL's, out of a build of it. Nobody else looks there for backends."""

    backend = "WEFT"

    def __init__(self, provider, build):
        self.parameters = {"providers": provider}
        self.build = build

    def environment(self, scratch):
        plugin = os.path.abspath(os.path.join(self.build, "lib", "faces", "nixl", "libplugin_WEFT.so"))
        if not os.access(plugin, os.R_OK):
            raise Failed(f"there is no {plugin}: ninja -C {self.build}")
        os.symlink(plugin, os.path.join(scratch, os.path.basename(plugin)))
        return {"NIXL_PLUGIN_DIR": scratch}


class NixlLibfabric(Nixl):
    """NIXL's own, with the libfabric that is installed under a folder, or else the system's."""

    backend, parameters = "LIBFABRIC", {}
    done_early = True  # Once tcp has taken them.

    def __init__(self, venv, libfabric):
        self.venv, self.libfabric = venv, libfabric

    def environment(self, scratch):
        folders = [*without_cuda(self.venv, scratch), os.environ.get("LD_LIBRARY_PATH", "")]
        if self.libfabric:
            folders.insert(0, os.path.join(self.libfabric, "lib"))
        # Not FI_TCP_IFACE=lo: its endpoint finds no address there. This host's own go by lo too.
        return {"FI_PROVIDER": "tcp", "LD_LIBRARY_PATH": ":".join(filter(None, folders))}


def nixls(fabric, settings):
    """NIXL's backends that go between this host's memories over a fabric, by name."""
    found = {"nixl-ucx": NixlUcx(fabric), "nixl-weft": NixlWeft(fabric, settings.build)}
    if fabric == "tcp":
        found["nixl-libfabric"] = NixlLibfabric(settings.venv, settings.libfabric)
    return found
