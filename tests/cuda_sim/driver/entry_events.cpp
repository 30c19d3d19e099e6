// Events.
#include "driver/entry.hpp"

namespace weft::cuda_sim {

namespace {

constexpr unsigned event_flags = 3;  // blocking waits, no timing; none are shared by processes

EventObject& event_of(Event handle) {
  require(simulator().events.contains(handle), invalid_handle);
  return *handle;
}

/// An event's context need not be current.
EventObject& healthy(Event handle, Lock& lock) {
  EventObject& event = event_of(handle);
  check_health(*event.context, lock);
  return event;
}

}  // namespace

WEFT_CUDA_EXPORT Status cuEventCreate(Event* event, unsigned flags) {
  return enter("cuEventCreate", [&](Lock& lock) {
    ContextObject& context = current(lock);
    require(event != nullptr && flags <= event_flags);
    auto made = std::make_unique<EventObject>(EventObject{&context, flags, nullptr});
    *event = made.get();
    simulator().events[*event] = std::move(made);
  });
}

WEFT_CUDA_EXPORT Status cuEventDestroy_v2(Event handle) {
  return enter("cuEventDestroy_v2", [&](Lock& lock) {
    current(lock);
    simulator().events.erase(&healthy(handle, lock));
  });
}

WEFT_CUDA_EXPORT Status cuEventRecord(Event handle, Stream stream_handle) {
  return enter("cuEventRecord", [&](Lock& lock) {
    StreamObject& stream = stream_of(stream_handle, lock);
    EventObject& event = event_of(handle);
    require(event.context == stream.context, invalid_handle);
    event.recorded = stream.queue({.operation = Operation::record_event});
  });
}

WEFT_CUDA_EXPORT Status cuEventQuery(Event handle) {
  return enter("cuEventQuery", [&](Lock& lock) {
    const MarkerPtr recorded = healthy(handle, lock).recorded;
    require(!recorded || !recorded->captured, captured_event);
    require(!recorded || recorded->ended, not_ready);
  });
}

WEFT_CUDA_EXPORT Status cuEventSynchronize(Event handle) {
  return enter("cuEventSynchronize", [&](Lock& lock) {
    current(lock);
    const EventObject& event = healthy(handle, lock);
    ContextObject& context = *event.context;
    require(!event.recorded || !event.recorded->captured, captured_event);
    if (const MarkerPtr recorded = event.recorded) wait_for(recorded, lock);
    check_health(context, lock);
  });
}

}  // namespace weft::cuda_sim
