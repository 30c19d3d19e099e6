#!/bin/sh
# The tests of files, with their files in ext4 and in xfs, and drives that fail.
# shellcheck source=/dev/null
. /drive_named.sh
failed=0

# tell STATUS WORDS: how one of them ended.
tell() {
  [ "$1" -eq 0 ] || failed=1
  shift
  echo "$failed at $(cut -d ' ' -f 1 /proc/uptime) s: $*" >/dev/ttyS1
}

# Files of tests lie in TMPDIR.
for kind in ext4 xfs; do
  device=$(drive_named "$kind") && "mkfs.$kind" -q "$device" && mkdir "/$kind" &&
    mount -t "$kind" "$device" "/$kind" || exit 1
  TMPDIR=/$kind timeout 300 /weft/integration-test --gtest_color=no --subjects=files </dev/null
  tell $? "files in $kind"
  umount "/$kind" || failed=1
done

WEFT_TEST_DRIVE=$(drive_named spare) || exit 1
export WEFT_TEST_DRIVE
timeout 500 /weft/vm-drive-faults-test --gtest_color=no </dev/null
tell $? 'drives that fail'
dmesg | grep -E 'Oops|Call Trace|lockup' && failed=1
exit "$failed"
