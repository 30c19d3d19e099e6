#include "renamed_endpoint.hpp"

#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <utility>

#include "engine/hooks.hpp"

namespace weft::test {
namespace {

using namespace providers;

std::string random_name() {
  std::random_device random;
  std::string name(1 + random() % 12, ' ');
  for (char& each : name) each = static_cast<char>('a' + random() % 26);
  return name;
}

class RenamedEndpoint final : public Endpoint {
 public:
  explicit RenamedEndpoint(std::unique_ptr<Endpoint> real)
      : real_(std::move(real)), record_(real_->capability()) {
    record_.provider = random_name();
  }

  const Capability& capability() const noexcept override { return record_; }
  const Blob& address() const noexcept override { return real_->address(); }
  Result<FabricAddress> insert(Bytes address) override { return real_->insert(address); }
  void remove(FabricAddress peer) override { real_->remove(peer); }
  Result<std::unique_ptr<Registration>> register_memory(void* address, std::size_t length,
                                                        Access access) override {
    return real_->register_memory(address, length, access);
  }
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
  Capability record_;
};

}  // namespace

void rename_rails_if_asked() {
  static const bool done = [] {
    const char* asked = std::getenv("WEFT_TEST_RANDOM_NAMES");
    if (asked == nullptr || *asked == '\0') return false;
    core::endpoint_decorator() = [](std::unique_ptr<Endpoint> real) {
      return std::make_unique<RenamedEndpoint>(std::move(real));
    };
    return true;
  }();
  (void)done;
}

}  // namespace weft::test
