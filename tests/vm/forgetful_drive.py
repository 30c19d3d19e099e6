"""A drive that forgets: an NBD server with a cache that a power cut takes, sector by sector.

QEMU's own drives lie in files of this machine, whose page cache outlives the guest: nothing that
the guest wrote would ever be lost. What is written here stays in a cache of the drive until it is
flushed. A cut leaves of each write in the cache a random half of its sectors: so it is lost, torn
or whole, whether it was answered or not. QEMU makes a flush of a forced unit access (FUA).

The protocol is NBD's (doc/proto.md of the NetworkBlockDevice project): the newstyle handshake with
NBD_OPT_GO, and simple replies."""

import os
import select
import socket
import struct
import subprocess
import threading

SECTOR = 512
# A drive writes its cache out by and by. In writes: so many stay in it.
MOST_IN_CACHE = 256

FIXED_NEWSTYLE, NO_ZEROES = 1, 2
OPT_GO = 7
REP_ACK, REP_INFO, REP_UNSUPPORTED = 1, 3, 0x80000001
HAS_FLAGS, SEND_FLUSH = 1, 4
READ, WRITE, DISCONNECT, FLUSH = 0, 1, 2, 3
REQUEST = struct.Struct(">IHHQQI")


class PowerCut(Exception):
    """Raised by `at_step`: the drive answers no more."""


class Request:
    def __init__(self, kind, handle, at, length, data):
        self.kind, self.handle, self.at, self.length, self.data = kind, handle, at, length, data
        self.answered = False

    def end(self):
        return self.at + len(self.data)


class ForgetfulDrive:
    """Serves `path`, a file of stable bytes, to one client at the socket `path`.sock. `at_step` is
    called by the server between any two things that happen in the drive."""

    def __init__(self, path, dice, at_step=lambda: None):
        self._dice = dice
        self._at_step = at_step
        self._path = path
        self._stable = os.open(path, os.O_RDWR)
        self._cache = []  # writes, as they came
        self.flushes = 0
        self.failure = None
        self.socket = f"{path}.sock"
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(self.socket)
        self._listener.listen(1)
        self._client = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def devices(self, serial, fua):
        """QEMU's words for it as a SCSI drive whose write cache is on, and which takes forced unit
        access, or flushes alone. (QEMU 7.2's NVMe drive offers FUA, and takes no notice of it.)"""
        return ["-drive", f"if=none,id={serial},format=raw,cache=writeback,discard=ignore,"
                f"file.driver=nbd,file.server.type=unix,file.server.path={self.socket}",
                "-device",
                f"scsi-hd,drive={serial},serial={serial},dpofua={'on' if fua else 'off'}"]

    def close(self):
        """Ends the server, whose client is gone or may fail."""
        for each in [self._client, self._listener]:
            if each is not None:
                try:
                    each.shutdown(socket.SHUT_RDWR)
                except OSError:  # its other end is gone
                    pass
        self._thread.join()
        for each in [self._client, self._listener]:
            if each is not None:
                each.close()
        os.unlink(self.socket)
        os.close(self._stable)

    def picture_of_a_cut(self, path):
        """Writes to `path` what the drive would have if its power were cut now. Not while the
        server goes on: from `at_step`, or once it has ended."""
        subprocess.run(["cp", "--sparse=auto", self._path, path], check=True)
        with open(path, "r+b", buffering=0) as picture:
            for write in self._cache:
                for offset in range(0, len(write.data), SECTOR):
                    if self._dice.random() < 0.5:
                        picture.seek(write.at + offset)
                        picture.write(write.data[offset:offset + SECTOR])

    def _run(self):
        try:
            self._client, _ = self._listener.accept()
            self._shake_hands()
            while self._serve_batch():
                pass
        except (PowerCut, EOFError, ConnectionError):
            pass
        except Exception as failure:  # whoever owns the drive tells it
            self.failure = failure

    def _receive(self, count):
        data = bytearray()
        while len(data) < count:
            part = self._client.recv(count - len(data))
            if not part:
                raise EOFError
            data += part
        return bytes(data)

    def _shake_hands(self):
        self._client.sendall(b"NBDMAGICIHAVEOPT" + struct.pack(">H", FIXED_NEWSTYLE | NO_ZEROES))
        self._receive(4)  # flags of the client
        option = None
        while option != OPT_GO:
            _, option, length = struct.unpack(">8sII", self._receive(16))
            self._receive(length)
            if option != OPT_GO:
                self._reply_to_option(option, REP_UNSUPPORTED)
        export = struct.pack(">HQH", 0, os.fstat(self._stable).st_size, HAS_FLAGS | SEND_FLUSH)
        self._reply_to_option(option, REP_INFO, export)
        self._reply_to_option(option, REP_ACK)

    def _reply_to_option(self, option, kind, data=b""):
        self._client.sendall(struct.pack(">QIII", 0x3E889045565A9, option, kind, len(data)) + data)

    def _serve_batch(self):
        """All that has come by now begins, and then ends in any order."""
        batch = [self._next()]
        while select.select([self._client], [], [], 0)[0]:
            batch.append(self._next())
        self._cache += [request for request in batch if request.kind == WRITE]
        self._at_step()
        self._dice.shuffle(batch)
        for request in batch:
            if request.kind == DISCONNECT:
                return False
            self._end(request)
        self._settle(self._cache[:-MOST_IN_CACHE])
        return True

    def _next(self):
        _, _, kind, handle, at, length = REQUEST.unpack(self._receive(REQUEST.size))
        data = self._receive(length) if kind == WRITE else b""
        return Request(kind, handle, at, length, data)

    def _end(self, request):
        answer = b""
        if request.kind == READ:
            answer = self._read(request)
        elif request.kind == FLUSH:
            self.flushes += 1
            # No more than it has to: what was answered before.
            self._settle([write for write in self._cache if write.answered])
        self._at_step()
        request.answered = True
        self._client.sendall(struct.pack(">IIQ", 0x67446698, 0, request.handle) + answer)

    def _settle(self, writes):
        for write in writes:
            os.pwrite(self._stable, write.data, write.at)
        self._cache = [write for write in self._cache if write not in writes]

    def _read(self, request):
        data = bytearray(os.pread(self._stable, request.length, request.at))
        end = request.at + request.length
        for write in self._cache:
            begin, stop = max(write.at, request.at), min(write.end(), end)
            if begin < stop:
                data[begin - request.at:stop - request.at] = \
                    write.data[begin - write.at:stop - write.at]
        return bytes(data)
