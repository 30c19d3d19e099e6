"""A rank that has or gets weights otherwise than by Weft: by torch's gloo, or by a TCP stream."""

import datetime
import socket
import time

from side import Side, keep_answers_apart

HOST = "127.0.0.1"


class WeightsRank(Side):
    def __init__(self):
        self.distributed = self.memory = self.server = None
        self.buckets = []

    def commands(self):
        return {"hold": self.hold, "join": self.join, "broadcast": self.broadcast,
                "listen": self.listen, "send": self.send, "receive": self.receive,
                "wrong": self.wrong}

    def hold(self, size, fill):
        self.memory = bytearray(bytes([fill]) * size)

    def join(self, rank, ranks, port, bucket, limit):
        """Has a group with the others. Rank 0 is the trainer."""
        import torch
        from torch import distributed
        self.distributed = distributed
        distributed.init_process_group(
            "gloo", init_method=f"tcp://{HOST}:{port}", rank=rank, world_size=ranks,
            timeout=datetime.timedelta(seconds=limit))
        whole = torch.frombuffer(self.memory, dtype=torch.uint8)
        self.buckets = whole.split(bucket)

    def broadcast(self):
        """Seconds until all ranks have all buckets, as this rank sees it."""
        self.distributed.barrier()
        begun = time.perf_counter()
        for bucket in self.buckets:
            self.distributed.broadcast(bucket, src=0)
        self.distributed.barrier()
        return time.perf_counter() - begun

    def listen(self):
        self.server = socket.create_server((HOST, 0))
        return self.server.getsockname()[1]

    def send(self, port):
        with socket.create_connection((HOST, port)) as stream:
            stream.sendall(self.memory)
            stream.shutdown(socket.SHUT_WR)
            stream.recv(1)  # Until the other has all.

    def receive(self):
        stream, _ = self.server.accept()
        with stream:
            left = memoryview(self.memory)
            while left:
                received = stream.recv_into(left)
                if received == 0:
                    raise EOFError(f"{len(left)} bytes are missing")
                left = left[received:]

    def wrong(self, fill):
        """Bytes that are not as the other side had them."""
        return len(self.memory) - self.memory.count(fill)


if __name__ == "__main__":
    WeightsRank().serve(keep_answers_apart())
