#!/bin/sh
# One of two machines that hand a KV cache over, once for each scenario in /scenarios ("name
# seconds": what the handover gets). Control connections go over eth0, RDMA over eth1, which the
# host may interrupt. /role says who this is. What happens is told on the second serial port.
# shellcheck source=/dev/null
. /nic.sh
role=$(cat /role)
case $role in decode) number=1 ;; prefill) number=2 ;; esac
ip addr add "10.9.0.$number/24" dev eth0 && ip link set eth0 up &&
  add_nic eth1 "10.7.0.$number/24" || exit 20

tell() { echo "$*" >/dev/ttyS1; }
packets() { cat /sys/class/infiniband/rxe0/ports/1/hw_counters/sent_pkts; }

# tell_when_moving NAME: once some 10 MB more were sent.
tell_when_moving() {
  enough=$(($(packets) + 2500))
  until [ "$(packets)" -gt "$enough" ]; do sleep 0.1; done
  tell "moving $1"
}

hand_over() {
  common="--json --quiet --providers verbs --timeout $1"
  # shellcheck disable=SC2086 # words
  case $role in
    decode) /weft/weft decode $common --listen "10.9.0.1:$2" --allow-unauthenticated-network ;;
    prefill) /weft/weft prefill $common --peer "10.9.0.1:$2" \
      --model Llama-3.1-8B --tokens 256 --requests 4 ;;
  esac
}

port=7000
while read -r scenario seconds; do
  port=$((port + 1))
  # Resolving the other's address would hold up the first connection.
  until ping -c 1 -W 1 "10.7.0.$((3 - number))" >/dev/null; do sleep 0.2; done
  watcher=''
  if [ "$role" = prefill ]; then
    until nc -w 1 10.9.0.1 "$port" </dev/null >/dev/null 2>&1; do sleep 0.2; done
    tell_when_moving "$scenario" &
    watcher=$!
  fi
  started=$(date +%s)
  : >/tmp/report
  {
    hand_over "$seconds" "$port"
    status=$?
    echo
    exit "$status"
  } >/tmp/report &
  process=$!
  # The command prints everything at its end, and then the kernel may keep it for a while.
  until [ -s /tmp/report ]; do sleep 0.1; done
  took=$(($(date +%s) - started))
  sleep 0.2
  tell "report $scenario"
  cat /tmp/report >/dev/ttyS1
  tell "reported $scenario $took"
  wait "$process"
  tell "ended $scenario $?"
  # shellcheck disable=SC2086 # none, or one
  kill $watcher 2>/dev/null
done </scenarios
exit 0
