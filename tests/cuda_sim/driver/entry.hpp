// What every entry point of the driver does before and after its own business.
#pragma once

#include <new>
#include <system_error>

#include "driver/simulator.hpp"
#include "driver/status.hpp"

#define WEFT_CUDA_EXPORT extern "C" __attribute__((visibility("default")))

namespace weft::cuda_sim {

/// Whether the calling thread runs a function that cuLaunchHostFunc was given.
bool& in_host_function();
/// Throws Failure when no call is possible, or a test wants this one to fail.
void admit(Simulator& s, const char* symbol, Lock& lock);

/// Calls `body(lock)` under the simulator's lock, which gives Failure for what it refuses.
template <typename Body>
Status enter(const char* symbol, const Body& body) {
  Simulator& s = simulator();
  Lock lock(s.mutex, std::defer_lock);
  try {
    admit(s, symbol, lock);
    body(lock);
    return success;
  } catch (const Failure& failure) {
    return failure.status;
  } catch (const std::bad_alloc&) {
    return out_of_memory;
  } catch (const std::system_error&) {
    return operating_system;
  }
}

}  // namespace weft::cuda_sim
