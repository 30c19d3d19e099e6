// The CUDA driver API as a program calls it, declared with the library's types: what the stand-in
// exports. Numbers and signatures are those of cuda.h (CUDA 13).
#pragma once

#include <cstddef>
#include <cstdint>

#include "interface/status.hpp"

namespace weft::cuda_sim {

struct Uuid {  // CUuuid
  char bytes[16];
};

inline const Stream stream_legacy = reinterpret_cast<Stream>(1);      // CU_STREAM_LEGACY
inline const Stream stream_per_thread = reinterpret_cast<Stream>(2);  // CU_STREAM_PER_THREAD
inline constexpr unsigned attach_global = 1;                          // CU_MEM_ATTACH_GLOBAL

// CUpointer_attribute
inline constexpr int pointer_device_pointer = 3;
inline constexpr int pointer_host_pointer = 4;
inline constexpr int pointer_buffer_id = 7;
inline constexpr int pointer_mapped = 13;

// CUdevice_attribute
inline constexpr int device_integrated = 18;
inline constexpr int device_pci_bus = 33;
inline constexpr int device_pci_slot = 34;
inline constexpr int device_unified_addressing = 41;
inline constexpr int device_pci_domain = 50;
inline constexpr int device_managed_memory = 83;

// CUstreamWaitValue_flags
inline constexpr unsigned wait_greater_or_equal = 0;
inline constexpr unsigned wait_equal = 1;
inline constexpr unsigned wait_and = 2;
inline constexpr unsigned wait_nor = 3;

// CUstreamCaptureMode
inline constexpr int capture_global = 0;
inline constexpr int capture_within_thread = 1;
inline constexpr int capture_relaxed = 2;

struct GraphObject {};
using Graph = GraphObject*;  // CUgraph

extern "C" {
Status cuInit(unsigned flags);
Status cuDriverGetVersion(int* version);
Status cuGetErrorName(Status status, const char** name);
Status cuGetErrorString(Status status, const char** text);
Status cuGetProcAddress_v2(const char* symbol, void** address, int version, std::uint64_t flags,
                           int* found);

Status cuDeviceGetCount(int* count);
Status cuDeviceGet(Ordinal* device, int ordinal);
Status cuDeviceGetAttribute(int* value, int attribute, Ordinal device);
Status cuDeviceGetPCIBusId(char* text, int size, Ordinal device);
Status cuDeviceGetName(char* text, int size, Ordinal device);
Status cuDeviceGetUuid(Uuid* uuid, Ordinal device);
Status cuDeviceTotalMem_v2(std::size_t* bytes, Ordinal device);
Status cuDeviceCanAccessPeer(int* can, Ordinal device, Ordinal peer);

Status cuDevicePrimaryCtxRetain(Context* context, Ordinal device);
Status cuDevicePrimaryCtxRelease_v2(Ordinal device);
Status cuCtxCreate_v2(Context* context, unsigned flags, Ordinal device);
Status cuCtxDestroy_v2(Context context);
Status cuCtxPushCurrent_v2(Context context);
Status cuCtxPopCurrent_v2(Context* context);
Status cuCtxGetCurrent(Context* context);
Status cuCtxSetCurrent(Context context);
Status cuCtxGetDevice(Ordinal* device);
Status cuCtxSynchronize();
Status cuCtxGetFlags(unsigned* flags);
Status cuCtxSetFlags(unsigned flags);
Status cuCtxEnablePeerAccess(Context peer, unsigned flags);

Status cuMemAlloc_v2(Address* address, std::size_t bytes);
Status cuMemAllocManaged(Address* address, std::size_t bytes, unsigned flags);
Status cuMemFree_v2(Address address);
Status cuMemAllocHost_v2(void** memory, std::size_t bytes);
Status cuMemHostAlloc(void** memory, std::size_t bytes, unsigned flags);
Status cuMemFreeHost(void* memory);
Status cuMemHostRegister_v2(void* memory, std::size_t bytes, unsigned flags);
Status cuMemHostUnregister(void* memory);
Status cuMemGetInfo_v2(std::size_t* free, std::size_t* total);
Status cuMemGetAddressRange_v2(Address* base, std::size_t* bytes, Address address);
Status cuMemGetHandleForAddressRange(void* handle, Address address, std::size_t bytes, int type,
                                     unsigned long long flags);
Status cuMemRetainAllocationHandle(MemoryHandle* handle, void* address);
Status cuMemRelease(MemoryHandle handle);
Status cuFlushGPUDirectRDMAWrites(int target, int scope);
Status cuPointerGetAttribute(void* value, int attribute, Address address);
Status cuPointerGetAttributes(unsigned count, int* attributes, void** values, Address address);
Status cuPointerSetAttribute(const void* value, int attribute, Address address);
Status cuIpcGetMemHandle(IpcHandle* handle, Address address);
Status cuIpcOpenMemHandle_v2(Address* address, IpcHandle handle, unsigned flags);
Status cuIpcCloseMemHandle(Address address);

Status cuMemcpy(Address target, Address source, std::size_t bytes);
Status cuMemcpyHtoD_v2(Address target, const void* source, std::size_t bytes);
Status cuMemcpyDtoH_v2(void* target, Address source, std::size_t bytes);
Status cuMemcpyAsync(Address target, Address source, std::size_t bytes, Stream stream);
Status cuMemcpyHtoDAsync_v2(Address target, const void* source, std::size_t bytes, Stream stream);
Status cuMemcpyDtoHAsync_v2(void* target, Address source, std::size_t bytes, Stream stream);
Status cuMemcpyDtoDAsync_v2(Address target, Address source, std::size_t bytes, Stream stream);
Status cuMemcpyPeerAsync(Address target, Context target_context, Address source,
                         Context source_context, std::size_t bytes, Stream stream);
Status cuMemsetD8_v2(Address target, unsigned char value, std::size_t bytes);
Status cuMemsetD8Async(Address target, unsigned char value, std::size_t bytes, Stream stream);

Status cuStreamCreate(Stream* stream, unsigned flags);
Status cuStreamCreateWithPriority(Stream* stream, unsigned flags, int priority);
Status cuStreamDestroy_v2(Stream stream);
Status cuStreamQuery(Stream stream);
Status cuStreamSynchronize(Stream stream);
Status cuStreamBeginCapture_v2(Stream stream, int mode);
Status cuStreamEndCapture(Stream stream, Graph* graph);
Status cuStreamIsCapturing(Stream stream, int* capturing);
Status cuThreadExchangeStreamCaptureMode(int* mode);
Status cuGraphDestroy(Graph graph);
Status cuStreamWaitEvent(Stream stream, Event event, unsigned flags);
Status cuStreamWaitValue64_v2(Stream stream, Address address, std::uint64_t value, unsigned flags);
Status cuStreamWriteValue64_v2(Stream stream, Address address, std::uint64_t value, unsigned flags);
Status cuLaunchHostFunc(Stream stream, HostFunction function, void* argument);

Status cuEventCreate(Event* event, unsigned flags);
Status cuEventDestroy_v2(Event event);
Status cuEventRecord(Event event, Stream stream);
Status cuEventQuery(Event event);
Status cuEventSynchronize(Event event);
}

}  // namespace weft::cuda_sim
