// Contexts and the calling thread's stack of them.
#include "driver/entry.hpp"

namespace weft::cuda_sim {

namespace {

Device& working(Ordinal ordinal) {
  Device& device = simulator().device(ordinal);
  require(device.lost == success, device.lost);
  return device;
}

/// The primary context, as new where nobody has it.
Context retain(Device& device) {
  if (device.primary == nullptr) device.primary = make_context(device.ordinal, true);
  if (device.retained++ == 0) {
    device.primary->destroyed = false;
    device.primary->error = success;
  }
  return device.primary;
}

}  // namespace

WEFT_CUDA_EXPORT Status cuDevicePrimaryCtxRetain(Context* context, Ordinal device) {
  return enter("cuDevicePrimaryCtxRetain", [&](Lock&) {
    require(context != nullptr);
    *context = retain(working(device));
  });
}

WEFT_CUDA_EXPORT Status cuDevicePrimaryCtxRelease_v2(Ordinal ordinal) {
  return enter("cuDevicePrimaryCtxRelease_v2", [&](Lock& lock) {
    Device& device = simulator().device(ordinal);
    require(device.retained > 0, invalid_context);
    if (--device.retained == 0) destroy(*device.primary, lock);
    require(device.lost == success, device.lost);
  });
}

WEFT_CUDA_EXPORT Status cuCtxCreate_v2(Context* context, unsigned, Ordinal device) {
  return enter("cuCtxCreate_v2", [&](Lock&) {
    require(context != nullptr);
    *context = make_context(working(device).ordinal, false);
    context_stack().push_back(*context);
  });
}

WEFT_CUDA_EXPORT Status cuCtxDestroy_v2(Context context) {
  return enter("cuCtxDestroy_v2", [&](Lock& lock) {
    check_handle(context);
    require(!context->primary, invalid_context);
    destroy(*context, lock);
    std::vector<Context>& stack = context_stack();
    if (!stack.empty() && stack.back() == context) stack.pop_back();
  });
}

WEFT_CUDA_EXPORT Status cuCtxPushCurrent_v2(Context context) {
  return enter("cuCtxPushCurrent_v2", [&](Lock&) {
    check_handle(context);
    context_stack().push_back(context);
  });
}

WEFT_CUDA_EXPORT Status cuCtxPopCurrent_v2(Context* context) {
  return enter("cuCtxPopCurrent_v2", [&](Lock&) {
    std::vector<Context>& stack = context_stack();
    require(!stack.empty(), invalid_context);
    if (context != nullptr) *context = stack.back();
    stack.pop_back();
  });
}

WEFT_CUDA_EXPORT Status cuCtxGetCurrent(Context* context) {
  return enter("cuCtxGetCurrent", [&](Lock&) {
    require(context != nullptr);
    *context = context_stack().empty() ? nullptr : context_stack().back();
  });
}

WEFT_CUDA_EXPORT Status cuCtxSetCurrent(Context context) {
  return enter("cuCtxSetCurrent", [&](Lock&) {
    if (context != nullptr) check_handle(context);
    std::vector<Context>& stack = context_stack();
    if (!stack.empty()) stack.pop_back();
    if (context != nullptr) stack.push_back(context);
  });
}

WEFT_CUDA_EXPORT Status cuCtxGetDevice(Ordinal* device) {
  return enter("cuCtxGetDevice", [&](Lock& lock) {
    require(device != nullptr);
    *device = current(lock).device;
  });
}

WEFT_CUDA_EXPORT Status cuCtxGetFlags(unsigned* flags) {
  return enter("cuCtxGetFlags", [&](Lock& lock) {
    require(flags != nullptr);
    *flags = current(lock).flags;
  });
}

WEFT_CUDA_EXPORT Status cuCtxSetFlags(unsigned flags) {
  return enter("cuCtxSetFlags", [&](Lock& lock) { current(lock).flags = flags; });
}

WEFT_CUDA_EXPORT Status cuCtxSynchronize() {
  return enter("cuCtxSynchronize", [&](Lock& lock) {
    ContextObject& context = current(lock);
    drain(context, lock);
    check_health(context, lock);
  });
}

WEFT_CUDA_EXPORT Status cuCtxEnablePeerAccess(Context peer, unsigned flags) {
  return enter("cuCtxEnablePeerAccess", [&](Lock& lock) {
    ContextObject& context = current(lock);
    check_handle(peer);
    require(flags == 0);
    require(peer->device != context.device && simulator().settings.peer, peer_access_unsupported);
    require(context.peers.insert(peer->device).second, peer_access_already_enabled);
  });
}

}  // namespace weft::cuda_sim
