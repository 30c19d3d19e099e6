// Contexts: what belongs to them, what broke them, and each thread's stack of current ones.
#pragma once

#include <map>
#include <set>
#include <thread>
#include <vector>

#include "driver/stream.hpp"

namespace weft::core::cuda {

struct ContextObject {
  const Ordinal device;
  const bool primary;
  bool destroyed = false;
  Status error = success;  // sticky
  unsigned flags = 0;
  unsigned running = 0;  // copies that are under way
  weft::cuda_sim::StreamPtr legacy;
  std::map<std::thread::id, weft::cuda_sim::StreamPtr> per_thread;
  std::set<Ordinal> peers;
};

}  // namespace weft::core::cuda

namespace weft::cuda_sim {

/// The calling thread's; the last is current.
std::vector<Context>& context_stack();
/// The current context, in which calls work. Throws Failure.
ContextObject& current(Lock& lock);
/// That a handle is a context that lives. Throws Failure.
void check_handle(Context context);
/// Throws Failure with the context's error; what was under way has ended then.
void check_health(ContextObject& context, Lock& lock);

Context make_context(Ordinal device, bool primary);
/// Ends what it has under way and destroys what belongs to it.
void destroy(ContextObject& context, Lock& lock);
/// From now on everything in the context fails.
void break_context(ContextObject& context, Status status);
/// Blocks until all that is queued so far has ended.
void drain(const ContextObject& context, Lock& lock);

}  // namespace weft::cuda_sim
