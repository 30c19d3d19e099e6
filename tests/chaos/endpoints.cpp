#include "endpoints.hpp"

#include <atomic>
#include <memory>
#include <utility>

#include "engine/hooks.hpp"

namespace weft::chaos {
namespace {

using namespace providers;

std::atomic<std::int64_t> live{0};

class CountedRegistration final : public Registration {
 public:
  explicit CountedRegistration(std::unique_ptr<Registration> real) : real_(std::move(real)) {
    ++live;
  }
  ~CountedRegistration() override { --live; }
  void* descriptor() const noexcept override { return real_->descriptor(); }
  std::uint64_t key() const noexcept override { return real_->key(); }
  bool close() override { return real_->close(); }

 private:
  const std::unique_ptr<Registration> real_;
};

class WatchedEndpoint final : public Endpoint, private CompletionHandler {
 public:
  explicit WatchedEndpoint(std::unique_ptr<Endpoint> real) : real_(std::move(real)) {}

  Result<std::unique_ptr<Registration>> register_memory(void* address, std::size_t length,
                                                        Access access) override {
    return real_->register_memory(address, length, access)
        .map([](std::unique_ptr<Registration>&& made) -> std::unique_ptr<Registration> {
          return std::make_unique<CountedRegistration>(std::move(made));
        });
  }

  const Capability& capability() const noexcept override { return real_->capability(); }
  const Blob& address() const noexcept override { return real_->address(); }
  Result<FabricAddress> insert(Bytes address) override { return real_->insert(address); }
  void remove(FabricAddress peer) override { real_->remove(peer); }
  Post write(Posted& posted, const Local& local, const Target& target) override {
    return real_->write(posted, local, target);
  }
  Post read(Posted& posted, const Local& local, const Target& target) override {
    return real_->read(posted, local, target);
  }
  Post send(Posted& posted, const Local& local, FabricAddress peer, MessageClass type) override {
    const Post post = real_->send(posted, local, peer, type);
    if (post.status == PostStatus::posted && type == MessageClass::message) repeat(local, peer);
    return post;
  }
  Post receive(Posted& posted, const Local& local, MessageClass type) override {
    return real_->receive(posted, local, type);
  }
  std::size_t poll() override { return real_->poll(); }
  int wait_fd() const noexcept override { return real_->wait_fd(); }
  bool may_sleep() override { return real_->may_sleep(); }
  void shut() override { real_->shut(); }

 private:
  /// Every so often, and one at a time: the peer has receives to spare for no more.
  void repeat(const Local& local, FabricAddress peer) {
    constexpr unsigned every = 50;
    if (capability().local_registration || repeating_ || ++sent_ % every != 0) return;
    const auto* bytes = static_cast<const std::byte*>(local.address);
    repeated_.assign(bytes, bytes + local.length);
    repeat_.handler = this;
    const Local again{repeated_.data(), repeated_.size(), nullptr};
    repeating_ =
        real_->send(repeat_, again, peer, MessageClass::message).status == PostStatus::posted;
  }
  void completed(Posted&, const Completion&) override { repeating_ = false; }

  Posted repeat_;
  Blob repeated_;
  bool repeating_ = false;
  unsigned sent_ = 0;
  const std::unique_ptr<Endpoint> real_;  // the first to go
};

}  // namespace

void watch_endpoints() {
  core::endpoint_decorator() = [](std::unique_ptr<Endpoint> real) {
    return std::make_unique<WatchedEndpoint>(std::move(real));
  };
}

std::int64_t live_registrations() {
  return live;
}

}  // namespace weft::chaos
