#!/bin/sh
# In the machine of two_nodes.py: tells on the second serial port what `weft topo` makes of it, and
# runs the program that lies in /weft beside the command.
# shellcheck source=/dev/null
. /nic.sh

# name_of INTERFACE: that of the RDMA device on it, by its MAC address: node, and place there.
name_of() {
  IFS=: read -r _ _ _ _ node place <"/sys/class/net/$1/address"
  case $place in 00) place=gpu ;; *) place=alone ;; esac
  echo "rxe${node#0}_$place"
}

number=0
for path in /sys/class/net/eth*; do
  number=$((number + 1))
  interface=${path##*/}
  add_nic "$interface" "10.7.0.$number/24" "$(name_of "$interface")" || exit 20
done
# The kernel's drivers take seconds to see the wire.
tries=0
while grep -q DOWN /sys/class/infiniband/*/ports/1/state; do
  tries=$((tries + 1))
  [ "$tries" -lt 300 ] || exit 20
  sleep 0.1
done

# The kernel tells another chip's number of QEMU's display chip: that of a GPU, Polaris 10.
echo 0x67df >/tmp/gpu
for number in /sys/bus/pci/devices/*/device; do
  [ "$(cat "$number")" != 0x5046 ] || mount -o bind /tmp/gpu "$number" || exit 20
done

# Drives answer after their driver was loaded.
tries=0
while [ ! -b /dev/nvme0n1 ] || [ ! -b /dev/nvme1n1 ]; do
  tries=$((tries + 1))
  [ "$tries" -lt 300 ] || exit 20
  sleep 0.1
done

# NICs of one machine that meet on the wire: each takes packets from another one's address, and
# answers for its own alone.
for setting in accept_local=1 arp_ignore=1 rp_filter=0; do
  for file in /proc/sys/net/ipv4/conf/*/"${setting%=*}"; do echo "${setting#*=}" >"$file"; done
done

{
  echo 'topology'
  /weft/weft topo --json || exit 1
  echo 'drawn'
  /weft/weft topo || exit 1
  echo 'end'
} >/dev/ttyS1
timeout 300 /weft/vm-topology-test --gtest_color=no </dev/null
