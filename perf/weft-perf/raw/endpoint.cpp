#include "raw/endpoint.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>
#include <sched.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <vector>

namespace weft::perf {
namespace {

constexpr std::uint64_t region_key = 0x5745'4654;

void check(long rc, const char* call) {
  if (rc < 0)
    throw std::runtime_error(
        fmt::format("{}: {}", call, providers::libfabric().strerror(int(-rc))));
}

/// Whether there was room for it.
bool taken(ssize_t rc, const char* call) {
  if (rc == -FI_EAGAIN) return false;
  check(rc, call);
  return true;
}

template <typename Owner, typename Call>
void open(Owner& owner, const char* name, Call call) {
  typename Owner::pointer raw = nullptr;
  check(call(&raw), name);
  owner.reset(raw);
}

bool is_named(const std::string& wanted, const char* name) {
  return wanted.empty() || (name != nullptr && wanted == name);
}

bool is_of(const fi_info& info, const RawNic& nic) {
  const bool has_device = info.nic != nullptr && info.nic->device_attr != nullptr;
  return is_named(nic.fabric, info.fabric_attr->name) &&
         (is_named(nic.domain, info.domain_attr->name) ||
          (has_device && is_named(nic.domain, info.nic->device_attr->name)));
}

/// EFA's direct fabric has no tagged messages; that of the same NIC which has is another one.
RawNic nic_of(const RawConfig& config, unsigned number) {
  if (config.nics.empty()) return {};
  RawNic nic = config.nics[number % config.nics.size()];
  if (config.operation == RawOperation::message) nic.fabric.clear();
  return nic;
}

}  // namespace

/// The first that libfabric has on that NIC.
Endpoint::Owned<fi_info> Endpoint::look_by(const fi_info& hints) const {
  const bool by_address = config_.nics.empty() && config_.provider != "shm";
  fi_info* all = nullptr;
  const int rc =
      providers::libfabric().getinfo(FI_VERSION(1, 17), by_address ? config_.bind.c_str() : nullptr,
                                     nullptr, by_address ? FI_SOURCE : 0, &hints, &all);
  if (rc == -FI_ENODATA) return {};
  check(rc, "fi_getinfo");
  const Owned<fi_info> list(all);
  for (const fi_info* info = all; info != nullptr; info = info->next)
    // "net" brings "net;ofi_rxm" along.
    if (config_.provider == info->fabric_attr->prov_name && is_of(*info, nic_))
      return Owned<fi_info>(providers::libfabric().dupinfo(info));
  return {};
}

Endpoint::Owned<fi_info> Endpoint::look(const std::string& shm_name) const {
  const Owned<fi_info> hints(providers::libfabric().dupinfo(nullptr));
  if (!hints) throw std::runtime_error("fi_dupinfo: out of memory");
  const bool messages = config_.operation == RawOperation::message;
  hints->caps = messages ? FI_MSG | FI_TAGGED
                         : FI_RMA | FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;
  hints->mode = FI_CONTEXT | FI_CONTEXT2;
  hints->ep_attr->type = FI_EP_RDM;
  hints->domain_attr->threading = FI_THREAD_SAFE;
  hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
  if (config_.virtual_addresses) hints->domain_attr->mr_mode |= FI_MR_VIRT_ADDR;
  if (config_.delivery_complete && !messages) hints->tx_attr->op_flags = FI_DELIVERY_COMPLETE;
  hints->fabric_attr->prov_name = ::strdup(config_.provider.c_str());
  if (config_.provider == "shm") {  // A name without "fi_shm://" is taken as it is.
    hints->addr_format = FI_ADDR_STR;
    hints->src_addr = ::strdup(shm_name.c_str());
    hints->src_addrlen = shm_name.size() + 1;
  }
  if (config_.provider.starts_with("verbs")) hints->addr_format = FI_SOCKADDR_IN;
  if (auto info = look_by(*hints)) return info;
  hints->domain_attr->mr_mode |= FI_MR_VIRT_ADDR;  // which NICs can't do without
  if (auto info = look_by(*hints)) return info;
  throw std::runtime_error(fmt::format(
      "libfabric's '{}' has no {} on {}", config_.provider,
      messages ? "tagged messages" : "reads and writes",
      !nic_.domain.empty() ? nic_.domain : (config_.nics.empty() ? config_.bind : "any NIC")));
}

Endpoint::Endpoint(const RawConfig& config, unsigned number, Waiting waiting,
                   const std::string& shm_name, std::span<std::byte> memory)
    : config_(config),
      number_(number),
      nic_(nic_of(config, number)),
      waiting_(waiting),
      memory_(memory) {
  if (auto library = providers::load_libfabric(); !library)
    throw std::runtime_error(library.error().message());
  info_ = look(shm_name);
  if (config.operation == RawOperation::message && config.endpoint_window > info_->rx_attr->size)
    throw std::runtime_error(
        fmt::format("libfabric's '{}' waits for {} messages at a time, and not for a window of {}",
                    config.provider, info_->rx_attr->size, config.endpoint_window));
  open(fabric_, "fi_fabric", [&](fid_fabric** fabric) {
    return providers::libfabric().fabric(info_->fabric_attr, fabric, nullptr);
  });
  open(domain_, "fi_domain",
       [&](fid_domain** domain) { return fi_domain(fabric_.get(), info_.get(), domain, nullptr); });
  fi_cq_attr queue_attributes{};
  queue_attributes.format = FI_CQ_FORMAT_CONTEXT;
  queue_attributes.wait_obj = waiting == Waiting::poll ? FI_WAIT_NONE : FI_WAIT_FD;
  open(queue_, "fi_cq_open", [&](fid_cq** queue) {
    return fi_cq_open(domain_.get(), &queue_attributes, queue, nullptr);
  });
  if (waiting != Waiting::poll) {
    check(fi_control(&queue_->fid, FI_GETWAIT, &wait_fd_), "fi_control(FI_GETWAIT)");
  }
  fi_av_attr table_attributes{};
  open(addresses_, "fi_av_open", [&](fid_av** addresses) {
    return fi_av_open(domain_.get(), &table_attributes, addresses, nullptr);
  });
  open(region_, "fi_mr_reg", [&](fid_mr** region) {
    return fi_mr_reg(domain_.get(), memory.data(), memory.size(),
                     config.operation == RawOperation::message
                         ? FI_SEND | FI_RECV
                         : FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE,
                     0, region_key, 0, region, nullptr);
  });
  open(endpoint_, "fi_endpoint", [&](fid_ep** endpoint) {
    return fi_endpoint(domain_.get(), info_.get(), endpoint, nullptr);
  });
  check(fi_ep_bind(endpoint_.get(), &queue_->fid, FI_TRANSMIT | FI_RECV), "fi_ep_bind");
  check(fi_ep_bind(endpoint_.get(), &addresses_->fid, 0), "fi_ep_bind");
  check(fi_enable(endpoint_.get()), "fi_enable");
}

nlohmann::json Endpoint::describe() const {
  std::vector<std::uint8_t> address(256);
  std::size_t length = address.size();
  check(fi_getname(&endpoint_->fid, address.data(), &length), "fi_getname");
  address.resize(length);
  const bool by_address = (info_->domain_attr->mr_mode & FI_MR_VIRT_ADDR) != 0;
  return {{"address", address},
          {"key", fi_mr_key(region_.get())},
          {"base", by_address ? reinterpret_cast<std::uintptr_t>(memory_.data()) : 0}};
}

/// As long as libfabric will read it. Texts end with a zero, and the others of a kind are as long
/// as each other.
bool Endpoint::is_address(const std::vector<std::uint8_t>& address) const {
  if (info_->addr_format == FI_ADDR_STR) return !address.empty() && address.back() == 0;
  std::size_t length = 0;
  (void)fi_getname(&endpoint_->fid, nullptr, &length);
  return address.size() == length;
}

void Endpoint::connect(const nlohmann::json& peer) {
  const auto address = peer.at("address").get<std::vector<std::uint8_t>>();
  if (!is_address(address))
    throw std::runtime_error("the address of the other side is of another kind");
  if (fi_av_insert(addresses_.get(), address.data(), 1, &peer_, 0, nullptr) != 1) {
    throw std::runtime_error("fi_av_insert: the address of the other side was refused");
  }
  peer.at("key").get_to(peer_key_);
  peer.at("base").get_to(peer_base_);
}

bool Endpoint::move(Posted& posted, std::size_t offset, std::size_t length) {
  const bool read = config_.operation == RawOperation::read;
  const iovec local{memory_.data() + offset, length};
  const fi_rma_iov remote{peer_base_ + offset, length, peer_key_};
  void* descriptor = fi_mr_desc(region_.get());
  fi_msg_rma message{};
  message.msg_iov = &local;
  message.desc = &descriptor;
  message.iov_count = 1;
  message.addr = peer_;
  message.rma_iov = &remote;
  message.rma_iov_count = 1;
  message.context = &posted;
  // The net provider of 1.17 heeds FI_DELIVERY_COMPLETE only here, not in the endpoint's op_flags.
  const std::uint64_t flags =
      FI_COMPLETION | (config_.delivery_complete && !read ? FI_DELIVERY_COMPLETE : 0);
  return read ? taken(fi_readmsg(endpoint_.get(), &message, flags), "fi_readmsg")
              : taken(fi_writemsg(endpoint_.get(), &message, flags), "fi_writemsg");
}

bool Endpoint::send(Posted& posted, std::size_t offset, std::size_t length, std::uint64_t tag) {
  return taken(fi_tsend(endpoint_.get(), memory_.data() + offset, length, fi_mr_desc(region_.get()),
                        peer_, tag, &posted),
               "fi_tsend");
}

bool Endpoint::receive(Posted& posted, std::size_t offset, std::size_t length, std::uint64_t tag) {
  return taken(fi_trecv(endpoint_.get(), memory_.data() + offset, length, fi_mr_desc(region_.get()),
                        FI_ADDR_UNSPEC, tag, 0, &posted),
               "fi_trecv");
}

bool Endpoint::send_empty(std::uint64_t tag) {
  return taken(fi_tinject(endpoint_.get(), memory_.data(), 0, peer_, tag), "fi_tinject");
}

std::size_t Endpoint::read(std::span<fi_cq_entry> entries) {
  const ssize_t rc = fi_cq_read(queue_.get(), entries.data(), entries.size());
  if (rc == -FI_EAGAIN) return 0;
  if (rc == -FI_EAVAIL) {
    fi_cq_err_entry error{};
    check(fi_cq_readerr(queue_.get(), &error, 0), "fi_cq_readerr");
    throw std::runtime_error(fmt::format("an operation failed: {} (provider's code {})",
                                         providers::libfabric().strerror(error.err),
                                         error.prov_errno));
  }
  check(rc, "fi_cq_read");
  if (waiting_ == Waiting::sleep) spin_until_ = {};
  return std::size_t(rc);
}

void Endpoint::idle() {
  if (config_.yield) ::sched_yield();
  if (waiting_ != Waiting::sleep) return;
  const auto now = Clock::now();
  if (spin_until_ == Clock::time_point{}) {
    spin_until_ = now + std::chrono::microseconds(config_.spin_us);
  }
  if (now < spin_until_) return;
  fid* queue = &queue_->fid;
  if (fi_trywait(fabric_.get(), &queue, 1) != FI_SUCCESS) return;
  constexpr int longest_ms = 20;
  pollfd descriptor{wait_fd_, POLLIN, 0};
  ::poll(&descriptor, 1, longest_ms);
  spin_until_ = {};
}

}  // namespace weft::perf
