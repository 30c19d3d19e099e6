#include "stranger.hpp"

#include <rdma/fi_cm.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>

#include <algorithm>
#include <cstring>
#include <list>
#include <stdexcept>
#include <thread>

#include "providers/endpoint.hpp"

namespace weft::test {
namespace {

void check(long result, const char* what) {
  if (result < 0)
    throw std::runtime_error(std::string(what) + ": " +
                             providers::fabric_text(static_cast<int>(-result)));
}

providers::InfoPtr look_up(const Fabric& wanted, bool tagged) {
  const providers::InfoPtr hints = providers::copy_of(nullptr);
  hints->caps = FI_MSG | FI_RMA | (tagged ? FI_TAGGED : 0);
  hints->mode = FI_CONTEXT | FI_CONTEXT2;
  hints->addr_format = wanted.address_format;
  hints->ep_attr->type = FI_EP_RDM;
  hints->domain_attr->mr_mode = static_cast<int>(wanted.memory_mode);
  hints->domain_attr->threading = FI_THREAD_SAFE;
  hints->fabric_attr->prov_name = strdup(wanted.provider.c_str());
  hints->fabric_attr->name = strdup(wanted.fabric.c_str());
  fi_info* found = nullptr;
  providers::libfabric().getinfo(providers::api_version(), nullptr, nullptr, 0, hints.get(),
                                 &found);
  return providers::InfoPtr(found);
}

}  // namespace

Stranger::Stranger(const Fabric& fabric, std::span<std::byte> memory)
    : fabric_(fabric), memory_(memory) {
  if (const auto library = providers::load_libfabric(); !library)
    throw std::runtime_error(library.error().message());
  info_ = look_up(fabric_, true);
  tagged_ = info_ != nullptr;
  if (!tagged_) info_ = look_up(fabric_, false);
  if (!info_) throw std::runtime_error("libfabric has no " + fabric_.provider);
  open_endpoint();
  find_victim();
}

void Stranger::open_endpoint() {
  const auto own = [](auto& owner, const char* what, auto open) {
    typename std::remove_reference_t<decltype(owner)>::pointer made = nullptr;
    check(open(&made), what);
    owner.reset(made);
  };
  own(fabric_object_, "fi_fabric",
      [&](auto** out) { return providers::libfabric().fabric(info_->fabric_attr, out, nullptr); });
  own(domain_, "fi_domain",
      [&](auto** out) { return fi_domain(fabric_object_.get(), info_.get(), out, nullptr); });
  fi_cq_attr queue{};
  queue.format = FI_CQ_FORMAT_DATA;
  own(completions_, "fi_cq_open",
      [&](auto** out) { return fi_cq_open(domain_.get(), &queue, out, nullptr); });
  fi_av_attr table{};
  table.type = FI_AV_TABLE;
  own(addresses_, "fi_av_open",
      [&](auto** out) { return fi_av_open(domain_.get(), &table, out, nullptr); });
  own(endpoint_, "fi_endpoint",
      [&](auto** out) { return fi_endpoint(domain_.get(), info_.get(), out, nullptr); });
  check(fi_ep_bind(endpoint_.get(), &completions_->fid, FI_TRANSMIT | FI_RECV), "fi_ep_bind");
  check(fi_ep_bind(endpoint_.get(), &addresses_->fid, 0), "fi_ep_bind");
  if (fabric_.provider == "efa") {
    // Without an event queue it aborts where a handshake fails.
    fi_eq_attr events{};
    events.wait_obj = FI_WAIT_NONE;
    own(events_, "fi_eq_open",
        [&](auto** out) { return fi_eq_open(fabric_object_.get(), &events, out, nullptr); });
    check(fi_ep_bind(endpoint_.get(), &events_->fid, 0), "fi_ep_bind");
  }
  check(fi_enable(endpoint_.get()), "fi_enable");
  own(region_, "fi_mr_reg", [&](auto** out) {
    return fi_mr_reg(domain_.get(), memory_.data(), memory_.size(),
                     FI_SEND | FI_RECV | FI_READ | FI_WRITE, 0, 1, 0, out, nullptr);
  });
}

void Stranger::find_victim() {
  const auto insert = [this](const char* address) {
    fi_addr_t inserted = FI_ADDR_UNSPEC;
    if (fi_av_insert(addresses_.get(), address, 1, &inserted, 0, nullptr) != 1)
      throw std::runtime_error("fi_av_insert");
    return inserted;
  };
  victim_ = insert(fabric_.address.data());
  // Where messages have no tags a rail has an endpoint for each class, and both addresses in one.
  if (!tagged_) bounce_ = insert(fabric_.address.data() + fabric_.address.size() / 2);
}

Ending Stranger::write(const Aim& aim, std::size_t length, Deadline deadline) {
  return rma(fi_writemsg, aim, length, 0, deadline);
}

Ending Stranger::write_data(const Aim& aim, std::size_t length, Deadline deadline) {
  return rma(fi_writemsg, aim, length, FI_REMOTE_CQ_DATA, deadline);
}

Ending Stranger::read(const Aim& aim, std::size_t length, Deadline deadline) {
  return rma(fi_readmsg, aim, length, 0, deadline);
}

Ending Stranger::rma(RmaCall call, const Aim& aim, std::size_t length, std::uint64_t flags,
                     Deadline deadline) {
  constexpr std::uint64_t data = 0xdada;
  flags |= FI_COMPLETION | (fabric_.delivery_complete ? FI_DELIVERY_COMPLETE : 0);
  return finish(
      [&](void* context) {
        iovec here{memory_.data(), length};
        void* descriptor = fi_mr_desc(region_.get());
        fi_rma_iov there{aim.address, aim.length, aim.key};
        const fi_msg_rma message{&here, &descriptor, 1, victim_, &there, 1, context, data};
        return call(endpoint_.get(), &message, flags);
      },
      deadline);
}

Ending Stranger::send(Class type, std::size_t length, Deadline deadline) {
  return finish(
      [&](void* context) {
        void* descriptor = fi_mr_desc(region_.get());
        if (tagged_ && type != Class::none)
          return fi_tsend(endpoint_.get(), memory_.data(), length, descriptor, victim_,
                          static_cast<std::uint64_t>(type), context);
        const fi_addr_t to = type == Class::bounce ? bounce_ : victim_;
        return fi_send(endpoint_.get(), memory_.data(), length, descriptor, to, context);
      },
      deadline);
}

template <typename Post>
Ending Stranger::finish(Post post, Deadline deadline) {
  // Never freed: what does not end in time may end later.
  static std::list<Operation> operations;
  Operation& operation = operations.emplace_back();
  ssize_t result = post(&operation.context);
  while (result == -FI_EAGAIN && !deadline.passed()) {
    look();
    std::this_thread::yield();
    result = post(&operation.context);
  }
  if (result == -FI_EAGAIN) return {Ending::silent, 0};
  if (result != 0) return {Ending::refused, static_cast<int>(-result)};
  while (!operation.ended && !deadline.passed()) {
    look();
    std::this_thread::yield();
  }
  return operation.ended ? operation.ending : Ending{Ending::silent, 0};
}

void Stranger::look() {
  static_assert(offsetof(Operation, context) == 0);
  fi_cq_data_entry entry{};
  const ssize_t count = fi_cq_read(completions_.get(), &entry, 1);
  if (count == 1 && entry.op_context != nullptr)
    static_cast<Operation*>(entry.op_context)->ended = true;
  if (count != -FI_EAVAIL) return;
  fi_cq_err_entry failed{};
  if (fi_cq_readerr(completions_.get(), &failed, 0) != 1 || failed.op_context == nullptr) return;
  auto& operation = *static_cast<Operation*>(failed.op_context);
  operation.ended = true;
  operation.ending = {Ending::refused, failed.err};
}

}  // namespace weft::test
