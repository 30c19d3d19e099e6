#!/bin/sh
# What the provider says where verbs can't be had. Takes the machine apart step by step.
# shellcheck source=/dev/null
. /nic.sh
failed=0
# Sentences in one line.
export COLUMNS=1000

# expect SENTENCE COMMAND: the command fails, and says so.
expect() {
  if said=$(sh -c "$2" 2>&1) || [ "${said#*"$1"}" = "$said" ]; then
    echo "expected '$1' of '$2', which said: $said"
    failed=1
  fi
  echo "$said" | tail -n 1 >/dev/ttyS1
}
info='/weft/weft info --providers verbs'

expect 'this machine has no RDMA device' "$info"
ip link add rdma0 type dummy && add_nic rdma0 10.7.0.1/24 || exit 20
$info >/dev/null || exit 20

expect 'caches memory registrations' "FI_MR_CACHE_MONITOR=memhooks $info"
echo 'nobody:x:65534:65534:nobody:/tmp:/bin/sh' >>/etc/passwd
chmod 666 /dev/infiniband/*
expect 'RLIMIT_MEMLOCK is 64 KiB' "su nobody -c 'ulimit -l 64; exec $info'"
chmod 600 /dev/infiniband/rdma_cm
expect 'may not open /dev/infiniband/rdma_cm' "su nobody -c '$info'"
ip addr flush dev rdma0
expect 'it has no IP address' "$info"
rm /dev/infiniband/rdma_cm
expect 'there is no /dev/infiniband/rdma_cm' "$info"
rm -r /dev/infiniband
expect 'there is no /dev/infiniband/uverbs*' "$info"
exit "$failed"
