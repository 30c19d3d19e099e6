// Copies and fills.
#include "driver/copy.hpp"
#include "driver/entry.hpp"

namespace weft::cuda_sim {

namespace {

constexpr Sides any, to_device{.target_on_device = true}, from_device{.source_on_device = true},
    on_devices{true, true};

/// Ends with the work, in its end.
void complete(StreamObject& stream, Work work, Lock& lock) {
  ContextObject& context = *stream.context;
  simulator().captures.forbid(stream);
  wait_for(stream.queue(std::move(work)), lock);
  check_health(context, lock);
}

Status copy_now(const char* symbol, Address target, Address source, std::size_t bytes,
                Sides sides) {
  return enter(symbol, [&](Lock& lock) {
    StreamObject& stream = stream_of(nullptr, lock);
    if (bytes > 0) complete(stream, make_copy(target, source, bytes, sides), lock);
  });
}

Status copy_later(const char* symbol, Address target, Address source, std::size_t bytes,
                  Stream handle, Sides sides) {
  return enter(symbol, [&](Lock& lock) {
    StreamObject& stream = stream_of(handle, lock);
    if (bytes == 0) return;
    Work work = make_copy(target, source, bytes, sides);
    // The hardware can't reach memory that is not pinned: the driver copies it itself, meanwhile
    // the caller waits.
    if (work.pageable)
      complete(stream, std::move(work), lock);
    else
      stream.queue(std::move(work));
  });
}

Address address_of(const void* memory) {
  return reinterpret_cast<Address>(memory);
}

}  // namespace

WEFT_CUDA_EXPORT Status cuMemcpy(Address target, Address source, std::size_t bytes) {
  return copy_now("cuMemcpy", target, source, bytes, any);
}

WEFT_CUDA_EXPORT Status cuMemcpyHtoD_v2(Address target, const void* source, std::size_t bytes) {
  return copy_now("cuMemcpyHtoD_v2", target, address_of(source), bytes, to_device);
}

WEFT_CUDA_EXPORT Status cuMemcpyDtoH_v2(void* target, Address source, std::size_t bytes) {
  return copy_now("cuMemcpyDtoH_v2", address_of(target), source, bytes, from_device);
}

WEFT_CUDA_EXPORT Status cuMemcpyAsync(Address target, Address source, std::size_t bytes,
                                      Stream stream) {
  return copy_later("cuMemcpyAsync", target, source, bytes, stream, any);
}

WEFT_CUDA_EXPORT Status cuMemcpyHtoDAsync_v2(Address target, const void* source, std::size_t bytes,
                                             Stream stream) {
  return copy_later("cuMemcpyHtoDAsync_v2", target, address_of(source), bytes, stream, to_device);
}

WEFT_CUDA_EXPORT Status cuMemcpyDtoHAsync_v2(void* target, Address source, std::size_t bytes,
                                             Stream stream) {
  return copy_later("cuMemcpyDtoHAsync_v2", address_of(target), source, bytes, stream, from_device);
}

WEFT_CUDA_EXPORT Status cuMemcpyDtoDAsync_v2(Address target, Address source, std::size_t bytes,
                                             Stream stream) {
  return copy_later("cuMemcpyDtoDAsync_v2", target, source, bytes, stream, on_devices);
}

WEFT_CUDA_EXPORT Status cuMemcpyPeerAsync(Address target, Context target_context, Address source,
                                          Context source_context, std::size_t bytes,
                                          Stream handle) {
  return enter("cuMemcpyPeerAsync", [&](Lock& lock) {
    StreamObject& stream = stream_of(handle, lock);
    check_handle(target_context);
    check_handle(source_context);
    if (bytes > 0) stream.queue(make_copy(target, source, bytes, on_devices));
  });
}

WEFT_CUDA_EXPORT Status cuMemsetD8_v2(Address target, unsigned char value, std::size_t bytes) {
  return enter("cuMemsetD8_v2", [&](Lock& lock) {
    StreamObject& stream = stream_of(nullptr, lock);
    if (bytes > 0) complete(stream, make_set(target, value, bytes), lock);
  });
}

WEFT_CUDA_EXPORT Status cuMemsetD8Async(Address target, unsigned char value, std::size_t bytes,
                                        Stream handle) {
  return enter("cuMemsetD8Async", [&](Lock& lock) {
    StreamObject& stream = stream_of(handle, lock);
    if (bytes > 0) stream.queue(make_set(target, value, bytes));
  });
}

}  // namespace weft::cuda_sim
