# shellcheck shell=sh
# A soft-RoCE NIC, to be sourced by jobs.

# add_nic INTERFACE ADDRESS/BITS [NAME]: gives the interface the address and the RDMA device NAME
# (rxe0) on it.
add_nic() {
  ip addr add "$2" dev "$1" &&
    ip link set "$1" mtu 9000 up &&
    rdma link add "${3:-rxe0}" type rxe netdev "$1"
}
