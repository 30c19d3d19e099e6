// A program that links with a CUDA driver has one present.
#include <gtest/gtest.h>

#include "cuda_sim.hpp"
#include "device/cuda/driver.hpp"

namespace weft::cuda_sim {
namespace {

TEST(CudaDriverPresent, IsTheOneThatTheProgramLinksWith) {
  const Driver* const driver = Driver::present();
  ASSERT_NE(driver, nullptr);
  EXPECT_EQ(driver->copy_async, &cuMemcpyAsync);
  EXPECT_EQ(driver->range_handle, &cuMemGetHandleForAddressRange);
  EXPECT_EQ(Driver::load().value(), driver);
}

}  // namespace
}  // namespace weft::cuda_sim
