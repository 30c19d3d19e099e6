#include "providers/libfabric/capability_record.hpp"

#include <rdma/fi_endpoint.h>

#include <algorithm>

#include "providers/libfabric/registration_request.hpp"

namespace weft::providers {

Capability make_record(const Spec& spec, const fi_info& info) {
  const fi_domain_attr& domain = *info.domain_attr;
  Capability record;
  record.provider = info.fabric_attr->prov_name;
  record.libfabric_version = libfabric().version_text();
  record.domain = nic_name(info);
  record.pci = pci_address(info);
  record.address_format = info.addr_format;
  record.protocol = info.ep_attr->protocol;
  record.application_keys = (domain.mr_mode & FI_MR_PROV_KEY) == 0;
  record.virtual_addresses = (domain.mr_mode & FI_MR_VIRT_ADDR) != 0;
  record.local_registration = (domain.mr_mode & FI_MR_LOCAL) != 0;
  record.pins_memory = (domain.mr_mode & FI_MR_ALLOCATED) != 0;
  record.max_message = record.max_send = info.ep_attr->max_msg_size;
  record.window = info.tx_attr->size;
  record.receive_queue = info.rx_attr->size;
  record.gbps = link_gbps(info);
  record.device_memory = (info.caps & FI_HMEM) != 0;
  record.dmabuf = record.device_memory && takes_dmabufs();
  if (!record.device_memory)
    record.device_memory_problem =
        "it was opened for host memory alone, since the process had loaded no GPU's driver";
  record.path_failures = spec.path_failed != nullptr;
  spec.quirks(info, record);
  Tuning& tuning = record.tuning;
  tuning.chunk = std::min(tuning.chunk, record.max_message);
  for (std::size_t* chunks : {&tuning.window, &tuning.few_cores.window_on_host})
    *chunks = std::min(*chunks, record.window);
  return record;
}

}  // namespace weft::providers
