// How a call fails inside the stand-in: an exception that the entry point turns into its result.
#pragma once

#include "interface/status.hpp"

namespace weft::cuda_sim {

struct Failure {
  Status status;
};

[[noreturn]] inline void fail(Status status) {
  throw Failure{status};
}

inline void require(bool condition, Status status = invalid_value) {
  if (!condition) fail(status);
}

/// CUDA_ERROR_..., null for a number that is none.
const char* name_of(Status status);
const char* text_of(Status status);

}  // namespace weft::cuda_sim
