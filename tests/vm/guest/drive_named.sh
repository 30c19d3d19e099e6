# shellcheck shell=sh
# Drives by the names that QEMU gave them, to be sourced by jobs.

# serial_of FOLDER: of a block device in /sys; NVMe and SCSI have it in places of their own.
serial_of() {
  cat "$1/device/serial" "$1/device/vpd_pg80" 2>/dev/null | tr -cd 'a-z0-9-'
}

# drive_named SERIAL: the block device of that drive, once it is there: 20 s at most.
drive_named() {
  for _ in $(seq 200); do
    for block in /sys/block/nvme*n1 /sys/block/sd*; do
      [ "$(serial_of "$block")" = "$1" ] && [ -b "/dev/${block##*/}" ] &&
        echo "/dev/${block##*/}" && return 0
    done
    sleep 0.1
  done
  echo "there is no drive $1" >&2
  return 1
}
