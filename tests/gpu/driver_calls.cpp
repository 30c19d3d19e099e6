// The driver's functions, found when they are first called: a test needs no CUDA to be built, and
// the loader decides whether it is NVIDIA's driver or the stand-in that it runs over.
// They throw std::runtime_error where there is none.
#include <dlfcn.h>

#include <stdexcept>
#include <string>

#include "interface/application.hpp"

namespace weft::cuda_sim {
namespace {

template <typename Function>
Function entry_point(const char* symbol) {
  static void* const driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  void* const found = driver != nullptr ? dlsym(driver, symbol) : nullptr;
  if (found == nullptr)
    throw std::runtime_error(std::string("there is no CUDA driver, or it lacks ") + symbol);
  return reinterpret_cast<Function>(found);
}

}  // namespace

// name, what it takes, and how that is handed on
#define WEFT_CALLS(X)                                                                            \
  X(cuInit, (unsigned flags), (flags))                                                           \
  X(cuDriverGetVersion, (int* version), (version))                                               \
  X(cuGetErrorName, (Status status, const char** name), (status, name))                          \
  X(cuDeviceGetCount, (int* count), (count))                                                     \
  X(cuDeviceGetName, (char* text, int size, Ordinal device), (text, size, device))               \
  X(cuDeviceTotalMem_v2, (std::size_t * bytes, Ordinal device), (bytes, device))                 \
  X(cuDeviceCanAccessPeer, (int* can, Ordinal device, Ordinal peer), (can, device, peer))        \
  X(cuDevicePrimaryCtxRetain, (Context * context, Ordinal device), (context, device))            \
  X(cuDevicePrimaryCtxRelease_v2, (Ordinal device), (device))                                    \
  X(cuCtxPushCurrent_v2, (Context context), (context))                                           \
  X(cuCtxPopCurrent_v2, (Context * context), (context))                                          \
  X(cuMemAlloc_v2, (Address * address, std::size_t bytes), (address, bytes))                     \
  X(cuMemAllocManaged, (Address * address, std::size_t bytes, unsigned flags),                   \
    (address, bytes, flags))                                                                     \
  X(cuMemFree_v2, (Address address), (address))                                                  \
  X(cuMemAllocHost_v2, (void** memory, std::size_t bytes), (memory, bytes))                      \
  X(cuMemFreeHost, (void* memory), (memory))                                                     \
  X(cuMemGetHandleForAddressRange,                                                               \
    (void* handle, Address address, std::size_t bytes, int type, unsigned long long flags),      \
    (handle, address, bytes, type, flags))                                                       \
  X(cuMemcpyHtoD_v2, (Address target, const void* source, std::size_t bytes),                    \
    (target, source, bytes))                                                                     \
  X(cuMemcpyDtoH_v2, (void* target, Address source, std::size_t bytes), (target, source, bytes)) \
  X(cuMemcpyAsync, (Address target, Address source, std::size_t bytes, Stream stream),           \
    (target, source, bytes, stream))                                                             \
  X(cuStreamCreate, (Stream * stream, unsigned flags), (stream, flags))                          \
  X(cuStreamDestroy_v2, (Stream stream), (stream))                                               \
  X(cuStreamBeginCapture_v2, (Stream stream, int mode), (stream, mode))                          \
  X(cuStreamEndCapture, (Stream stream, Graph * graph), (stream, graph))                         \
  X(cuGraphDestroy, (Graph graph), (graph))                                                      \
  X(cuStreamSynchronize, (Stream stream), (stream))                                              \
  X(cuEventCreate, (Event * event, unsigned flags), (event, flags))                              \
  X(cuEventDestroy_v2, (Event event), (event))                                                   \
  X(cuEventRecord, (Event event, Stream stream), (event, stream))

extern "C" {
#define WEFT_HAND_ON(name, parameters, arguments)                 \
  Status name parameters {                                        \
    static const auto real = entry_point<decltype(&name)>(#name); \
    return real arguments;                                        \
  }
WEFT_CALLS(WEFT_HAND_ON)
#undef WEFT_HAND_ON
}

}  // namespace weft::cuda_sim
