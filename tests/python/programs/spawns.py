"""A process started by multiprocessing's spawn, which gets a grant and sends an exception back."""

import multiprocessing

import numpy
import weft


def work(address: str, blob: bytes, answers) -> None:
    with weft.Engine(providers=["tcp"], listen="") as engine:
        peer = engine.connect(address)
        remote = engine.import_grant(blob)
        with engine.add(numpy.arange(1000, dtype=numpy.uint8)) as mine:
            engine.write(mine, remote, [(0, 0, 1000)], signal=1).wait()
            try:
                engine.write(mine, remote, [(0, 1, 1000)])
            except weft.Error as error:
                answers.put((error, weft.State.done))
        peer.recv(1)


if __name__ == "__main__":
    context = multiprocessing.get_context("spawn")
    answers = context.Queue()
    target = numpy.zeros(1000, numpy.uint8)
    with weft.Engine(providers=["tcp"]) as engine:
        with engine.add(target) as segment:
            blob = segment.grant(weft.Rights.write).blob
            child = context.Process(target=work, args=(engine.address, blob, answers))
            child.start()
            peer = engine.accept(60)
            peer.expect(1).wait(60)
            error, state = answers.get(timeout=60)
            assert isinstance(error, weft.InvalidArgument) and "1000" in str(error), error
            assert state is weft.State.done
            peer.send(1, b"")
            child.join(60)
            assert child.exitcode == 0
    assert numpy.array_equal(target, numpy.arange(1000, dtype=numpy.uint8))
    print("done", flush=True)
