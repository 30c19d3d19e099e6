#include "registrations.hpp"

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

class CountingEndpoint final : public Endpoint {
 public:
  explicit CountingEndpoint(std::unique_ptr<Endpoint> real) : real_(std::move(real)) {}

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
    return real_->send(posted, local, peer, type);
  }
  Post receive(Posted& posted, const Local& local, MessageClass type) override {
    return real_->receive(posted, local, type);
  }
  std::size_t poll() override { return real_->poll(); }
  int wait_fd() const noexcept override { return real_->wait_fd(); }
  bool may_sleep() override { return real_->may_sleep(); }
  void shut() override { real_->shut(); }

 private:
  const std::unique_ptr<Endpoint> real_;
};

}  // namespace

void count_registrations() {
  core::endpoint_decorator() = [](std::unique_ptr<Endpoint> real) {
    return std::make_unique<CountingEndpoint>(std::move(real));
  };
}

std::int64_t live_registrations() {
  return live;
}

}  // namespace weft::chaos
