// Memory of another process, the environment of a child, forks, and the end of a process.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <span>
#include <string>

#include "cuda_sim.hpp"
#include "pattern.hpp"
#include "process.hpp"

namespace weft::cuda_sim {
namespace {

using test::Child;

constexpr std::size_t size = 100'000;
constexpr std::uint64_t owners = 1, changed = 2;

std::string text_of(const IpcHandle& handle) {
  return test::to_hex(std::as_bytes(std::span(handle.bytes)));
}

IpcHandle handle_in(const std::string& text) {
  IpcHandle handle;
  const Blob bytes = test::from_hex(text);
  std::copy_n(reinterpret_cast<const char*>(bytes.data()), sizeof handle, handle.bytes);
  return handle;
}

/// The environment for children, until the end of a test.
class Environment {
 public:
  Environment(const char* name, const char* value) : name_(name) { setenv(name, value, 1); }
  ~Environment() { unsetenv(name_); }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

 private:
  const char* const name_;
};

/// Owns memory on the second device, and does as it is told, line by line.
WEFT_ROLE(cuda_owner) {
  const CurrentContext context(1);
  std::optional<DeviceMemory> memory(size);
  memory->fill(owners);
  IpcHandle handle{};
  check(cuIpcGetMemHandle(&handle, memory->address(4711)));
  parent.say(text_of(handle));
  const auto patience = [] { return Deadline::in(std::chrono::seconds(60)); };
  for (std::string line; (line = parent.hear(patience())) != "end";) {
    if (line == "holds what was changed") parent.say(memory->holds(changed) ? "yes" : "no");
    if (line == "free") {
      memory.reset();
      parent.say(std::to_string(counters().freed_while_open));
    }
  }
  return 0;
}

class CudaSimIpc : public testing::Test {
 protected:
  ~CudaSimIpc() override {
    if (!ended_) end();
  }
  void end() {
    ended_ = true;
    owner_.say("end");
    EXPECT_EQ(owner_.join(), 0);
  }
  Address open() const {
    Address address = 0;
    check(cuIpcOpenMemHandle_v2(&address, handle_, ipc_lazy_peer_access));
    return address;
  }
  Blob read(Address address) const {
    Blob bytes(size);
    check(cuMemcpyDtoH_v2(bytes.data(), address, size));
    return bytes;
  }

  Child owner_{"cuda_owner"};
  const IpcHandle handle_ = handle_in(owner_.hear());
  const CurrentContext context_;
  bool ended_ = false;
};

TEST_F(CudaSimIpc, OpensTheWholeMemoryOfAnotherProcess) {
  const Address address = open();
  EXPECT_TRUE(test::holds(read(address), owners)) << "from its beginning, wherever asked for";
  const Blob bytes = test::pattern(size, changed);
  check(cuMemcpyHtoD_v2(address, bytes.data(), size));
  EXPECT_EQ(owner_.ask("holds what was changed"), "yes");
  int device = -1;
  check(cuPointerGetAttribute(&device, pointer_device_ordinal, address));
  EXPECT_EQ(device, 1) << "where its owner has it";
  EXPECT_EQ(cuMemcpyDtoH_v2(Blob(size + 1).data(), address, size + 1), invalid_value);
  check(cuIpcCloseMemHandle(address));
  EXPECT_EQ(cuMemcpyHtoD_v2(address, bytes.data(), 1), invalid_value);
  EXPECT_EQ(cuIpcCloseMemHandle(address), invalid_value);
  EXPECT_EQ(owner_.ask("free"), "0");
}

TEST_F(CudaSimIpc, CountsHowOftenAContextHasOpenedIt) {
  const Address address = open();
  EXPECT_EQ(open(), address);
  check(cuIpcCloseMemHandle(address));
  EXPECT_TRUE(test::holds(read(address), owners));
  check(cuIpcCloseMemHandle(address));
  EXPECT_EQ(cuIpcCloseMemHandle(address), invalid_value);
}

TEST_F(CudaSimIpc, IsNoMemoryOfOnesOwn) {
  const Address address = open();
  IpcHandle again{};
  EXPECT_EQ(cuMemFree_v2(address), invalid_value);
  EXPECT_EQ(cuIpcGetMemHandle(&again, address), invalid_value);
  EXPECT_EQ(cuIpcCloseMemHandle(address + 1), invalid_value);
  int capable = -1;
  check(cuPointerGetAttribute(&capable, pointer_legacy_ipc_capable, address));
  EXPECT_EQ(capable, 0);
  check(cuIpcCloseMemHandle(address));
}

TEST_F(CudaSimIpc, IsNotForTheOwningProcess) {
  const DeviceMemory memory(size);
  IpcHandle own{};
  check(cuIpcGetMemHandle(&own, memory.address()));
  Address address = 0;
  EXPECT_EQ(cuIpcOpenMemHandle_v2(&address, own, ipc_lazy_peer_access), invalid_context);
  EXPECT_EQ(cuIpcOpenMemHandle_v2(&address, {}, ipc_lazy_peer_access), invalid_value);
  const PinnedMemory pinned(size);
  EXPECT_EQ(cuIpcGetMemHandle(&own, pinned.address()), invalid_value);
}

TEST_F(CudaSimIpc, ShowsThatTheOwnerFreedWhatIsOpen) {
  const Address address = open();
  EXPECT_EQ(owner_.ask("free"), "1");
  // Undefined in the real driver; here it is a fault, and breaks the context.
  Blob bytes(size);
  EXPECT_EQ(cuMemcpyDtoH_v2(bytes.data(), address, size), illegal_address);
}

TEST_F(CudaSimIpc, IsNotClosedUnderACopy) {
  const Address address = open();
  const PinnedMemory pinned(size);
  const OwnedStream stream;
  weft_cuda_sim_hold(stream);
  check(cuMemcpyDtoHAsync_v2(pinned.data(), address, size, stream));
  check(cuIpcCloseMemHandle(address));
  weft_cuda_sim_release(stream);
  EXPECT_EQ(cuStreamSynchronize(stream), illegal_address);
}

TEST_F(CudaSimIpc, OpensNothingThatIsFreed) {
  EXPECT_EQ(owner_.ask("free"), "0");
  Address address = 0;
  EXPECT_EQ(cuIpcOpenMemHandle_v2(&address, handle_, ipc_lazy_peer_access), invalid_value);
}

TEST_F(CudaSimIpc, OpensNothingOfAProcessThatHasEnded) {
  end();
  Address address = 0;
  EXPECT_EQ(cuIpcOpenMemHandle_v2(&address, handle_, ipc_lazy_peer_access), invalid_value);
}

/// Does one thing, and says what came of it.
WEFT_ROLE(cuda_environment) {
  const CurrentContext context;
  const DeviceMemory memory(8192);
  const std::string& what = arguments.at(0);
  if (what == "ipc") {
    IpcHandle handle{};
    int capable = -1;
    check(cuPointerGetAttribute(&capable, pointer_legacy_ipc_capable, memory.address()));
    parent.say(std::to_string(cuIpcGetMemHandle(&handle, memory.address())) + " " +
               std::to_string(capable));
  } else if (what == "devices") {
    int count = 0, can = -1, gpudirect = -1;
    char pci[32] = {};
    check(cuDeviceGetCount(&count));
    check(cuDeviceGetPCIBusId(pci, sizeof pci, 1));
    check(cuDeviceCanAccessPeer(&can, 0, 1));
    check(cuDeviceGetAttribute(&gpudirect, device_gpudirect_supported, 0));
    parent.say(std::to_string(count) + " " + pci + " " + std::to_string(can) +
               std::to_string(gpudirect));
  } else if (what == "failure") {
    Stream stream = nullptr;
    const Status first = cuStreamCreate(&stream, 0), second = cuStreamCreate(&stream, 0);
    parent.say(std::to_string(first) + " " + std::to_string(second));
  }
  return 0;
}

std::string said_by_child(const std::string& what) {
  Child child("cuda_environment", {what});
  std::string said = child.hear();
  EXPECT_EQ(child.join(), 0);
  return said;
}

TEST(CudaSimEnvironment, RefusesIpc) {
  EXPECT_EQ(said_by_child("ipc"), "0 1");
  const Environment refused("WEFT_CUDA_SIM_IPC", "0");
  EXPECT_EQ(said_by_child("ipc"), std::to_string(not_supported) + " 0");
}

TEST(CudaSimEnvironment, DescribesTheDevices) {
  EXPECT_EQ(said_by_child("devices"), "2 0000:64:00.0 10");
  const Environment count("WEFT_CUDA_SIM_GPUS", "3");
  const Environment pci("WEFT_CUDA_SIM_PCI", "0000:10:1c.0,0001:20:1c.0");
  const Environment peer("WEFT_CUDA_SIM_PEER", "0");
  const Environment gpudirect("WEFT_CUDA_SIM_GPUDIRECT", "1");
  EXPECT_EQ(said_by_child("devices"), "3 0001:20:1c.0 01");
}

TEST(CudaSimEnvironment, PlansFailures) {
  const Environment planned("WEFT_CUDA_SIM_FAIL", "cuStreamCreate:2:2,cuEventCreate:1:999");
  EXPECT_EQ(said_by_child("failure"), "0 2");
}

WEFT_ROLE(cuda_no_device) {
  parent.say(std::to_string(cuInit(0)));
  return 0;
}

TEST(CudaSimEnvironment, MayHaveNoDevice) {
  const Environment none("WEFT_CUDA_SIM_GPUS", "0");
  Child child("cuda_no_device");
  EXPECT_EQ(child.hear(), std::to_string(no_device));
  EXPECT_EQ(child.join(), 0);
}

/// Gives out a dmabuf, whose bytes are those of the memory.
WEFT_ROLE(cuda_dmabuf) {
  const CurrentContext context;
  const DeviceMemory memory(8192);
  memory.fill(owners);
  int descriptor = -1, supported = 0;
  check(cuDeviceGetAttribute(&supported, device_dmabuf_supported, 0));
  check(cuMemGetHandleForAddressRange(&descriptor, memory.address(), 8192, handle_dmabuf, 0));
  const bool unaligned = cuMemGetHandleForAddressRange(&descriptor, memory.address(1), 4096,
                                                       handle_dmabuf, 0) == invalid_value;
  void* const bytes = mmap(nullptr, 8192, PROT_READ, MAP_SHARED, descriptor, 0);
  const Blob copy(static_cast<std::byte*>(bytes), static_cast<std::byte*>(bytes) + 8192);
  close(descriptor);
  return supported == 1 && unaligned && test::holds(copy, owners) ? 0 : 1;
}

TEST(CudaSimEnvironment, GivesDmabufs) {
  const Environment given("WEFT_CUDA_SIM_DMABUF", "1");
  EXPECT_EQ(Child("cuda_dmabuf").join(), 0);
}

/// Of a part that begins and ends within pages: the file's position tells where.
WEFT_ROLE(cuda_part_of_dmabuf) {
  const CurrentContext context;
  const DeviceMemory memory(12'000);
  memory.fill(owners);
  int descriptor = -1;
  check(cuMemGetHandleForAddressRange(&descriptor, memory.address(4096), 8192, handle_dmabuf, 0));
  const Status beyond =
      cuMemGetHandleForAddressRange(&descriptor, memory.address(4096), 12'288, handle_dmabuf, 0);
  const off_t begin = lseek(descriptor, 0, SEEK_CUR);
  void* const bytes = mmap(nullptr, 7904, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, begin);
  auto* const data = static_cast<std::byte*>(bytes);
  const bool there = test::holds(Blob(data, data + 7904), owners, 4096);
  data[7] = ~data[7];
  const bool writes = memory.read(4096 + 7, 1)[0] == data[7];
  close(descriptor);
  return beyond == invalid_value && there && writes ? 0 : 1;
}

TEST(CudaSimEnvironment, GivesDmabufsOfParts) {
  const Environment given("WEFT_CUDA_SIM_DMABUF", "1");
  EXPECT_EQ(Child("cuda_part_of_dmabuf").join(), 0);
}

WEFT_ROLE(cuda_flushing) {
  int ordering = -1, options = -1;
  const CurrentContext context(0);
  check(cuFlushGPUDirectRDMAWrites(flush_current_context, flush_to_owner));
  const bool flushed = counters().flushes == 1;
  check(cuDeviceGetAttribute(&ordering, device_writes_ordering, 1));
  check(cuDeviceGetAttribute(&options, device_flush_options, 1));
  const CurrentContext other(1);
  const Status refused = cuFlushGPUDirectRDMAWrites(flush_current_context, flush_to_owner);
  return flushed && ordering == 100 && options == 0 && refused == not_supported ? 0 : 1;
}

TEST(CudaSimEnvironment, SaysHowGpusOrderWhatNicsWrite) {
  const Environment ordering("WEFT_CUDA_SIM_ORDERING", "0,100");
  const Environment flush("WEFT_CUDA_SIM_FLUSH", "1,0");
  EXPECT_EQ(Child("cuda_flushing").join(), 0);
}

WEFT_ROLE(cuda_late) {
  const CurrentContext context;
  const DeviceMemory first(size), second(size);
  const PinnedMemory pinned(size);
  const OwnedStream a, b;
  // With delays one stream overtakes the other, sooner or later; without, as good as never in the
  // beginning: so the streams are asked until they do.
  for (int i = 0; i < 100'000; ++i) {
    weft_cuda_sim_clear();
    check(cuMemcpyAsync(first.address(), pinned.address(), size, a));
    check(cuMemcpyAsync(second.address(), pinned.address(), size, b));
    check(cuCtxSynchronize());
    if (sequence_of(Operation::copy, Phase::ended, a) >
        sequence_of(Operation::copy, Phase::ended, b))
      return 0;
  }
  return 1;
}

TEST(CudaSimEnvironment, MakesWorkLate) {
  const Environment seed("WEFT_CUDA_SIM_SEED", "5");
  const Environment delay("WEFT_CUDA_SIM_DELAY_US", "500");
  EXPECT_EQ(Child("cuda_late").join(), 0);
}

WEFT_ROLE(cuda_uninitialised) {
  int count = 0;
  unsigned type = 0;
  Context context = nullptr;
  const bool refused = cuDeviceGetCount(&count) == not_initialized &&
                       cuDevicePrimaryCtxRetain(&context, 0) == not_initialized &&
                       cuPointerGetAttribute(&type, pointer_memory_type, 1) == not_initialized;
  int version = 0;
  const bool known = cuDriverGetVersion(&version) == success && version >= 11070;
  return refused && known && cuInit(0) == success && cuDeviceGetCount(&count) == success ? 0 : 1;
}

TEST(CudaSimProcess, HasToInitialiseTheDriver) {
  EXPECT_EQ(Child("cuda_uninitialised").join(), 0);
}

TEST(CudaSimProcess, IsOutOfTheDriverWhenItWasForkedOff) {
  const CurrentContext context;
  const DeviceMemory memory(size);
  const OwnedStream stream;
  const pid_t child = fork();
  if (child == 0) {
    int count = 0;
    const bool refused =
        cuInit(0) == not_initialized && cuDeviceGetCount(&count) == not_initialized;
    _exit(refused ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

/// Ends with work held, streams waiting and copies under way: by returning, by `exit`, or by a
/// signal's handler while it waits in the driver.
WEFT_ROLE(cuda_exit) {
  check(cuInit(0));
  Context context = nullptr;
  Address memory = 0, word = 0;
  void* pinned = nullptr;
  Stream held = nullptr, waiting = nullptr, busy = nullptr, called = nullptr;
  check(cuDevicePrimaryCtxRetain(&context, 0));
  check(cuCtxPushCurrent_v2(context));
  check(cuMemAlloc_v2(&memory, size));
  check(cuMemAlloc_v2(&word, 8));
  check(cuMemAllocHost_v2(&pinned, size));
  for (Stream* each : {&held, &waiting, &busy, &called})
    check(cuStreamCreate(each, stream_non_blocking));
  weft_cuda_sim_hold(held);
  check(cuMemcpyHtoDAsync_v2(memory, pinned, size, held));
  check(cuStreamWaitValue64_v2(waiting, word, 4711, wait_equal));
  check(cuLaunchHostFunc(
      called, [](void*) { pause(); }, nullptr));
  for (int i = 0; i < 1000; ++i) check(cuMemcpyHtoDAsync_v2(memory, pinned, size, busy));
  if (arguments.at(0) == "exit") std::exit(0);
  if (arguments.at(0) == "signal") {
    signal(SIGTERM, [](int) { std::exit(0); });
    parent.say("waiting");
    cuStreamSynchronize(held);
    return 1;
  }
  return 0;
}

TEST(CudaSimProcess, EndsWithWorkHeldAndUnderWay) {
  EXPECT_EQ(Child("cuda_exit", {"exit"}).join(), 0);
  EXPECT_EQ(Child("cuda_exit", {"return"}).join(), 0);
}

// As libraries below libfabric do.
TEST(CudaSimProcess, EndsFromTheHandlerOfASignal) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "the thread sanitizer reports every exit(3) from a handler";
#endif
  Child waiting("cuda_exit", {"signal"});
  EXPECT_EQ(waiting.hear(), "waiting");
  waiting.signal(SIGTERM);
  EXPECT_EQ(waiting.join(), 0);
}

}  // namespace
}  // namespace weft::cuda_sim
