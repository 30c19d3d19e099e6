#include "driver/context.hpp"

#include <algorithm>

#include "driver/simulator.hpp"
#include "driver/status.hpp"

namespace weft::cuda_sim {
namespace {

std::vector<MarkerPtr> under_way(const ContextObject& context) {
  std::vector<MarkerPtr> markers;
  for (const StreamPtr& stream : simulator().streams)
    if (stream->context == &context && !stream->idle()) markers.push_back(stream->last);
  return markers;
}

}  // namespace

std::vector<Context>& context_stack() {
  thread_local std::vector<Context> stack;
  return stack;
}

ContextObject& current(Lock& lock) {
  const std::vector<Context>& stack = context_stack();
  require(!stack.empty(), invalid_context);
  ContextObject& context = *stack.back();
  check_health(context, lock);
  return context;
}

void check_handle(Context context) {
  const bool known = std::ranges::any_of(simulator().contexts,
                                         [&](const auto& each) { return each.get() == context; });
  require(known && !context->destroyed, invalid_context);
}

void check_health(ContextObject& context, Lock& lock) {
  if (context.error == success) return;
  Simulator& s = simulator();
  s.progress.wait(lock, [&] { return context.running == 0 || s.leaving; });
  fail(context.error);
}

Context make_context(Ordinal device, bool primary) {
  Simulator& s = simulator();
  s.contexts.push_back(
      std::make_unique<ContextObject>(ContextObject{.device = device, .primary = primary}));
  return s.contexts.back().get();
}

void destroy(ContextObject& context, Lock& lock) {
  Simulator& s = simulator();
  context.destroyed = true;
  break_context(context, context_is_destroyed);
  drain(context, lock);
  for (const StreamPtr& stream : s.streams)
    if (stream->context == &context) stream->close();
  context.legacy = nullptr;
  context.per_thread.clear();
  context.peers.clear();
  std::erase_if(s.events, [&](const auto& each) { return each.second->context == &context; });
  const auto regions = s.memory.regions();
  for (const auto& [base, region] : regions)
    if (region->context == &context) s.memory.remove(*region);
}

void break_context(ContextObject& context, Status status) {
  context.error = status;
  simulator().changed();
}

void drain(const ContextObject& context, Lock& lock) {
  for (const MarkerPtr& each : under_way(context)) wait_for(each, lock);
}

}  // namespace weft::cuda_sim
