// Shared by the files of this folder: libfabric objects with owners.
#pragma once

#include <rdma/fi_errno.h>

#include <memory>
#include <string>
#include <string_view>
#include <weft/error.hpp>

#include "providers/libfabric/libfabric.hpp"

namespace weft::providers {

struct InfoDeleter {
  void operator()(fi_info* info) const { libfabric().freeinfo(info); }
};
using InfoPtr = std::unique_ptr<fi_info, InfoDeleter>;
/// A copy; of null: an empty one.
inline InfoPtr copy_of(const fi_info* info) {
  return InfoPtr(libfabric().dupinfo(info));
}

struct FidDeleter {
  template <typename Object>
  void operator()(Object* object) const {
    fi_close(&object->fid);
  }
};
template <typename Object>
using FidPtr = std::unique_ptr<Object, FidDeleter>;

/// The newest API version that both the headers and the library in use know.
std::uint32_t api_version();

/// An error of libfabric's with its number and text; `result` is the negative value it returned.
Error fabric_error(std::string_view operation, long result);

/// The NIC's name as the system has it ("rdmap79s0"), or the interface's ("lo"). libfabric's domain
/// may be called otherwise ("rdmap79s0-rdm").
std::string nic_name(const fi_info& info);

/// Of its PCI function: "0000:4f:00.0"; empty where libfabric does not tell.
std::string pci_address(const fi_info& info);

/// Link speed in Gb/s; 0 where libfabric does not tell.
double link_gbps(const fi_info& info);

}  // namespace weft::providers
