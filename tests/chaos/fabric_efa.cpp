#include <fmt/format.h>

#include <vector>

#include "fabric.hpp"
#include "support/efa_fabric.hpp"

namespace weft::chaos {
namespace {

class EfaNetwork final : public Fabric {
 public:
  EfaNetwork() : device_(efa_sim::EfaControl::of_environment()) { calm(); }

  std::string disturb(Random& random) override {
    const auto nic = random.below(2);
    const std::vector<std::string> troubles = {
        fmt::format("peer_timeout_ms={},efa_{}.nic_down=1", random.between(100, 1000), nic),
        fmt::format("peer_timeout_ms={},nic_down=1", random.between(100, 1000)),
        fmt::format("mtu=1024,reorder=256,delay_us={},jitter_us={}", random.between(0, 300),
                    random.between(0, 3000)),
        "stall=1",
        fmt::format("rnr=0.2,rnr_us={}", random.between(100, 3000)),
        fmt::format("error=0.0{}", random.between(1, 5)),
    };
    const std::string& trouble = random.pick(troubles);
    device_.set(trouble);
    return trouble;
  }
  void calm() override { device_.set("clear"); }

 private:
  efa_sim::EfaControl device_;
};

}  // namespace

std::unique_ptr<Fabric> efa_fabric() {
  return std::make_unique<EfaNetwork>();
}

}  // namespace weft::chaos
