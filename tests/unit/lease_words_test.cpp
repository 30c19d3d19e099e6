#include "lease/lease_words.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "scripted_endpoint.hpp"

namespace weft::core::test {
namespace {

/// Notes what is registered.
class Registrar final : public ScriptedEndpoint {
 public:
  Registrar() { record.virtual_addresses = true; }
  Result<std::unique_ptr<providers::Registration>> register_memory(const providers::Extent& extent,
                                                                   providers::Access) override {
    registered = extent;
    return std::make_unique<Registered>();
  }
  providers::Extent registered;

 private:
  struct Registered final : providers::Registration {
    std::uint64_t key() const noexcept override { return 7; }
    void* descriptor() const noexcept override { return nullptr; }
    bool close() override { return true; }
  };
};

std::uint64_t word_of(const Epoch& epoch) {
  return reinterpret_cast<const std::atomic<std::uint64_t>*>(
             static_cast<std::uintptr_t>(epoch.keys().front().base))
      ->load();
}

class LeaseWordsOfOneRail : public testing::Test {
 protected:
  Registrar rail_;
  const std::shared_ptr<LeaseWords> words_ =
      std::make_shared<LeaseWords>(std::vector<LeaseWords::Reader>{{0, &rail_}});
};

TEST_F(LeaseWordsOfOneRail, HoldTheirNumbersUntilTheEnd) {
  const auto one = words_->take().value(), other = words_->take().value();
  EXPECT_EQ(word_of(*one), one->value());
  one->end();
  EXPECT_NE(word_of(*one), one->value());
  EXPECT_EQ(word_of(*other), other->value());
}

TEST_F(LeaseWordsOfOneRail, LieInAFileThatPeersCanMap) {
  const auto epoch = words_->take().value();
  EXPECT_GE(rail_.registered.file.descriptor, 0);
}

TEST_F(LeaseWordsOfOneRail, AForkedChildEndsNoneOfItsParents) {
  const auto epoch = words_->take().value();
  const pid_t child = fork();
  if (child == 0) {
    epoch->end();
    _exit(0);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_EQ(status, 0);
  EXPECT_EQ(word_of(*epoch), epoch->value());
}

}  // namespace
}  // namespace weft::core::test
