#include "transfer/submission.hpp"

#include <utility>

namespace weft::core {

const Reach& Submission::no_keys() noexcept {
  static const Reach everything;
  return everything;
}

void Submission::take(TransferOptions&& options) {
  on_end = std::move(options.on_end);
  cookie = options.cookie;
  after_gpu_event = options.after_gpu_event;
  priority = options.priority;
  event = options.event;
  verify = options.verify;
  if (!options.signal) return;
  signal = options.signal->id;
  signal_bytes.assign(options.signal->bytes.begin(), options.signal->bytes.end());
}

}  // namespace weft::core
