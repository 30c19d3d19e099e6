#!/bin/sh
# After cuts of the power: mounts what each of them left, a namespace of one drive for each line of
# /trials ("number kind"), and hands the bytes of its file to the host, on the drive "pages".
# shellcheck source=/dev/null
. /drive_named.sh
pages=$(drive_named pages) && cuts=$(drive_named cuts) || exit 1
mkdir /cut
while read -r number kind; do
  device=${cuts%n1}n$number
  mount -t "$kind" "$device" /cut || exit 1
  # Where there is no file its bytes stay zeroes, and all blocks are lost.
  [ ! -e /cut/pages ] ||
    dd if=/cut/pages of="$pages" bs=64k seek=$((number * 32 - 32)) conv=notrunc 2>/dev/null ||
    exit 1
  umount /cut || exit 1
done </trials
sync
dmesg | grep -E 'Oops|Call Trace|lockup|orruption' && exit 1
exit 0
