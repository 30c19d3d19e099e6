// Devices and what they say of themselves.
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>

#include "objects.hpp"

// libibverbs' header turns these into calls of other functions.
#undef ibv_query_port

namespace weft::efa_sim {
namespace {

/// Devices live as long as the process: libfabric keeps their pointers.
DeviceObject& device_of(const NicInformation& nic, std::uint32_t index) {
  static std::mutex mutex;
  static auto& devices = *new std::map<std::string, DeviceObject>;
  const std::lock_guard lock(mutex);
  DeviceObject& device = devices[nic.name];
  device.nic = nic;
  device.node_type = IBV_NODE_UNSPECIFIED;
  device.transport_type = IBV_TRANSPORT_UNSPECIFIED;
  std::snprintf(device.name, sizeof device.name, "%s", nic.name);
  std::snprintf(device.dev_name, sizeof device.dev_name, "uverbs%u", index);
  std::snprintf(device.ibdev_path, sizeof device.ibdev_path, "%s/sysfs/class/infiniband/%s",
                Connection::get().folder(), nic.name);
  return device;
}

/// ibv_port_attr's codes for the speed of a rail: EDR, HDR, NDR.
std::uint8_t scheduler_speed(std::uint32_t gigabits) {
  return gigabits >= 400 ? 128 : gigabits >= 200 ? 64 : 32;
}

int query_port(ibv_context* context, std::uint8_t, ibv_port_attr* into, std::size_t size) {
  const ContextObject& own = ContextObject::of(context);
  const NicInformation& nic = own.device->nic;
  ibv_port_attr port{};
  port.state = nic.up != 0 ? IBV_PORT_ACTIVE : IBV_PORT_DOWN;
  port.max_mtu = port.active_mtu = IBV_MTU_4096;
  port.gid_tbl_len = 1;
  port.max_msg_sz = own.limits.message_size;
  port.pkey_tbl_len = 1;
  port.phys_state = 5;    // link up
  port.active_width = 2;  // four rails
  port.active_speed = scheduler_speed(nic.gigabits);
  return give(port, into, static_cast<std::uint32_t>(size));
}

ibv_qp* create_plain_queue_pair(ibv_context* context, ibv_qp_init_attr_ex* attributes) {
  return create_queue_pair(context, *attributes, false);
}

}  // namespace
}  // namespace weft::efa_sim

using namespace weft::efa_sim;

EFA_SIM_EXPORT ibv_device** ibv_get_device_list(int* count) {
  const Reply list = Connection::get().ask(request(Verb::list)).message;
  const std::uint32_t found = list.error == 0 ? list.list.count : 0;
  auto** const devices = static_cast<ibv_device**>(std::calloc(found + 1, sizeof(ibv_device*)));
  for (std::uint32_t i = 0; i < found; ++i) devices[i] = &device_of(list.list.nics[i], i);
  if (count != nullptr) *count = static_cast<int>(found);
  return devices;
}

EFA_SIM_EXPORT void ibv_free_device_list(ibv_device** list) {
  std::free(list);
}

EFA_SIM_EXPORT const char* ibv_get_device_name(ibv_device* device) {
  return device->name;
}

EFA_SIM_EXPORT __be64 ibv_get_device_guid(ibv_device*) {
  return 0;
}

EFA_SIM_EXPORT ibv_context* ibv_open_device(ibv_device* device) {
  auto& own = *static_cast<DeviceObject*>(device);
  Request open = request(Verb::open);
  std::snprintf(open.text, sizeof open.text, "%s", own.nic.name);
  const Reply reply = Connection::get().ask(open).message;
  if (reply.error != 0) {
    errno = reply.error;
    return nullptr;
  }
  auto* const context = new ContextObject;
  context->object = reply.object;
  context->device = &own;
  context->limits = reply.limits;
  context->sz = sizeof(verbs_context);
  context->query_port = query_port;
  context->create_cq_ex = create_completion_queue;
  context->create_qp_ex = create_plain_queue_pair;
  ibv_context& verbs = context->context;
  verbs.device = device;
  verbs.abi_compat = __VERBS_ABI_IS_EXTENDED;
  verbs.cmd_fd = verbs.async_fd = -1;
  // Without a second one, libfabric takes it that completion queues can't wake anybody.
  verbs.num_comp_vectors = reply.limits.interrupts != 0 ? 2 : 1;
  verbs.ops.post_send = post_send;
  verbs.ops.post_recv = post_receive;
  verbs.ops.poll_cq = poll_cq;
  verbs.ops.req_notify_cq = request_notification;
  return &verbs;
}

EFA_SIM_EXPORT int ibv_close_device(ibv_context* context) {
  ContextObject& own = ContextObject::of(context);
  Connection::get().ask(request(Verb::close, own.object));
  delete &own;
  return 0;
}

EFA_SIM_EXPORT int ibv_query_device(ibv_context* context, ibv_device_attr* device) {
  const Limits& limits = ContextObject::of(context).limits;
  *device = {};
  std::snprintf(device->fw_ver, sizeof device->fw_ver, "0.0.0.0");
  device->vendor_id = 0x1d0f;
  device->vendor_part_id = limits.part;
  device->max_mr_size = std::uint64_t{limits.region_pages} * 4096;
  device->page_size_cap = 4096;
  device->max_qp = 256;
  device->max_qp_wr = static_cast<int>(limits.send_size);
  device->max_sge = 2;
  device->max_sge_rd = 1;
  device->max_cq = 512;
  device->max_cqe = 32768;
  device->max_mr = static_cast<int>(limits.regions);
  device->max_pd = 256;
  device->max_ah = static_cast<int>(limits.address_handles);
  device->phys_port_cnt = 1;
  return 0;
}

EFA_SIM_EXPORT int efadv_query_device(ibv_context* context, void* into, std::uint32_t size) {
  const Limits& limits = ContextObject::of(context).limits;
  EfaDeviceAttributes device{};
  device.max_sq_wr = limits.send_size;
  device.max_rq_wr = limits.receive_size;
  device.max_sq_sge = 2;
  device.max_rq_sge = 3;
  device.inline_buf_size = device.inline_buf_size_ex =
      static_cast<std::uint16_t>(limits.inline_size);
  device.max_rdma_size = 1u << 30;
  device.device_caps = cap_rnr_retry | cap_cq_with_sgid;
  if (limits.read != 0) device.device_caps |= cap_rdma_read;
  if (limits.write != 0) device.device_caps |= cap_rdma_write;
  if (limits.unsolicited != 0) device.device_caps |= cap_unsolicited_write_recv;
  return give(device, into, size);
}

EFA_SIM_EXPORT int efadv_get_max_sq_depth(ibv_context* context, void*, std::uint32_t) {
  return static_cast<int>(ContextObject::of(context).limits.send_size);
}

EFA_SIM_EXPORT int efadv_get_max_rq_depth(ibv_context* context, void*, std::uint32_t) {
  return static_cast<int>(ContextObject::of(context).limits.receive_size);
}

EFA_SIM_EXPORT int ibv_query_port(ibv_context* context, std::uint8_t port,
                                  _compat_ibv_port_attr* into) {
  return query_port(context, port, reinterpret_cast<ibv_port_attr*>(into),
                    offsetof(ibv_port_attr, link_layer));
}

EFA_SIM_EXPORT int ibv_query_gid(ibv_context* context, std::uint8_t, int, ibv_gid* gid) {
  std::memcpy(gid->raw, ContextObject::of(context).device->nic.gid.data(), sizeof gid->raw);
  return 0;
}

EFA_SIM_EXPORT int ibv_query_pkey(ibv_context*, std::uint8_t, int, __be16* key) {
  *key = 0xffff;
  return 0;
}

/// Completion counters, which newer versions know, are not offered.
struct ibv_comp_cntr_caps;
EFA_SIM_EXPORT int _ibv_query_comp_cntr_caps(ibv_context*, ibv_comp_cntr_caps*, std::size_t) {
  return EOPNOTSUPP;
}
