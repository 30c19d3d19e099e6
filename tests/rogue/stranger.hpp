// An endpoint of somebody who is no engine: libfabric's public interface, and nothing of Weft's but
// the pointers that own its objects.
#pragma once

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_rma.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "providers/libfabric/fabric.hpp"
#include "rogue.hpp"

namespace weft::test {

/// How the stranger reaches its victim: what libfabric is to be asked for, and the rail's address.
struct Fabric {
  std::string provider, fabric;
  std::uint64_t memory_mode = 0;     // FI_MR_*, as the victim's rail has it
  std::uint32_t address_format = 0;  // FI_ADDR_*
  bool delivery_complete = false;
  std::string address;
};

class Stranger final : public Rogue {
 public:
  Stranger(const Fabric& fabric, std::span<std::byte> memory);

  Ending write(const Aim& aim, std::size_t length, Deadline deadline) override;
  Ending write_data(const Aim& aim, std::size_t length, Deadline deadline) override;
  Ending read(const Aim& aim, std::size_t length, Deadline deadline) override;
  Ending send(Class type, std::size_t length, Deadline deadline) override;

 private:
  /// Stays in place for as long as the provider may know it.
  struct Operation {
    fi_context2 context;
    bool ended = false;
    Ending ending;
  };

  void open_endpoint();
  void find_victim();
  using RmaCall = ssize_t (*)(fid_ep*, const fi_msg_rma*, std::uint64_t);
  Ending rma(RmaCall call, const Aim& aim, std::size_t length, std::uint64_t flags,
             Deadline deadline);
  template <typename Post>
  Ending finish(Post post, Deadline deadline);
  void look();

  const Fabric fabric_;
  const std::span<std::byte> memory_;
  fi_addr_t victim_ = FI_ADDR_UNSPEC, bounce_ = FI_ADDR_UNSPEC;
  bool tagged_ = true;
  providers::InfoPtr info_;
  providers::FidPtr<fid_fabric> fabric_object_;  // closed from the last to the first
  providers::FidPtr<fid_domain> domain_;
  providers::FidPtr<fid_eq> events_;
  providers::FidPtr<fid_cq> completions_;
  providers::FidPtr<fid_av> addresses_;
  providers::FidPtr<fid_mr> region_;
  providers::FidPtr<fid_ep> endpoint_;
};

}  // namespace weft::test
