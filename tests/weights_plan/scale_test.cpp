// A trillion parameters, from 256 trainers to 128 inference ranks.
#include <gtest/gtest.h>

#include <ctime>
#include <weft/weights_models.hpp>

#include "configs.hpp"

namespace weft::weights {
namespace {

double cpu_seconds() {
  return static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
}

TEST(WeightsScale, ATrillionParametersArePlannedQuickly) {
  const auto model = from_config(test::kimi_k2).value();
  const World world = {
      model.ranks({.parallel = {.ep = 64, .fsdp = 256}, .name = "trainer", .host = "train"})
          .value(),
      model.ranks({.parallel = {.tp = 8, .ep = 128, .dp = 16}, .host = "serve"}).value()};
  const double begin = cpu_seconds();
  const auto made = plan(world);
  const double took = cpu_seconds() - begin;
  ASSERT_TRUE(made) << made.error().to_string();
  // Optimised it takes less than a second; a sanitizer's build some tens of times as long.
  EXPECT_LT(took, 60);
  EXPECT_EQ(made->published, model.bytes());
  // What each rank receives fills its NICs for 0.216 s.
  EXPECT_GT(made->predicted_seconds, 0.216);
  EXPECT_LT(made->predicted_seconds, 0.26);
}

}  // namespace
}  // namespace weft::weights
