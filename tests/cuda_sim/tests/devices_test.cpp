// What can be asked before there is a context: the devices, the errors, the entry points.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "cuda_sim.hpp"

namespace weft::cuda_sim {
namespace {

class CudaSimDevices : public testing::Test {
 protected:
  CudaSimDevices() { check(cuInit(0)); }
};

TEST_F(CudaSimDevices, HaveNamesAddressesAndMemory) {
  int count = 0;
  check(cuDeviceGetCount(&count));
  ASSERT_EQ(count, 2);
  Uuid uuids[2];
  for (int i = 0; i < count; ++i) {
    Ordinal device = -1;
    check(cuDeviceGet(&device, i));
    EXPECT_EQ(device, i);
    char pci[16], name[64];
    check(cuDeviceGetPCIBusId(pci, sizeof pci, device));
    EXPECT_STREQ(pci, i == 0 ? "0000:53:00.0" : "0000:64:00.0");
    int bus = 0;
    check(cuDeviceGetAttribute(&bus, device_pci_bus, device));
    EXPECT_EQ(bus, i == 0 ? 0x53 : 0x64);
    check(cuDeviceGetName(name, sizeof name, device));
    EXPECT_THAT(name, testing::HasSubstr("simulated"));
    std::size_t bytes = 0;
    check(cuDeviceTotalMem_v2(&bytes, device));
    EXPECT_EQ(bytes, std::size_t{16} << 30);
    check(cuDeviceGetUuid(&uuids[i], device));
  }
  EXPECT_NE(std::memcmp(&uuids[0], &uuids[1], sizeof(Uuid)), 0);
  Ordinal device = 0;
  EXPECT_EQ(cuDeviceGet(&device, 2), invalid_device);
  char small[5];
  check(cuDeviceGetPCIBusId(small, sizeof small, 0));
  EXPECT_STREQ(small, "0000");
}

TEST_F(CudaSimDevices, ErrorsHaveNamesAndTexts) {
  const char *name = nullptr, *text = nullptr;
  for (const Status status : {success, invalid_value, illegal_address, not_supported}) {
    EXPECT_EQ(cuGetErrorName(status, &name), success);
    EXPECT_THAT(name, testing::StartsWith("CUDA_"));
    EXPECT_EQ(cuGetErrorString(status, &text), success);
    EXPECT_NE(text, nullptr);
  }
  EXPECT_EQ(cuGetErrorName(12345, &name), invalid_value);
  EXPECT_EQ(name, nullptr) << "as the real driver leaves it";
}

TEST_F(CudaSimDevices, EntryPointsAreFoundByName) {
  void* address = nullptr;
  int found = -1;
  check(cuGetProcAddress_v2("cuMemAlloc", &address, 12000, 0, &found));
  EXPECT_EQ(address, reinterpret_cast<void*>(&cuMemAlloc_v2)) << "the version of today";
  EXPECT_EQ(found, 0);
  check(cuGetProcAddress_v2("cuMemcpyAsync", &address, 12000, 0, nullptr));
  EXPECT_EQ(address, reinterpret_cast<void*>(&cuMemcpyAsync));
  for (const char* none : {"cuNothing", "malloc"}) {
    EXPECT_EQ(cuGetProcAddress_v2(none, &address, 12000, 0, &found), not_found);
    EXPECT_EQ(address, nullptr);
    EXPECT_EQ(found, 1);
  }
}

}  // namespace
}  // namespace weft::cuda_sim
