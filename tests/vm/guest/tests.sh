#!/bin/sh
# Runs programs that lie in /weft over verbs, on a NIC with nobody else on its network. Each line of
# /commands is a program with its arguments.
# shellcheck source=/dev/null
. /nic.sh
ip link add rdma0 type dummy && add_nic rdma0 10.7.0.1/24 || exit 20

export WEFT_TEST_PROVIDERS=verbs
set -f # stars are the tests' own
failed=0
while read -r line; do
  # shellcheck disable=SC2086 # words
  timeout 500 /weft/$line </dev/null
  status=$?
  echo "$status at $(cut -d ' ' -f 1 /proc/uptime) s: $line" >/dev/ttyS1
  [ "$status" -eq 0 ] || failed=1
done </commands
dmesg | grep -E 'Oops|Call Trace|lockup|detected stalls' && failed=1
exit "$failed"
