// What libfabric is asked for when memory of each kind is registered.
#include "providers/libfabric/registration_request.hpp"

#include <gtest/gtest.h>

#include <array>

#include "providers/libfabric/libfabric.hpp"

namespace weft::providers {
namespace {

class RegistrationRequests : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(load_libfabric()); }
  Extent extent(Hmem hmem, int ordinal = 0) {
    return {memory_.data() + 100, 200, hmem, ordinal, nullptr};
  }
  std::array<std::byte, 4096> memory_{};
};

TEST_F(RegistrationRequests, AreOfTheBytesTheAccessAndTheKeyThatWereGiven) {
  const RegistrationRequest request(extent(Hmem::none), FI_REMOTE_WRITE, 77);
  const fi_mr_attr& attributes = request.attributes();
  ASSERT_EQ(attributes.iov_count, 1U);
  EXPECT_EQ(attributes.mr_iov->iov_base, memory_.data() + 100);
  EXPECT_EQ(attributes.mr_iov->iov_len, 200U);
  EXPECT_EQ(attributes.access, FI_REMOTE_WRITE);
  EXPECT_EQ(attributes.requested_key, 77U);
  EXPECT_EQ(attributes.offset, 0U);
  EXPECT_EQ(attributes.context, nullptr);
  EXPECT_EQ(attributes.iface, FI_HMEM_SYSTEM);
  EXPECT_EQ(attributes.device.reserved, 0U);
  EXPECT_EQ(request.flags(), 0U);
}

TEST_F(RegistrationRequests, NameTheDeviceThatTheMemoryIsOf) {
  const RegistrationRequest cuda(extent(Hmem::cuda, 3), FI_READ, 0);
  EXPECT_EQ(cuda.attributes().iface, FI_HMEM_CUDA);
  EXPECT_EQ(cuda.attributes().device.cuda, 3);
  const RegistrationRequest rocr(extent(Hmem::rocr, 3), FI_READ, 0);
  EXPECT_EQ(rocr.attributes().iface, FI_HMEM_ROCR);
  EXPECT_EQ(rocr.attributes().device.reserved, 0U);
  const RegistrationRequest neuron(extent(Hmem::neuron, 5), FI_READ, 0);
  EXPECT_EQ(neuron.attributes().iface, FI_HMEM_NEURON);
  EXPECT_EQ(neuron.attributes().device.neuron, 5);
  for (const auto* each : {&cuda, &rocr, &neuron}) {
    EXPECT_EQ(each->attributes().mr_iov->iov_base, memory_.data() + 100) << "by pointer";
    EXPECT_EQ(each->flags(), 0U);
  }
}

TEST_F(RegistrationRequests, GoByTheDmaBufferWhereLibfabricTakesSuch) {
  Extent memory = extent(Hmem::cuda, 1);
  auto buffer = std::make_shared<DmaBuf>();
  buffer->descriptor = core::Descriptor(dup(0));
  buffer->base = memory_.data();
  memory.dmabuf = buffer;
  const RegistrationRequest request(memory.part(20, 50), FI_REMOTE_READ, 9);
  EXPECT_EQ(request.attributes().iface, FI_HMEM_CUDA);
  EXPECT_EQ(request.attributes().device.cuda, 1);
  EXPECT_EQ(request.attributes().access, FI_REMOTE_READ);
#ifdef WEFT_HAVE_FI_MR_DMABUF
  ASSERT_EQ(request.flags(), FI_MR_DMABUF);
  ASSERT_EQ(request.attributes().iov_count, 1U);
  const fi_mr_dmabuf& dmabuf = *request.attributes().dmabuf;
  EXPECT_EQ(dmabuf.fd, buffer->descriptor.get());
  EXPECT_EQ(dmabuf.offset, 120U);
  EXPECT_EQ(dmabuf.len, 50U);
  EXPECT_EQ(dmabuf.base_addr, memory_.data());
#else
  EXPECT_FALSE(takes_dmabufs());
  EXPECT_EQ(request.flags(), 0U);
  EXPECT_EQ(request.attributes().mr_iov->iov_base, memory_.data() + 120);
  EXPECT_EQ(request.attributes().mr_iov->iov_len, 50U);
#endif
}

TEST(Extents, PartsKeepWhoseMemoryItIs) {
  std::array<std::byte, 100> memory{};
  const auto buffer = std::make_shared<DmaBuf>();
  const Extent all{memory.data(), memory.size(), Hmem::neuron, 4, buffer};
  const Extent part = all.part(10, 20);
  EXPECT_EQ(part.address, memory.data() + 10);
  EXPECT_EQ(part.length, 20U);
  EXPECT_EQ(part.hmem, Hmem::neuron);
  EXPECT_EQ(part.ordinal, 4);
  EXPECT_EQ(part.dmabuf, buffer);
  EXPECT_EQ(part.by_pointer().dmabuf, nullptr);
  EXPECT_EQ(part.by_pointer().address, part.address);
}

}  // namespace
}  // namespace weft::providers
