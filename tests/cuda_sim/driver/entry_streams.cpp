// Streams, and what is put on them other than copies.
#include "driver/copy.hpp"
#include "driver/entry.hpp"

namespace weft::cuda_sim {

namespace {

void create(Stream* stream, unsigned flags, Lock& lock) {
  ContextObject& context = current(lock);
  require(stream != nullptr && flags <= stream_non_blocking);
  *stream = make_stream(&context, flags).get();
}

/// Runs the program's function on the stream's thread.
Status call(HostFunction function, void* argument, Lock& lock) {
  lock.unlock();
  in_host_function() = true;
  function(argument);
  in_host_function() = false;
  lock.lock();
  return success;
}

}  // namespace

WEFT_CUDA_EXPORT Status cuStreamCreate(Stream* stream, unsigned flags) {
  return enter("cuStreamCreate", [&](Lock& lock) { create(stream, flags, lock); });
}

WEFT_CUDA_EXPORT Status cuStreamCreateWithPriority(Stream* stream, unsigned flags, int) {
  return enter("cuStreamCreateWithPriority", [&](Lock& lock) { create(stream, flags, lock); });
}

WEFT_CUDA_EXPORT Status cuStreamDestroy_v2(Stream handle) {
  return enter("cuStreamDestroy_v2", [&](Lock& lock) {
    StreamObject& stream = stream_of(handle, lock);
    require(stream.role == Role::created, invalid_handle);
    simulator().captures.forbid(stream);
    stream.close();
  });
}

WEFT_CUDA_EXPORT Status cuStreamGetCtx(Stream handle, Context* context) {
  return enter("cuStreamGetCtx", [&](Lock& lock) {
    require(context != nullptr);
    *context = handle == nullptr ? &current(lock) : context_of(handle);
  });
}

WEFT_CUDA_EXPORT Status cuStreamQuery(Stream handle) {
  return enter("cuStreamQuery", [&](Lock& lock) {
    const StreamObject& stream = stream_of(handle, lock);
    simulator().captures.forbid(stream);
    require(stream.idle(), not_ready);
  });
}

WEFT_CUDA_EXPORT Status cuStreamSynchronize(Stream handle) {
  return enter("cuStreamSynchronize", [&](Lock& lock) {
    StreamObject& stream = stream_of(handle, lock);
    ContextObject& context = *stream.context;
    simulator().captures.forbid(stream);
    if (!stream.idle()) wait_for(stream.last, lock);
    check_health(context, lock);
  });
}

WEFT_CUDA_EXPORT Status cuStreamWaitEvent(Stream handle, Event event, unsigned flags) {
  return enter("cuStreamWaitEvent", [&](Lock& lock) {
    StreamObject& stream = stream_of(handle, lock);
    require(simulator().events.contains(event), invalid_handle);
    require(flags == 0);
    const bool joins = event->recorded && event->recorded->captured;
    require(!joins || simulator().captures.of(stream) != nullptr, not_supported);
    Work work{.operation = Operation::wait_event};
    if (event->recorded) work.after.push_back(event->recorded);
    stream.queue(std::move(work));
  });
}

WEFT_CUDA_EXPORT Status cuStreamWaitValue64_v2(Stream handle, Address address, std::uint64_t value,
                                               unsigned flags) {
  return enter("cuStreamWaitValue64_v2", [&](Lock& lock) {
    stream_of(handle, lock).queue(make_wait_value(address, value, flags));
  });
}

WEFT_CUDA_EXPORT Status cuStreamWriteValue64_v2(Stream handle, Address address, std::uint64_t value,
                                                unsigned flags) {
  return enter("cuStreamWriteValue64_v2", [&](Lock& lock) {
    stream_of(handle, lock).queue(make_write_value(address, value, flags));
  });
}

WEFT_CUDA_EXPORT Status cuLaunchHostFunc(Stream handle, HostFunction function, void* argument) {
  return enter("cuLaunchHostFunc", [&](Lock& lock) {
    StreamObject& stream = stream_of(handle, lock);
    require(function != nullptr);
    Work work{.operation = Operation::host_function};
    work.run = [=](Lock& held) { return call(function, argument, held); };
    stream.queue(std::move(work));
  });
}

}  // namespace weft::cuda_sim
