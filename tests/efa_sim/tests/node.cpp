#include "node.hpp"

#include <fmt/format.h>
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#if FI_MAJOR_VERSION > 1 || FI_MINOR_VERSION >= 18
#include <rdma/fi_ext.h>
#endif

#include <cstring>
#include <sstream>
#include <stdexcept>

#include "process.hpp"

namespace weft::efa_sim {
namespace {

void check(long result, const char* what) {
  if (result < 0)
    throw std::runtime_error(fmt::format("{}: {}", what, fi_strerror(static_cast<int>(-result))));
}

fi_info* look_up(const std::string& fabric, const std::string& nic) {
  fi_info* const hints = fi_allocinfo();
  hints->caps = FI_MSG | FI_RMA | (fabric == "efa" ? FI_TAGGED : 0);
  hints->mode = FI_CONTEXT | FI_CONTEXT2;
  hints->ep_attr->type = FI_EP_RDM;
  hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
  hints->domain_attr->threading = FI_THREAD_SAFE;
  hints->fabric_attr->prov_name = strdup("efa");
  hints->fabric_attr->name = strdup(fabric.c_str());
  if (!nic.empty()) hints->domain_attr->name = strdup((nic + "-rdm").c_str());
  fi_info* found = nullptr;
  fi_getinfo(std::min<std::uint32_t>(fi_version(), FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION)),
             nullptr, nullptr, 0, hints, &found);
  fi_freeinfo(hints);
  // Older versions don't look at the name of the fabric.
  if (found != nullptr && fabric != found->fabric_attr->name) {
    fi_freeinfo(found);
    return nullptr;
  }
  return found;
}

}  // namespace

std::string Reach::to_text() const {
  const auto bytes = std::as_bytes(std::span(address));
  return fmt::format("{} {} {}", test::to_hex(bytes), base, key);
}

Reach Reach::from_text(const std::string& text) {
  std::istringstream words(text);
  std::string hex;
  Reach reach;
  words >> hex >> reach.base >> reach.key;
  for (const std::byte each : test::from_hex(hex)) reach.address += static_cast<char>(each);
  return reach;
}

bool Node::exists(const std::string& fabric) {
  fi_info* const found = look_up(fabric, "");
  const bool exists = found != nullptr;
  fi_freeinfo(found);
  return exists;
}

Node::Node(const std::string& fabric, std::size_t memory, const std::string& nic)
    : info_(look_up(fabric, nic)), size_(memory), memory_(new std::byte[memory]) {
  if (info_ == nullptr) throw std::runtime_error("no such fabric: " + fabric);
  std::memset(memory_.get(), 0, size_);
  check(fi_fabric(info_->fabric_attr, &fabric_, nullptr), "fi_fabric");
  check(fi_domain(fabric_, info_, &domain_, nullptr), "fi_domain");
  // Without an event queue, some errors end the process.
  fi_eq_attr event_attributes{};
  event_attributes.wait_obj = FI_WAIT_NONE;
  check(fi_eq_open(fabric_, &event_attributes, &events_, nullptr), "fi_eq_open");
  fi_cq_attr completion_attributes{};
  completion_attributes.format = FI_CQ_FORMAT_DATA;
  completion_attributes.size = 4096;
  check(fi_cq_open(domain_, &completion_attributes, &completions_, nullptr), "fi_cq_open");
  fi_av_attr address_attributes{};
  address_attributes.type = FI_AV_TABLE;
  check(fi_av_open(domain_, &address_attributes, &addresses_, nullptr), "fi_av_open");
  check(fi_endpoint(domain_, info_, &endpoint_, nullptr), "fi_endpoint");
  check(fi_ep_bind(endpoint_, &completions_->fid, FI_TRANSMIT | FI_RECV), "fi_ep_bind");
  check(fi_ep_bind(endpoint_, &addresses_->fid, 0), "fi_ep_bind");
  check(fi_ep_bind(endpoint_, &events_->fid, 0), "fi_ep_bind");
  check(fi_enable(endpoint_), "fi_enable");
  constexpr std::uint64_t rights =
      FI_SEND | FI_RECV | FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;
  check(fi_mr_reg(domain_, memory_.get(), size_, rights, 0, 1, 0, &region_, nullptr), "fi_mr_reg");
  thread_ = std::jthread([this](std::stop_token stop) {
    while (!stop.stop_requested()) {
      // Short where something goes on; 64 threads that look every 20 us keep two cores busy.
      const bool found = poll();
      std::this_thread::sleep_for(std::chrono::microseconds(found ? 20 : 200));
    }
  });
}

Node::~Node() {
  thread_ = {};
  fi_close(&endpoint_->fid);
  deregister_again();
  fi_close(&region_->fid);
  fi_close(&completions_->fid);
  fi_close(&addresses_->fid);
  fi_close(&events_->fid);
  fi_close(&domain_->fid);
  fi_close(&fabric_->fid);
  fi_freeinfo(info_);
}

bool Node::device_writes() const {
#if FI_MAJOR_VERSION > 1 || FI_MINOR_VERSION >= 18
  bool emulated = false;
  std::size_t length = sizeof emulated;
  return fi_getopt(&endpoint_->fid, FI_OPT_ENDPOINT, FI_OPT_EFA_EMULATED_WRITE, &emulated,
                   &length) == 0 &&
         !emulated;
#else
  return false;  // too old to
#endif
}

Reach Node::reach() const {
  char address[64];
  std::size_t length = sizeof address;
  check(fi_getname(&endpoint_->fid, address, &length), "fi_getname");
  return {std::string(address, length), reinterpret_cast<std::uint64_t>(memory_.get()),
          fi_mr_key(region_)};
}

std::uint64_t Node::register_again() {
  const std::lock_guard lock(mutex_);
  check(fi_mr_reg(domain_, memory_.get(), size_, FI_REMOTE_READ | FI_REMOTE_WRITE, 0, 2, 0,
                  &second_region_, nullptr),
        "fi_mr_reg");
  return fi_mr_key(second_region_);
}

void Node::deregister_again() {
  const std::lock_guard lock(mutex_);
  if (second_region_ != nullptr) fi_close(&second_region_->fid);
  second_region_ = nullptr;
}

fi_addr_t Node::add(const Reach& peer) {
  const std::lock_guard lock(mutex_);
  fi_addr_t address = FI_ADDR_UNSPEC;
  if (fi_av_insert(addresses_, peer.address.data(), 1, &address, 0, nullptr) != 1)
    throw std::runtime_error("fi_av_insert");
  return address;
}

Node::Context* Node::context_of(std::uint64_t operation) {
  return &contexts_.emplace_back(Context{{}, operation});
}

ssize_t Node::write(std::uint64_t operation, std::size_t at, std::size_t length, fi_addr_t peer,
                    std::uint64_t there, std::uint64_t key) {
  const std::lock_guard lock(mutex_);
  return fi_write(endpoint_, memory_.get() + at, length, fi_mr_desc(region_), peer, there, key,
                  context_of(operation));
}

ssize_t Node::write_data(std::uint64_t operation, std::size_t at, std::size_t length,
                         fi_addr_t peer, std::uint64_t there, std::uint64_t key,
                         std::uint64_t data) {
  const std::lock_guard lock(mutex_);
  return fi_writedata(endpoint_, memory_.get() + at, length, fi_mr_desc(region_), data, peer, there,
                      key, context_of(operation));
}

ssize_t Node::read(std::uint64_t operation, std::size_t at, std::size_t length, fi_addr_t peer,
                   std::uint64_t there, std::uint64_t key) {
  const std::lock_guard lock(mutex_);
  return fi_read(endpoint_, memory_.get() + at, length, fi_mr_desc(region_), peer, there, key,
                 context_of(operation));
}

ssize_t Node::send(std::uint64_t operation, std::size_t at, std::size_t length, fi_addr_t peer) {
  const std::lock_guard lock(mutex_);
  return fi_send(endpoint_, memory_.get() + at, length, fi_mr_desc(region_), peer,
                 context_of(operation));
}

ssize_t Node::receive(std::uint64_t operation, std::size_t at, std::size_t length) {
  const std::lock_guard lock(mutex_);
  return fi_recv(endpoint_, memory_.get() + at, length, fi_mr_desc(region_), FI_ADDR_UNSPEC,
                 context_of(operation));
}

ssize_t Node::send_tagged(std::uint64_t operation, std::size_t at, std::size_t length,
                          fi_addr_t peer, std::uint64_t tag) {
  const std::lock_guard lock(mutex_);
  return fi_tsend(endpoint_, memory_.get() + at, length, fi_mr_desc(region_), peer, tag,
                  context_of(operation));
}

ssize_t Node::receive_tagged(std::uint64_t operation, std::size_t at, std::size_t length,
                             std::uint64_t tag) {
  const std::lock_guard lock(mutex_);
  return fi_trecv(endpoint_, memory_.get() + at, length, fi_mr_desc(region_), FI_ADDR_UNSPEC, tag,
                  0, context_of(operation));
}

std::vector<Completion> Node::take() {
  const std::lock_guard lock(mutex_);
  return std::exchange(taken_, {});
}

std::vector<int> Node::take_events() {
  const std::lock_guard lock(mutex_);
  return std::exchange(event_errors_, {});
}

bool Node::poll() {
  const std::lock_guard lock(mutex_);
  const std::size_t before = taken_.size();
  read_completions();
  read_events();
  return taken_.size() > before;
}

void Node::read_completions() {
  const auto operation_of = [](void* context) {
    return context == nullptr ? 0 : static_cast<Context*>(context)->operation;
  };
  fi_cq_data_entry entries[16];
  const ssize_t count = fi_cq_read(completions_, entries, std::size(entries));
  for (ssize_t i = 0; i < count; ++i) {
    const fi_cq_data_entry& entry = entries[i];
    taken_.push_back({entry.flags, entry.data, entry.len, operation_of(entry.op_context), 0, 0});
  }
  if (count != -FI_EAVAIL) return;
  fi_cq_err_entry entry{};
  if (fi_cq_readerr(completions_, &entry, 0) == 1)
    taken_.push_back({entry.flags, entry.data, entry.len, operation_of(entry.op_context), entry.err,
                      entry.prov_errno});
}

void Node::read_events() {
  std::uint32_t event;
  fi_eq_entry ignored;
  if (fi_eq_read(events_, &event, &ignored, sizeof ignored, 0) != -FI_EAVAIL) return;
  fi_eq_err_entry entry{};
  if (fi_eq_readerr(events_, &entry, 0) > 0) event_errors_.push_back(entry.err);
}

}  // namespace weft::efa_sim
