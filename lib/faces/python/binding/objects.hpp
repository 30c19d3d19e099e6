// The C++ handles as Python objects have them.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <vector>
#include <weft/engine.hpp>

#include "python/binding/buffers.hpp"
#include "python/binding/completion.hpp"
#include "python/binding/config.hpp"
#include "python/binding/gil.hpp"

namespace weft::python {

/// weft.Engine. Threads that wait keep the engine, so that the object may go meanwhile.
struct PyEngine {
  std::shared_ptr<Engine> engine;
  Nanoseconds default_timeout{};
  std::shared_ptr<Completion> closed = std::make_shared<Completion>();
  /// It was closed without an error: nothing touches memory for it any more.
  std::shared_ptr<std::atomic<bool>> over = std::make_shared<std::atomic<bool>>(false);

  explicit PyEngine(Engine&& opened)
      : engine(std::make_shared<Engine>(std::move(opened))),
        default_timeout(default_timeout_of(*engine)) {}
  PyEngine(const PyEngine&) = delete;
  PyEngine& operator=(const PyEngine&) = delete;
  ~PyEngine();
};

/// weft.Peer. It does not keep the engine.
struct PyPeer {
  Peer peer;
  Nanoseconds default_timeout{};
};

/// Lets go of `handle`, which keeps a segment's memory. With the last handle that does, memory is
/// unregistered and unmapped: that takes milliseconds, so other Python threads run meanwhile.
/// `last`: it may be that one. Else Python's lock is kept, for it can take longer to get it again.
template <typename Handle>
void let_go(std::shared_ptr<Handle>& handle, bool last) {
  const Unlocked others_run(last && handle.use_count() == 1);
  handle.reset();
}

/// weft.Segment.
struct PySegment {
  std::shared_ptr<Segment> segment;
  std::shared_ptr<Buffer> buffer;  // of the object whose memory it is; null: the engine's
  bool read_only = false;
  Nanoseconds default_timeout{};
  std::shared_ptr<const std::atomic<bool>> engine_over;
  bool closed = false;
  std::vector<Anchor> tensors;  // that lie in it: see watch() in memory.cpp

  /// Raises if the bytes are not the object's any more.
  void check() const {
    if (const auto held = buffer) held->check();
  }
  /// As well if a tensor has left it. Of a copy: Python's code may run, and other threads with it.
  void check_tensors() const {
    check();
    const std::vector<Anchor> held = tensors;
    for (const Anchor& tensor : held) tensor.check();
  }

  ~PySegment() {
    let_go(segment, true);
    buffer.reset();
    release_forgotten_buffers();
  }
};

/// weft.Grant.
struct PyGrant {
  std::shared_ptr<Grant> grant;
  std::weak_ptr<Segment> segment;
  Nanoseconds default_timeout{};
  std::shared_ptr<const std::atomic<bool>> engine_over;
  std::weak_ptr<const Buffer> buffer;  // of the segment

  void check() const {
    if (const auto held = buffer.lock()) held->check();
  }

  ~PyGrant() { let_go(grant, segment.expired()); }
};

/// weft.Prepared.
struct PyPrepared {
  std::shared_ptr<Prepared> list;
  std::weak_ptr<Segment> segment;      // the local one
  std::weak_ptr<const Buffer> buffer;  // of the segment

  void check() const {
    if (const auto held = buffer.lock()) held->check();
  }

  ~PyPrepared() { let_go(list, segment.expired()); }
};

/// weft._Waker. Engines' threads keep what it holds, and never the object.
struct PyWaker {
  std::shared_ptr<Waker> waker = std::make_shared<Waker>();
};

/// weft.Transfer.
struct PyTransfer {
  std::shared_ptr<Transfer> transfer;
  std::weak_ptr<Segment> segment;  // the local one
  std::shared_ptr<Completion> completion;
  Nanoseconds default_timeout{};
  std::uint64_t bytes = 0;

  ~PyTransfer() { let_go(transfer, segment.expired()); }
};

/// `_watch` and `_unwatch` of what ends, for _aio.py.
template <typename Ends, typename CompletionOf>
void bind_end(nanobind::class_<Ends>& bound, CompletionOf completion_of) {
  bound
      .def(
          "_watch",
          [completion_of](const Ends& self, const PyWaker& waker, std::uint64_t number) {
            return completion_of(self).watch(waker.waker, number);
          },
          nanobind::arg("waker"), nanobind::arg("number"))
      .def(
          "_unwatch",
          [completion_of](const Ends& self, const PyWaker& waker, std::uint64_t number) {
            completion_of(self).unwatch(waker.waker, number);
          },
          nanobind::arg("waker"), nanobind::arg("number"));
}

}  // namespace weft::python
