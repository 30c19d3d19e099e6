#!/bin/sh
# Writes blocks of each drive of /trials ("name kind way durable block_bytes writes"),
# or of a file in a file system on it, while the host cuts the drive's power.
# shellcheck source=/dev/null
. /drive_named.sh

# The file to write, of drive $1 as $2.
target() {
  device=$(drive_named "$1") || return 1
  [ "$2" = raw ] && echo "$device" && return 0
  "mkfs.$2" -q "$device" >&2 && mkdir "/$1" && mount -t "$2" "$device" "/$1" || return 1
  echo "/$1/pages"
}

while read -r name kind way durable block_bytes writes; do
  path=$(target "$name" "$kind") || exit 1
  timeout 300 /weft/vm-power-writer "$name" "$path" "$way" "$durable" "$block_bytes" "$writes" \
    </dev/null || exit 1
  fua=$(cat "/sys/block/$(basename "$(drive_named "$name")")/queue/fua")
  echo "$name, FUA $fua: written at $(cut -d ' ' -f 1 /proc/uptime) s" >/dev/ttyS1
  [ "$kind" = raw ] || umount "/$name" || exit 1
done </trials
dmesg | grep -E 'Oops|Call Trace|lockup' && exit 1
exit 0
