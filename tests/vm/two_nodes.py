"""A machine of two sockets as QEMU has it: each has memory, a root complex, a GPU, two NICs and a
drive."""

NODES = 2
CORES = "4,sockets=2,cores=2,threads=1"
DRIVE_BYTES = 64 << 20
MEMORY = "1024M"  # of each node: together what machine.py gives
# To itself and to the other, as the firmware is told to rate them.
DISTANCES = [10, 21]
# The buses of a node's root complex begin here: those of node 1 first, so that nothing comes out
# right by mere order.
BUSES = {0: 0x60, 1: 0x20}


def gpu_of(node):
    """The address that its GPU gets: behind a root port, the switch's two sides, and a NIC."""
    return f"0000:{BUSES[node] + 4:02x}:00.0"


def drive_of(node):
    """Likewise of its drive, behind the switch's next port."""
    return f"0000:{BUSES[node] + 5:02x}:00.0"


def _nodes():
    options = []
    for node in range(NODES):
        options += ["-object", f"memory-backend-ram,id=memory{node},size={MEMORY}",
                    "-numa", f"node,nodeid={node},cpus={2 * node}-{2 * node + 1},"
                             f"memdev=memory{node}"]
    return options + ["-numa", f"dist,src=0,dst=1,val={DISTANCES[1]}"]


class _Slots:
    """Ports of PCIe, each with a slot number that no other has."""

    def __init__(self):
        self._count = 0

    def port(self, kind, name, bus):
        self._count += 1
        return ["-device", f"{kind},id={name},bus={bus},chassis={self._count},slot={self._count}"]


def _nic(kind, node, number, bus):
    """Its MAC address says where it was plugged in (guest/topology.sh)."""
    name = f"nic{node}{number}"
    return ["-netdev", f"hubport,id={name},hubid=0",
            "-device", f"{kind},netdev={name},bus={bus},romfile=,"
                       f"mac=52:54:00:00:{node:02}:{number:02}"]


def _drive(node, bus):
    """Of zeros. The one of node 1 might have several ports, as those of servers do: the kernel then
    has it as a device of no controller."""
    name = f"drive{node}"
    blank = ["-blockdev", f"null-co,node-name={name},size={DRIVE_BYTES},read-zeroes=on"]
    if node == 0:
        return [*blank, "-device", f"nvme,drive={name},serial={name},bus={bus}"]
    return [*blank, "-device", f"nvme-subsys,id={name}-ports",
            "-device", f"nvme,id={name}-port,subsys={name}-ports,serial={name},bus={bus}",
            "-device", f"nvme-ns,drive={name},bus={name}-port,shared=on"]


def _root_complex(node, slots):
    """A switch with a NIC, a GPU and a drive, and a NIC on a port of its own."""
    root = f"root{node}"
    return [
        "-device", f"pxb-pcie,id={root},bus=pcie.0,bus_nr={BUSES[node]},numa_node={node}",
        *slots.port("pcie-root-port", f"{root}-switch", root),
        "-device", f"x3130-upstream,id=up{node},bus={root}-switch",
        *slots.port("xio3130-downstream", f"down{node}-nic", f"up{node}"),
        *slots.port("xio3130-downstream", f"down{node}-gpu", f"up{node}"),
        *slots.port("xio3130-downstream", f"down{node}-drive", f"up{node}"),
        *slots.port("pcie-root-port", f"{root}-nic", root),
        *_nic("virtio-net-pci,host_mtu=9000", node, 0, f"down{node}-nic"),
        # An old card of AMD's, of which the kernel has no driver here: nobody looks inside. The guest
        # makes a GPU of it (guest/topology.sh).
        "-device", f"ati-vga,bus=down{node}-gpu,romfile=",
        *_drive(node, f"down{node}-drive"),
        *_nic("e1000e", node, 1, f"{root}-nic")]


def options():
    """What QEMU is told besides the cores."""
    slots = _Slots()
    return _nodes() + [word for node in range(NODES) for word in _root_complex(node, slots)]
