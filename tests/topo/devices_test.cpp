#include "topo/devices.hpp"

#include <gtest/gtest.h>

#include <cstdint>

namespace weft::topo {
namespace {

constexpr PciIds amazon(std::uint16_t device) {
  return {.vendor = 0x1d0f, .device = device, .type = 0x0200};
}

TEST(Devices, ADriverThatTellsASpeedIsBelieved) {
  EXPECT_EQ(gbps_by_driver(amazon(0xefa1), 0), 100) << "nothing is told";
  EXPECT_EQ(gbps_by_driver(amazon(0xefa1), 50), 50);
  EXPECT_EQ(gbps_by_driver(amazon(0xefa2), 25), 25);
  EXPECT_EQ(gbps_by_driver(amazon(0xefa2), 400), 400);
  EXPECT_EQ(gbps_by_driver({.vendor = 0x15b3, .device = 0x1021, .type = 0x0207}, 100), 100);
}

TEST(Devices, WhatEfasDriverSaysWhereItDoesNotKnowIsNotBelieved) {
  EXPECT_EQ(gbps_by_driver(amazon(0xefa2), 100), 200);
  EXPECT_EQ(gbps_by_driver(amazon(0xefa3), 100), 400);
  EXPECT_EQ(gbps_by_driver(amazon(0xefa0), 100), 100);
  EXPECT_EQ(gbps_by_driver(amazon(0xefaf), 100), 100) << "of no known model";
}

}  // namespace
}  // namespace weft::topo
