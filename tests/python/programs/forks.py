"""A child sees that its parent's engines are not its own; and opens one of its own."""

import os

import weft

b = weft.Engine(providers=["tcp"])
a = weft.Engine(providers=["tcp"], listen="")
peer = a.connect(b.address)
back = b.accept()
segment = b.add(bytearray(100))
grant = segment.grant(weft.Rights.write)
remote = a.import_grant(grant.blob)
mine = a.add(bytearray(b"x" * 100))
transfer = a.write(mine, remote, [(0, 0, 100)])
transfer.wait()

if os.fork() == 0:
    for call in (
        lambda: a.write(mine, remote, [(0, 0, 100)]),
        lambda: a.connect(b.address),
        lambda: a.add(bytearray(10)),
        lambda: peer.expect(1),
        lambda: segment.close(),
        lambda: grant.revoke(),
        lambda: b.close(),
        lambda: b.accept(),
    ):
        try:
            call()
        except weft.Forked as error:
            assert "fork" in str(error)
        else:
            os._exit(3)
    with weft.Engine(providers=["tcp"]) as own:
        with own.add(bytearray(10)):
            pass
    print("child", flush=True)
    # Python ends as usual, with all that it inherited.
else:
    pid, status = os.wait()
    assert os.waitstatus_to_exitcode(status) == 0, status
    a.write(mine, remote, [(0, 0, 100)]).wait()
    b.close()
    a.close()
    print("parent", flush=True)
