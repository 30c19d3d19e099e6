// A program that does not link with a CUDA driver: it has none until it is loaded.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "device/cuda/driver.hpp"

namespace weft::core::cuda {
namespace {

TEST(CudaDriverAbsent, IsFoundOnlyWhenLoaded) {
  EXPECT_EQ(Driver::present(), nullptr);
  const auto loaded = Driver::load();
  ASSERT_TRUE(loaded) << loaded.error().message();
  EXPECT_EQ(Driver::present(), *loaded);
  int count = 0;
  EXPECT_EQ((*loaded)->device_count(&count), success);
  EXPECT_GT(count, 0);
  EXPECT_THAT((*loaded)->error("cuMemAlloc", out_of_memory).message(),
              testing::HasSubstr("CUDA_ERROR_OUT_OF_MEMORY"));
  EXPECT_THAT((*loaded)->error("cuMemAlloc", 12345).message(), testing::HasSubstr("12345"))
      << "a status that the driver has no name for";
}

}  // namespace
}  // namespace weft::core::cuda
