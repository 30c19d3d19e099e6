// A device that falls off the bus, in a process of its own: it does not come back.
#include <gtest/gtest.h>

#include <string>

#include "cuda_sim.hpp"
#include "pattern.hpp"
#include "process.hpp"

namespace weft::cuda_sim {
namespace {

constexpr std::size_t size = 10'000;

// Each line says what was expected and is not; none is good.
class Findings {
 public:
  void expect(const char* what, bool so) {
    if (!so) text_ += std::string(what) + "; ";
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

WEFT_ROLE(cuda_lost_device) {
  Findings found;
  {
    const CurrentContext first(0);
    const DeviceMemory memory(size);
    const PinnedMemory pinned(size);
    const OwnedStream stream;
    const OwnedEvent event;
    weft_cuda_sim_hold(stream);
    check(cuMemcpyAsync(pinned.address(), memory.address(), size, stream));
    check(cuEventRecord(event, stream));
    weft_cuda_sim_lose_device(0, unknown_error);
    found.expect("event", cuEventQuery(event) == unknown_error);
    found.expect("stream", cuStreamSynchronize(stream) == unknown_error);
    found.expect("synchronous copy",
                 cuMemcpy(memory.address(), pinned.address(), 1) == unknown_error);
    unsigned type = 0;
    found.expect("pointer", cuPointerGetAttribute(&type, pointer_memory_type, memory.address()) ==
                                unknown_error);
    Context again = nullptr;
    found.expect("retain", cuDevicePrimaryCtxRetain(&again, 0) == unknown_error);
    found.expect("create", cuCtxCreate_v2(&again, 0, 0) == unknown_error);
    found.expect("nothing copied", copies(Direction::device_to_host) == 0);
    // The thread's stack of contexts is no business of the device's.
    Context popped = nullptr;
    found.expect("pop", cuCtxPopCurrent_v2(&popped) == success && popped == first.handle());
    found.expect("push", cuCtxPushCurrent_v2(popped) == success);

    const CurrentContext second(1);
    const DeviceMemory healthy(size);
    healthy.fill(1);
    found.expect("the other device", bool(healthy.holds(1)));
  }
  found.expect("release", weft_cuda_sim_retained(0) == 0 && weft_cuda_sim_stack_depth() == 0);
  parent.say(found.text());
  return 0;
}

TEST(CudaSimLostDevice, EndsAllThatItHasAndTakesNothingNew) {
  test::Child child("cuda_lost_device");
  EXPECT_EQ(child.hear(), "");
  EXPECT_EQ(child.join(), 0);
}

}  // namespace
}  // namespace weft::cuda_sim
