#include "endpoint.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <sched.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <vector>

namespace weft::perf {
namespace {

constexpr std::uint64_t region_key = 0x5745'4654;

void check(long rc, const char* call) {
  if (rc < 0) throw std::runtime_error(fmt::format("{}: {}", call, fi_strerror(int(-rc))));
}

template <typename Owner, typename Call>
void open(Owner& owner, const char* name, Call call) {
  typename Owner::pointer raw = nullptr;
  check(call(&raw), name);
  owner.reset(raw);
}

}  // namespace

Endpoint::Endpoint(const RawConfig& config, Waiting waiting, const std::string& shm_name,
                   std::span<std::byte> memory)
    : config_(config), waiting_(waiting), memory_(memory) {
  const Owned<fi_info> hints(fi_allocinfo());
  if (!hints) throw std::runtime_error("fi_allocinfo: out of memory");
  const bool shm = config.provider == "shm";
  hints->caps = FI_RMA | FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;
  hints->ep_attr->type = FI_EP_RDM;
  hints->domain_attr->threading = FI_THREAD_SAFE;
  hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
  if (config.virtual_addresses) hints->domain_attr->mr_mode |= FI_MR_VIRT_ADDR;
  if (config.delivery_complete) hints->tx_attr->op_flags = FI_DELIVERY_COMPLETE;
  hints->fabric_attr->prov_name = ::strdup(config.provider.c_str());
  if (shm) {  // A name without "fi_shm://" is taken as it is.
    hints->addr_format = FI_ADDR_STR;
    hints->src_addr = ::strdup(shm_name.c_str());
    hints->src_addrlen = shm_name.size() + 1;
  }
  open(info_, "fi_getinfo", [&](fi_info** info) {
    return fi_getinfo(FI_VERSION(1, 17), shm ? nullptr : config.bind.c_str(), nullptr,
                      shm ? 0 : FI_SOURCE, hints.get(), info);
  });
  open(fabric_, "fi_fabric",
       [&](fid_fabric** fabric) { return fi_fabric(info_->fabric_attr, fabric, nullptr); });
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
                     FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE, 0, region_key, 0,
                     region, nullptr);
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

void Endpoint::connect(const nlohmann::json& peer) {
  const auto address = peer.at("address").get<std::vector<std::uint8_t>>();
  if (fi_av_insert(addresses_.get(), address.data(), 1, &peer_, 0, nullptr) != 1) {
    throw std::runtime_error("fi_av_insert: the address of the other side was refused");
  }
  peer.at("key").get_to(peer_key_);
  peer.at("base").get_to(peer_base_);
}

bool Endpoint::post(std::size_t offset, std::size_t length, void* context) {
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
  message.context = context;
  // The net provider of 1.17 heeds FI_DELIVERY_COMPLETE only here, not in the endpoint's op_flags.
  const std::uint64_t flags =
      FI_COMPLETION | (config_.delivery_complete && !config_.read ? FI_DELIVERY_COMPLETE : 0);
  const ssize_t rc = config_.read ? fi_readmsg(endpoint_.get(), &message, flags)
                                  : fi_writemsg(endpoint_.get(), &message, flags);
  if (rc == -FI_EAGAIN) return false;
  check(rc, config_.read ? "fi_readmsg" : "fi_writemsg");
  return true;
}

std::size_t Endpoint::read(std::span<fi_cq_entry> entries) {
  const ssize_t rc = fi_cq_read(queue_.get(), entries.data(), entries.size());
  if (rc == -FI_EAGAIN) return 0;
  if (rc == -FI_EAVAIL) {
    fi_cq_err_entry error{};
    check(fi_cq_readerr(queue_.get(), &error, 0), "fi_cq_readerr");
    throw std::runtime_error(fmt::format("an operation failed: {} (provider's code {})",
                                         fi_strerror(error.err), error.prov_errno));
  }
  check(rc, "fi_cq_read");
  if (waiting_ == Waiting::sleep) spin_until_ = {};
  return std::size_t(rc);
}

void Endpoint::idle(Deadline deadline) {
  if (config_.yield) ::sched_yield();
  if (waiting_ != Waiting::sleep) return;
  const auto now = Clock::now();
  if (spin_until_ == Clock::time_point{}) {
    spin_until_ = now + std::chrono::microseconds(config_.spin_us);
  }
  if (now < spin_until_) return;
  fid* queue = &queue_->fid;
  if (fi_trywait(fabric_.get(), &queue, 1) != FI_SUCCESS) return;
  // Cut short now and then, for the caller looks at flags and deadlines that wake nobody.
  constexpr std::chrono::milliseconds longest{20};
  pollfd descriptor{wait_fd_, POLLIN, 0};
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline.left());
  ::poll(&descriptor, 1, int(std::min(left, longest).count()));
  spin_until_ = {};
}

}  // namespace weft::perf
