// The state of the stand-in, one for the process.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "driver/captures.hpp"
#include "driver/context.hpp"
#include "driver/device.hpp"
#include "driver/event.hpp"
#include "driver/faults.hpp"
#include "driver/log.hpp"
#include "driver/memory.hpp"
#include "driver/settings.hpp"
#include "driver/stream.hpp"

namespace weft::cuda_sim {

/// How late work comes; see weft_cuda_sim_delay.
struct Delay {
  std::uint64_t seed = 0;
  unsigned microseconds = 0;
};

struct Simulator {
  Simulator();
  void initialise();
  /// Wakes whoever waits for anything.
  void changed();
  Device& device(Ordinal ordinal);

  std::mutex mutex;  // guards all that follows, unless it is atomic
  std::condition_variable progress;
  const Settings settings;
  std::atomic<pid_t> process{0};      // that called cuInit
  std::atomic<bool> leaving{false};   // the process ends
  std::atomic<unsigned> touching{0};  // threads that are in the middle of memory
  bool hold_all = false;
  unsigned blocked = 0;  // calls, see weft_cuda_sim_block
  Delay delay;
  Log log;
  Faults faults;
  Captures captures;
  Memory memory;
  std::vector<Device> devices;
  std::vector<std::unique_ptr<ContextObject>> contexts;  // kept when destroyed, to know them by
  std::vector<StreamPtr> streams;                        // the default ones too
  std::map<Event, std::unique_ptr<EventObject>> events;
  std::size_t handles = 0;  // of mapped memory, not released
  std::uint64_t last_stream = 0, last_work = 0;
};

/// Takes a region out of the table, once no copy is in the middle of it.
void take_away(const RegionPtr& region, Lock& lock);

/// Never destroyed: threads may use it to the end of the process.
Simulator& simulator();

}  // namespace weft::cuda_sim
