#include "direct_nic.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <mutex>
#include <optional>
#include <set>
#include <utility>

#include "forwarding.hpp"
#include "support/owned.hpp"

namespace weft::test {
namespace {

using namespace providers;

/// What of a DMA buffer an extent lies in, mapped for this process. Its file's position says where
/// the buffer begins (the stand-in's README.md).
class View {
 public:
  View(const DmaBuf& buffer, const Extent& extent) {
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    const auto at = static_cast<std::size_t>(extent.data() - buffer.base);
    const std::size_t within = at % page;
    const off_t begin = lseek(buffer.descriptor.get(), 0, SEEK_CUR);
    bytes_ = within + extent.length;
    start_ = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, buffer.descriptor.get(),
                  begin + static_cast<off_t>(at - within));
    data_ = static_cast<std::byte*>(start_) + within;
  }
  ~View() {
    if (mapped()) munmap(start_, bytes_);
  }
  View(const View&) = delete;
  View& operator=(const View&) = delete;
  bool mapped() const { return start_ != MAP_FAILED; }
  /// Where the extent's first byte is.
  std::byte* data() const { return data_; }

 private:
  std::size_t bytes_ = 0;
  void* start_ = nullptr;
  std::byte* data_ = nullptr;
};

/// As the kernel finds a GPU's memory by a pointer (nvidia-peermem).
DmaBuf pages_behind(const Extent& extent) {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const auto address = reinterpret_cast<cuda_sim::Address>(extent.address);
  const cuda_sim::Address begin = address / page * page;
  const std::size_t bytes = (address + extent.length - begin + page - 1) / page * page;
  const cuda_sim::CurrentContext here(extent.ordinal);
  int descriptor = -1;
  cuda_sim::check(cuda_sim::cuMemGetHandleForAddressRange(&descriptor, begin, bytes,
                                                          cuda_sim::handle_dmabuf, 0));
  return {core::Descriptor(descriptor), reinterpret_cast<std::byte*>(begin)};
}

/// Those of one NIC that are there.
struct Registered;

class ViewRegistration final : public Registration {
 public:
  /// `inner`: null where a local buffer needs none.
  ViewRegistration(const Extent& extent, Access access, std::unique_ptr<View> view,
                   std::unique_ptr<Registration> inner, std::shared_ptr<Registered> all);
  ~ViewRegistration() override;
  void* descriptor() const noexcept override { return inner_ ? inner_->descriptor() : nullptr; }
  std::uint64_t key() const noexcept override { return inner_ ? inner_->key() : 0; }
  bool close() override { return inner_ == nullptr || inner_->close(); }
  void retire() noexcept override {
    if (inner_) inner_->retire();
  }
  const Error* lost() const noexcept override { return lost_ ? &*why_lost_ : nullptr; }
  void lose(Error why) {
    if (inner_) inner_->close();
    why_lost_ = std::move(why);
    lost_ = true;
  }
  const Extent& extent() const { return extent_; }
  Access access() const { return access_; }
  Local local(const Local& local) const {
    const auto at = static_cast<std::byte*>(local.address) - extent_.data();
    return {view_->data() + at, local.length, inner_.get()};
  }

 private:
  const Extent extent_;
  const Access access_;
  const std::unique_ptr<View> view_;  // outlives what is registered of it
  const std::unique_ptr<Registration> inner_;
  std::atomic<bool> lost_{false};
  std::optional<Error> why_lost_;
  const std::shared_ptr<Registered> all_;
};

struct Registered {
  std::mutex mutex;
  std::set<ViewRegistration*> there;
};

ViewRegistration::ViewRegistration(const Extent& extent, Access access, std::unique_ptr<View> view,
                                   std::unique_ptr<Registration> inner,
                                   std::shared_ptr<Registered> all)
    : extent_(extent),
      access_(access),
      view_(std::move(view)),
      inner_(std::move(inner)),
      all_(std::move(all)) {
  const std::lock_guard lock(all_->mutex);
  all_->there.insert(this);
}

ViewRegistration::~ViewRegistration() {
  const std::lock_guard lock(all_->mutex);
  all_->there.erase(this);
}

bool is_local(Access access) {
  return access == Access::local || access == Access::source;
}

class DirectEndpoint final : public ForwardingEndpoint {
 public:
  DirectEndpoint(std::unique_ptr<Endpoint> inner, std::shared_ptr<DirectNic> nic)
      : ForwardingEndpoint(std::move(inner)), nic_(std::move(nic)), record_(as_nic(*nic_)) {}
  const Capability& capability() const noexcept override { return record_; }

  Result<std::unique_ptr<Registration>> register_memory(const Extent& memory,
                                                        Access access) override {
    if (memory.hmem == Hmem::none) return inner().register_memory(memory, access);
    const bool by_dmabuf = memory.dmabuf != nullptr;
    if (auto refused = refusal(memory, access)) return fail(std::move(*refused));
    ++(by_dmabuf ? nic_->by_dmabuf : nic_->by_pointer);
    auto view = by_dmabuf ? std::make_unique<View>(*memory.dmabuf, memory)
                          : std::make_unique<View>(pages_behind(memory), memory);
    if (!view->mapped()) return fail(Code::fabric_failed, "a DMA buffer can't be mapped");
    if (is_local(access) && !inner().capability().local_registration)
      return std::make_unique<ViewRegistration>(memory, access, std::move(view), nullptr, all_);
    return inner()
        .register_memory({view->data(), memory.length}, access)
        .map([&](std::unique_ptr<Registration>&& made) -> std::unique_ptr<Registration> {
          return std::make_unique<ViewRegistration>(memory, access, std::move(view),
                                                    std::move(made), all_);
        });
  }
  /// What it would refuse now it has lost.
  Result<void> reopen() override {
    auto opened = inner().reopen();
    const std::lock_guard lock(all_->mutex);
    for (ViewRegistration* each : all_->there)
      if (auto refused = refusal(each->extent(), each->access()); opened && refused)
        each->lose(std::move(*refused));
    return opened;
  }
  // Targets are offsets, which are the same in a view.
  bool copy_inline(bool writes, const Local& local, const Target& target, CopyBy by) override {
    return inner().copy_inline(writes, seen(local), target, by);
  }
  Post write(Posted& posted, const Local& local, const Target& target) override {
    return inner().write(posted, seen(local), target);
  }
  Post read(Posted& posted, const Local& local, const Target& target) override {
    return inner().read(posted, seen(local), target);
  }

 private:
  std::optional<Error> refusal(const Extent& memory, Access access) const {
    const bool by_dmabuf = memory.dmabuf != nullptr;
    if (by_dmabuf ? nic_->refuses_dmabufs : nic_->refuses_pointers)
      return Error(Code::fabric_failed,
                   by_dmabuf ? "this NIC wants pointers" : "this NIC wants DMA buffers");
    if (memory.length > nic_->most_bytes)
      return Error(Code::out_of_memory, "this NIC takes less at a time").with_fabric_code(ENOMEM);
    if (nic_->refuses_peers && !is_local(access))
      return Error(Code::fabric_failed, "this NIC has no room for keys");
    return std::nullopt;
  }
  /// What NICs are: nobody copies, and a completion proves arrival at the other NIC alone.
  Capability as_nic(const DirectNic& nic) const {
    Capability record = inner().capability();
    record.device_memory = nic.device_memory;
    record.dmabuf = nic.device_memory && nic.takes_dmabufs;
    record.device_memory_problem = nic.device_memory ? "" : "it is an old one";
    record.proof = CompletionProof::received;
    record.write_carriage = record.read_carriage = {};
    record.rma_pieces = 1;
    record.shared_doorbell = false;
    return record;
  }
  static Local seen(const Local& local) {
    const auto* view = dynamic_cast<const ViewRegistration*>(local.registration);
    return view != nullptr ? view->local(local) : local;
  }

  const std::shared_ptr<DirectNic> nic_;
  const std::shared_ptr<Registered> all_ = std::make_shared<Registered>();
  const Capability record_;
};

}  // namespace

DirectNics::DirectNics(std::vector<std::shared_ptr<DirectNic>> nics) : nics_(std::move(nics)) {
  core::endpoint_decorator() =
      [this](std::unique_ptr<Endpoint> endpoint) -> std::unique_ptr<Endpoint> {
    if (opened_ >= nics_.size()) return endpoint;
    return std::make_unique<DirectEndpoint>(std::move(endpoint), nics_[opened_++]);
  };
}

DirectNics::~DirectNics() {
  core::endpoint_decorator() = nullptr;
}

void use_direct_nics_if_asked() {
  const char* const asked = std::getenv("WEFT_TEST_DIRECT_NICS");
  if (asked == nullptr || *asked == '\0') return;
  core::endpoint_decorator() = [](std::unique_ptr<Endpoint> endpoint) {
    return std::make_unique<DirectEndpoint>(std::move(endpoint), std::make_shared<DirectNic>());
  };
}

}  // namespace weft::test
