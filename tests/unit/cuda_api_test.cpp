// What api.hpp declares anew is what NVIDIA's header says, where there is one to compare with.
#include <gtest/gtest.h>

#include <type_traits>

#include "device/cuda/api.hpp"

#if __has_include(<cuda.h>)
#include <cuda.h>

namespace weft::core::cuda {
namespace {

#define WEFT_SAME(ours, theirs) static_assert(static_cast<long long>(ours) == (theirs))
WEFT_SAME(success, CUDA_SUCCESS);
WEFT_SAME(invalid_value, CUDA_ERROR_INVALID_VALUE);
WEFT_SAME(out_of_memory, CUDA_ERROR_OUT_OF_MEMORY);
WEFT_SAME(not_initialized, CUDA_ERROR_NOT_INITIALIZED);
WEFT_SAME(no_device, CUDA_ERROR_NO_DEVICE);
WEFT_SAME(invalid_context, CUDA_ERROR_INVALID_CONTEXT);
WEFT_SAME(peer_access_already_enabled, CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
WEFT_SAME(host_memory_already_registered, CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
WEFT_SAME(not_ready, CUDA_ERROR_NOT_READY);
WEFT_SAME(not_supported, CUDA_ERROR_NOT_SUPPORTED);
WEFT_SAME(pointer_context, CU_POINTER_ATTRIBUTE_CONTEXT);
WEFT_SAME(pointer_memory_type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE);
WEFT_SAME(pointer_sync_memops, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS);
WEFT_SAME(pointer_is_managed, CU_POINTER_ATTRIBUTE_IS_MANAGED);
WEFT_SAME(pointer_device_ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL);
WEFT_SAME(pointer_legacy_ipc_capable, CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE);
WEFT_SAME(pointer_range_start, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR);
WEFT_SAME(pointer_range_size, CU_POINTER_ATTRIBUTE_RANGE_SIZE);
WEFT_SAME(pointer_gpudirect_capable, CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE);
WEFT_SAME(pointer_mapping_size, CU_POINTER_ATTRIBUTE_MAPPING_SIZE);
WEFT_SAME(pointer_mapping_start, CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR);
WEFT_SAME(memory_host, CU_MEMORYTYPE_HOST);
WEFT_SAME(memory_device, CU_MEMORYTYPE_DEVICE);
WEFT_SAME(device_gpudirect_supported, CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED);
WEFT_SAME(device_flush_options, CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS);
WEFT_SAME(device_writes_ordering, CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WRITES_ORDERING);
WEFT_SAME(flush_option_host, CU_FLUSH_GPU_DIRECT_RDMA_WRITES_OPTION_HOST);
WEFT_SAME(ordering_owner, CU_GPU_DIRECT_RDMA_WRITES_ORDERING_OWNER);
WEFT_SAME(flush_current_context, CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TARGET_CURRENT_CTX);
WEFT_SAME(flush_to_owner, CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_OWNER);
WEFT_SAME(device_dmabuf_supported, CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED);
WEFT_SAME(context_sync_memops, CU_CTX_SYNC_MEMOPS);
WEFT_SAME(host_register_portable, CU_MEMHOSTREGISTER_PORTABLE);
WEFT_SAME(host_register_device_map, CU_MEMHOSTREGISTER_DEVICEMAP);
WEFT_SAME(stream_wait_value_geq, CU_STREAM_WAIT_VALUE_GEQ);
WEFT_SAME(stream_non_blocking, CU_STREAM_NON_BLOCKING);
WEFT_SAME(event_disable_timing, CU_EVENT_DISABLE_TIMING);
WEFT_SAME(handle_dmabuf, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD);
WEFT_SAME(capture_mode_relaxed, CU_STREAM_CAPTURE_MODE_RELAXED);
WEFT_SAME(ipc_lazy_peer_access, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
#undef WEFT_SAME

static_assert(sizeof(IpcHandle) == sizeof(CUipcMemHandle));
static_assert(alignof(IpcHandle) == alignof(CUipcMemHandle));
static_assert(std::is_same_v<Address, CUdeviceptr>);
static_assert(std::is_same_v<Ordinal, CUdevice>);
static_assert(std::is_same_v<MemoryHandle, CUmemGenericAllocationHandle>);

/// Whether values of the two types travel in the same way.
template <typename Ours, typename Theirs>
constexpr bool alike =
    sizeof(Ours) == sizeof(Theirs) && std::is_pointer_v<Ours> ==
                                          std::is_pointer_v<Theirs>&& std::is_class_v<Ours> ==
                                          std::is_class_v<Theirs>;

template <typename Ours, typename Theirs>
constexpr bool same_call = false;
template <typename Result, typename... Ours, typename... Theirs>
constexpr bool same_call<Result(Ours...), CUresult(Theirs...)> = [] {
  if constexpr (sizeof...(Ours) == sizeof...(Theirs))
    return alike<Result, CUresult> && (alike<Ours, Theirs> && ...);
  return false;
}();

/// The signatures of api.hpp by their names there.
struct Signatures {
#define WEFT_SIGNATURE(name, symbol, ...) using name = __VA_ARGS__;
  WEFT_CUDA_ENTRY_POINTS(WEFT_SIGNATURE)
  WEFT_CUDA_LATER_ENTRY_POINTS(WEFT_SIGNATURE)
#undef WEFT_SIGNATURE
};

#define WEFT_SAME_CALL(name, theirs) static_assert(same_call<Signatures::name, decltype(theirs)>)
WEFT_SAME_CALL(init, cuInit);
WEFT_SAME_CALL(driver_version, cuDriverGetVersion);
WEFT_SAME_CALL(error_name, cuGetErrorName);
WEFT_SAME_CALL(error_text, cuGetErrorString);
WEFT_SAME_CALL(device_count, cuDeviceGetCount);
WEFT_SAME_CALL(device_get, cuDeviceGet);
WEFT_SAME_CALL(device_attribute, cuDeviceGetAttribute);
WEFT_SAME_CALL(device_pci, cuDeviceGetPCIBusId);
WEFT_SAME_CALL(primary_retain, cuDevicePrimaryCtxRetain);
WEFT_SAME_CALL(primary_release, cuDevicePrimaryCtxRelease);
WEFT_SAME_CALL(context_push, cuCtxPushCurrent);
WEFT_SAME_CALL(context_pop, cuCtxPopCurrent);
WEFT_SAME_CALL(pointer_attribute, cuPointerGetAttribute);
WEFT_SAME_CALL(set_pointer_attribute, cuPointerSetAttribute);
WEFT_SAME_CALL(copy_async, cuMemcpyAsync);
WEFT_SAME_CALL(host_register, cuMemHostRegister);
WEFT_SAME_CALL(host_unregister, cuMemHostUnregister);
WEFT_SAME_CALL(host_device_pointer, cuMemHostGetDevicePointer);
WEFT_SAME_CALL(exchange_capture_mode, cuThreadExchangeStreamCaptureMode);
WEFT_SAME_CALL(retain_memory_handle, cuMemRetainAllocationHandle);
WEFT_SAME_CALL(release_memory_handle, cuMemRelease);
WEFT_SAME_CALL(stream_is_capturing, cuStreamIsCapturing);
WEFT_SAME_CALL(stream_context, cuStreamGetCtx);
WEFT_SAME_CALL(launch_host_function, cuLaunchHostFunc);
WEFT_SAME_CALL(stream_wait_value, cuStreamWaitValue64);
WEFT_SAME_CALL(stream_create, cuStreamCreate);
WEFT_SAME_CALL(stream_destroy, cuStreamDestroy);
WEFT_SAME_CALL(stream_synchronize, cuStreamSynchronize);
WEFT_SAME_CALL(stream_wait_event, cuStreamWaitEvent);
WEFT_SAME_CALL(event_create, cuEventCreate);
WEFT_SAME_CALL(event_destroy, cuEventDestroy);
WEFT_SAME_CALL(event_record, cuEventRecord);
WEFT_SAME_CALL(event_query, cuEventQuery);
WEFT_SAME_CALL(ipc_get_handle, cuIpcGetMemHandle);
WEFT_SAME_CALL(ipc_open_handle, cuIpcOpenMemHandle);
WEFT_SAME_CALL(ipc_close_handle, cuIpcCloseMemHandle);
WEFT_SAME_CALL(flush_writes, cuFlushGPUDirectRDMAWrites);
WEFT_SAME_CALL(range_handle, cuMemGetHandleForAddressRange);
#undef WEFT_SAME_CALL

// The header gives most functions another name than they are called by; api.hpp must have that one.
#define WEFT_TEXT(symbol) #symbol
#define WEFT_SYMBOL(name) WEFT_TEXT(name)
TEST(CudaApi, SymbolsAreThoseThatTheHeaderLinksWith) {
  struct {
#define WEFT_SYMBOL_OF(name, symbol, ...) const char* name = symbol;
    WEFT_CUDA_ENTRY_POINTS(WEFT_SYMBOL_OF)
#undef WEFT_SYMBOL_OF
  } ours;
  EXPECT_STREQ(ours.primary_release, WEFT_SYMBOL(cuDevicePrimaryCtxRelease));
  EXPECT_STREQ(ours.context_push, WEFT_SYMBOL(cuCtxPushCurrent));
  EXPECT_STREQ(ours.context_pop, WEFT_SYMBOL(cuCtxPopCurrent));
  EXPECT_STREQ(ours.copy_async, WEFT_SYMBOL(cuMemcpyAsync));
  EXPECT_STREQ(ours.host_register, WEFT_SYMBOL(cuMemHostRegister));
  EXPECT_STREQ(ours.host_unregister, WEFT_SYMBOL(cuMemHostUnregister));
  EXPECT_STREQ(ours.stream_destroy, WEFT_SYMBOL(cuStreamDestroy));
  EXPECT_STREQ(ours.event_destroy, WEFT_SYMBOL(cuEventDestroy));
  EXPECT_STREQ(ours.ipc_open_handle, WEFT_SYMBOL(cuIpcOpenMemHandle));
}

}  // namespace
}  // namespace weft::core::cuda

#else

TEST(CudaApi, SymbolsAreThoseThatTheHeaderLinksWith) {
  GTEST_SKIP() << "there is no cuda.h to compare with";
}

#endif
