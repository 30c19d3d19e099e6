// Cuts off operations that neither end nor fail, so that their memory is free.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>
#include <weft/engine.hpp>

#include "base/sync.hpp"

namespace weft::nixl {

/// Closes rails and opens them again (Engine::reopen), on threads of its own: for what a peer that
/// has stopped still owes. What others have under way over such a rail is carried anew, or fails.
/// From any thread.
class Cutter {
 public:
  explicit Cutter(std::shared_ptr<Engine> engine) : state_(std::make_shared<State>()) {
    state_->engine = std::move(engine);
  }
  /// Begins with those of the rails that have not been opened since then.
  void cut(const std::vector<std::string>& rails, Clock::time_point since);

 private:
  struct State {
    std::shared_ptr<Engine> engine;
    core::Mutex mutex;
    std::map<std::string, Clock::time_point> opened WEFT_GUARDED_BY(mutex);
    std::set<std::string> under_way WEFT_GUARDED_BY(mutex);
    bool take(const std::string& rail, Clock::time_point since);
    void reopen(const std::string& rail);
  };
  const std::shared_ptr<State> state_;
};

}  // namespace weft::nixl
