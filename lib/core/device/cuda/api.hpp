// The part of the CUDA driver API that Weft uses, declared anew: no CUDA header is needed to build,
// and none shows where the library runs. Numbers and signatures are those of cuda.h (CUDA 11.7 to
// 13), against which tests/unit/cuda_api_test.cpp compares them where there is one.
#pragma once

#include <cstddef>
#include <cstdint>

namespace weft::core::cuda {

using Status = int;  // CUresult
inline constexpr Status success = 0;
inline constexpr Status invalid_value = 1;
inline constexpr Status out_of_memory = 2;
inline constexpr Status not_initialized = 3;
inline constexpr Status no_device = 100;
inline constexpr Status invalid_context = 201;
inline constexpr Status peer_access_already_enabled = 704;
inline constexpr Status host_memory_already_registered = 712;
inline constexpr Status not_ready = 600;
inline constexpr Status not_supported = 801;

using Ordinal = int;                 // CUdevice
using Address = unsigned long long;  // CUdeviceptr
struct ContextObject;
struct StreamObject;
struct EventObject;
using Context = ContextObject*;  // CUcontext
using Stream = StreamObject*;    // CUstream
using Event = EventObject*;      // CUevent
using HostFunction = void (*)(void*);
using MemoryHandle = unsigned long long;  // CUmemGenericAllocationHandle

struct IpcHandle {  // CUipcMemHandle
  char bytes[64];
};

// CUpointer_attribute
inline constexpr int pointer_context = 1;
inline constexpr int pointer_memory_type = 2;
inline constexpr int pointer_sync_memops = 6;
inline constexpr int pointer_is_managed = 8;
inline constexpr int pointer_device_ordinal = 9;
inline constexpr int pointer_legacy_ipc_capable = 10;
inline constexpr int pointer_range_start = 11;
inline constexpr int pointer_range_size = 12;
inline constexpr int pointer_gpudirect_capable = 15;
inline constexpr int pointer_mapping_size = 18;
inline constexpr int pointer_mapping_start = 19;

// CUmemorytype
inline constexpr unsigned memory_host = 1;
inline constexpr unsigned memory_device = 2;

// CUdevice_attribute
inline constexpr int device_gpudirect_supported = 116;
inline constexpr int device_flush_options = 117;
inline constexpr int device_writes_ordering = 118;
inline constexpr int device_dmabuf_supported = 124;

inline constexpr int flush_option_host = 1;  // CU_FLUSH_GPU_DIRECT_RDMA_WRITES_OPTION_HOST
inline constexpr int ordering_owner = 100;   // CU_GPU_DIRECT_RDMA_WRITES_ORDERING_OWNER
inline constexpr int flush_current_context =
    0;                                      // CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TARGET_CURRENT_CTX
inline constexpr int flush_to_owner = 100;  // CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_OWNER

inline constexpr unsigned context_sync_memops = 0x80;    // CU_CTX_SYNC_MEMOPS
inline constexpr unsigned host_register_portable = 1;    // CU_MEMHOSTREGISTER_PORTABLE
inline constexpr unsigned host_register_device_map = 2;  // CU_MEMHOSTREGISTER_DEVICEMAP
inline constexpr unsigned stream_wait_value_geq = 0;     // CU_STREAM_WAIT_VALUE_GEQ
inline constexpr unsigned stream_non_blocking = 1;       // CU_STREAM_NON_BLOCKING
inline constexpr unsigned event_disable_timing = 2;      // CU_EVENT_DISABLE_TIMING
inline constexpr int handle_dmabuf = 1;                  // CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD
inline constexpr int capture_mode_relaxed = 2;           // CU_STREAM_CAPTURE_MODE_RELAXED
inline constexpr unsigned ipc_lazy_peer_access = 1;      // CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS

// Each entry point as X(name here, symbol in the driver, result and parameters).
#define WEFT_CUDA_ENTRY_POINTS(X)                                                           \
  X(init, "cuInit", Status(unsigned))                                                       \
  X(driver_version, "cuDriverGetVersion", Status(int*))                                     \
  X(error_name, "cuGetErrorName", Status(Status, const char**))                             \
  X(error_text, "cuGetErrorString", Status(Status, const char**))                           \
  X(device_count, "cuDeviceGetCount", Status(int*))                                         \
  X(device_get, "cuDeviceGet", Status(Ordinal*, int))                                       \
  X(device_attribute, "cuDeviceGetAttribute", Status(int*, int, Ordinal))                   \
  X(device_pci, "cuDeviceGetPCIBusId", Status(char*, int, Ordinal))                         \
  X(primary_retain, "cuDevicePrimaryCtxRetain", Status(Context*, Ordinal))                  \
  X(primary_release, "cuDevicePrimaryCtxRelease_v2", Status(Ordinal))                       \
  X(context_push, "cuCtxPushCurrent_v2", Status(Context))                                   \
  X(context_pop, "cuCtxPopCurrent_v2", Status(Context*))                                    \
  X(context_flags, "cuCtxGetFlags", Status(unsigned*))                                      \
  X(pointer_attribute, "cuPointerGetAttribute", Status(void*, int, Address))                \
  X(set_pointer_attribute, "cuPointerSetAttribute", Status(const void*, int, Address))      \
  X(copy_async, "cuMemcpyAsync", Status(Address, Address, std::size_t, Stream))             \
  X(host_register, "cuMemHostRegister_v2", Status(void*, std::size_t, unsigned))            \
  X(host_unregister, "cuMemHostUnregister", Status(void*))                                  \
  X(host_device_pointer, "cuMemHostGetDevicePointer_v2", Status(Address*, void*, unsigned)) \
  X(exchange_capture_mode, "cuThreadExchangeStreamCaptureMode", Status(int*))               \
  X(stream_is_capturing, "cuStreamIsCapturing", Status(Stream, int*))                       \
  X(stream_context, "cuStreamGetCtx", Status(Stream, Context*))                             \
  X(launch_host_function, "cuLaunchHostFunc", Status(Stream, HostFunction, void*))          \
  X(stream_create, "cuStreamCreate", Status(Stream*, unsigned))                             \
  X(stream_destroy, "cuStreamDestroy_v2", Status(Stream))                                   \
  X(stream_synchronize, "cuStreamSynchronize", Status(Stream))                              \
  X(stream_wait_event, "cuStreamWaitEvent", Status(Stream, Event, unsigned))                \
  X(event_create, "cuEventCreate", Status(Event*, unsigned))                                \
  X(event_destroy, "cuEventDestroy_v2", Status(Event))                                      \
  X(event_record, "cuEventRecord", Status(Event, Stream))                                   \
  X(event_query, "cuEventQuery", Status(Event))                                             \
  X(ipc_get_handle, "cuIpcGetMemHandle", Status(IpcHandle*, Address))                       \
  X(ipc_open_handle, "cuIpcOpenMemHandle_v2", Status(Address*, IpcHandle, unsigned))        \
  X(ipc_close_handle, "cuIpcCloseMemHandle", Status(Address))

// Functions that older drivers lack (before 11.0, 11.3, 11.7, and 12.1).
#define WEFT_CUDA_LATER_ENTRY_POINTS(X)                                                            \
  X(flush_writes, "cuFlushGPUDirectRDMAWrites", Status(int, int))                                  \
  X(stream_wait_value, "cuStreamWaitValue64_v2", Status(Stream, Address, std::uint64_t, unsigned)) \
  X(range_handle, "cuMemGetHandleForAddressRange",                                                 \
    Status(void*, Address, std::size_t, int, unsigned long long))                                  \
  X(set_context_flags, "cuCtxSetFlags", Status(unsigned))                                          \
  X(retain_memory_handle, "cuMemRetainAllocationHandle", Status(MemoryHandle*, void*))             \
  X(release_memory_handle, "cuMemRelease", Status(MemoryHandle))

}  // namespace weft::core::cuda
