#!/bin/sh
# Moves bytes between memory and each drive, by engines of two processes; weft-perf compares every
# byte. The namespaces over the network are the NVMe drive's own, which nothing else uses then.
# shellcheck source=/dev/null
. /nic.sh
ip link add rdma0 type dummy && add_nic rdma0 10.7.0.1/24 || exit 20
mount -t configfs none /sys/kernel/config

# $1: what it is called; $2: the block device.
move() {
  timeout 120 /weft/weft-perf --local --providers tcp,shm --operation read,write,mixed \
    --size 4096,60001,1M --window 8 --memory host --peer-memory "file:$2" --verify --count 40 \
    --time 5 --warm-up 0 --repeats 1 </dev/null || return 1
  echo "RIGHT $1" >/dev/ttyS1
}

nvmet=/sys/kernel/config/nvmet

# Offers /dev/nvme0n1 by $1 (tcp, rdma) at the address $2, as port $3, and connects to it.
offer() {
  mkdir "$nvmet/subsystems/weft-$1" "$nvmet/subsystems/weft-$1/namespaces/1" || return 1
  echo 1 >"$nvmet/subsystems/weft-$1/attr_allow_any_host"
  echo /dev/nvme0n1 >"$nvmet/subsystems/weft-$1/namespaces/1/device_path"
  echo 1 >"$nvmet/subsystems/weft-$1/namespaces/1/enable" || return 1
  mkdir "$nvmet/ports/$3"
  echo "$1" >"$nvmet/ports/$3/addr_trtype"
  echo ipv4 >"$nvmet/ports/$3/addr_adrfam"
  echo "$2" >"$nvmet/ports/$3/addr_traddr"
  echo 4420 >"$nvmet/ports/$3/addr_trsvcid"
  ln -s "$nvmet/subsystems/weft-$1" "$nvmet/ports/$3/subsystems/weft-$1" || return 1
  echo "transport=$1,traddr=$2,trsvcid=4420,nqn=weft-$1" >/dev/nvme-fabrics
}

# The block device of the subsystem of that name, once it is there: 20 s at most.
device_of() {
  for _ in $(seq 200); do
    for block in /sys/block/nvme*n1; do
      [ "$(cat "$block/device/subsysnqn")" = "$1" ] || continue
      name=${block##*/}
      [ -b "/dev/$name" ] && echo "/dev/$name" && return 0
    done
    sleep 0.1
  done
  echo "there is no namespace of $1" >&2
  return 1
}

move nvme /dev/nvme0n1 || exit 1
offer tcp 127.0.0.1 1 || exit 1
device=$(device_of weft-tcp) && move nvme-tcp "$device" || exit 1
offer rdma 10.7.0.1 2 || exit 1
device=$(device_of weft-rdma) && move nvme-rdma "$device" || exit 1
dmesg | grep -E 'Oops|Call Trace|lockup' && exit 1
exit 0
