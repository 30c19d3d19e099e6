// The C API: signals, messages, progress and events.
#include <array>

#include "capi/boundary.hpp"

using namespace weft;
using namespace weft::capi;

namespace {

Result<NotifyOptions> notify_options(const weft_notify_options& c) {
  auto late = enumerator("options->late", c.late, Late::keep, Late::drop);
  if (!late) return fail(std::move(late.error()));
  NotifyOptions options;
  options.cookie = c.cookie;
  options.event = c.event;
  if (c.timeout_ns != 0) options.deadline = in(c.timeout_ns);
  options.late = *late;
  if (c.on_stream) options.gpu_stream = c.gpu_stream;
  if (c.on_end != nullptr)
    options.on_end = [on_end = c.on_end, context = c.context](std::uint64_t cookie,
                                                              const Error* error) {
      on_end(context, cookie, make_error(error).get());
    };
  return options;
}

/// Waits once; what has arrived stays with the handle.
template <typename Handle>
Result<void> wait_for(Handle& handle, Deadline deadline) {
  if (handle.arrived) return {};
  return handle.value.wait(deadline).map(
      [&](auto&& arrived) { handle.arrived = std::move(arrived); });
}

weft_event to_c(const Event& event) {
  weft_event c{};
  c.kind = static_cast<std::int32_t>(event.kind);
  c.state = static_cast<std::int32_t>(event.state);
  c.cookie = event.cookie;
  event.peer.copy(c.peer, sizeof c.peer - 1);
  if (event.error) c.error = make_error(*event.error);
  return c;
}

}  // namespace

weft_code weft_peer_signal(const weft_peer* peer, uint64_t id, const void* data, size_t bytes,
                           int64_t timeout_ns, weft_error** error) {
  return call(error, {{"peer", peer}, list("data", data, bytes)}, [&] {
    return peer->value.signal({id, bytes_of(data, bytes)}, in(timeout_ns));
  });
}

weft_code weft_peer_expect(const weft_peer* peer, uint64_t id, uint64_t count,
                           const weft_notify_options* options, weft_expectation** expectation,
                           weft_error** error) {
  return call(error, {{"peer", peer}, {"expectation", expectation}}, [&] {
    return read_optional("options", options)
        .and_then(notify_options)
        .and_then([&](NotifyOptions known) {
          return give(expectation, peer->value.expect(id, count, std::move(known)));
        });
  });
}

void weft_expectation_free(weft_expectation* expectation) {
  delete expectation;
}

bool weft_expectation_ready(const weft_expectation* expectation) {
  return expectation != nullptr && expectation->value.ready();
}

weft_code weft_expectation_wait(weft_expectation* expectation, int64_t timeout_ns,
                                weft_error** error) {
  return call(error, {{"expectation", expectation}},
              [&] { return wait_for(*expectation, in(timeout_ns)); });
}

size_t weft_expectation_payload_count(const weft_expectation* expectation) {
  return expectation != nullptr && expectation->arrived ? expectation->arrived->payloads.size() : 0;
}

const void* weft_expectation_payload(const weft_expectation* expectation, size_t index,
                                     size_t* bytes) {
  const bool there = index < weft_expectation_payload_count(expectation);
  if (bytes != nullptr) *bytes = there ? expectation->arrived->payloads[index].size() : 0;
  return there ? expectation->arrived->payloads[index].data() : nullptr;
}

weft_code weft_peer_forget(const weft_peer* peer, uint64_t first, uint64_t last,
                           weft_error** error) {
  return call(error, {{"peer", peer}}, [&] { return peer->value.forget(first, last); });
}

weft_code weft_peer_send(const weft_peer* peer, uint64_t tag, const void* data, size_t bytes,
                         int64_t timeout_ns, weft_error** error) {
  return call(error, {{"peer", peer}, list("data", data, bytes)},
              [&] { return peer->value.send(tag, bytes_of(data, bytes), in(timeout_ns)); });
}

weft_code weft_peer_receive(const weft_peer* peer, uint64_t tag, uint64_t mask,
                            const weft_notify_options* options, weft_receive** receive,
                            weft_error** error) {
  return call(error, {{"peer", peer}, {"receive", receive}}, [&] {
    return read_optional("options", options)
        .and_then(notify_options)
        .and_then([&](NotifyOptions known) {
          return give(receive, peer->value.receive(tag, mask, std::move(known)));
        });
  });
}

weft_code weft_peer_recv(const weft_peer* peer, uint64_t tag, uint64_t mask, int64_t timeout_ns,
                         weft_receive** receive, weft_error** error) {
  return call(error, {{"peer", peer}, {"receive", receive}}, [&] {
    return peer->value.receive(tag, mask).and_then([&](Receive&& asked) {
      auto handle = std::unique_ptr<weft_receive>(new weft_receive{std::move(asked)});
      return wait_for(*handle, in(timeout_ns)).map([&] { *receive = handle.release(); });
    });
  });
}

void weft_receive_free(weft_receive* receive) {
  delete receive;
}

bool weft_receive_ready(const weft_receive* receive) {
  return receive != nullptr && receive->value.ready();
}

weft_code weft_receive_wait(weft_receive* receive, int64_t timeout_ns, weft_error** error) {
  return call(error, {{"receive", receive}}, [&] { return wait_for(*receive, in(timeout_ns)); });
}

uint64_t weft_receive_tag(const weft_receive* receive) {
  return receive != nullptr && receive->arrived ? receive->arrived->tag : 0;
}
const char* weft_receive_peer(const weft_receive* receive) {
  return receive != nullptr && receive->arrived ? receive->arrived->peer.c_str() : nullptr;
}
const void* weft_receive_data(const weft_receive* receive) {
  return receive != nullptr && receive->arrived ? receive->arrived->bytes.data() : nullptr;
}
size_t weft_receive_bytes(const weft_receive* receive) {
  return receive != nullptr && receive->arrived ? receive->arrived->bytes.size() : 0;
}

weft_code weft_engine_progress(weft_engine* engine, size_t* operations, weft_error** error) {
  return call(error, {{"engine", engine}}, [&] {
    return engine->value.progress().map([&](std::size_t ended) {
      if (operations != nullptr) *operations = ended;
    });
  });
}

weft_code weft_engine_poll(weft_engine* engine, weft_event* events, size_t capacity, size_t* count,
                           weft_error** error) {
  return call(error, {{"engine", engine}, list("events", events, capacity), {"count", count}},
              [&]() -> Result<void> {
                std::array<Event, 16> batch;
                std::size_t taken = 0, last = batch.size();
                while (last == batch.size() && taken < capacity) {
                  last = engine->value.poll(
                      std::span(batch).first(std::min(batch.size(), capacity - taken)));
                  for (std::size_t i = 0; i < last; ++i) events[taken + i] = to_c(batch[i]);
                  taken += last;
                }
                *count = taken;
                return {};
              });
}

int weft_engine_event_fd(const weft_engine* engine) {
  return engine != nullptr ? engine->value.event_fd() : -1;
}
