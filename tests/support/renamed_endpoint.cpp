#include "renamed_endpoint.hpp"

#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <utility>

#include "forwarding.hpp"

namespace weft::test {
namespace {

using namespace providers;

std::string random_name() {
  std::random_device random;
  std::string name(1 + random() % 12, ' ');
  for (char& each : name) each = static_cast<char>('a' + random() % 26);
  return name;
}

class RenamedEndpoint final : public ForwardingEndpoint {
 public:
  explicit RenamedEndpoint(std::unique_ptr<Endpoint> real)
      : ForwardingEndpoint(std::move(real)), record_(inner().capability()) {
    record_.provider = random_name();
  }
  const Capability& capability() const noexcept override { return record_; }

 private:
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
