// Calls that may wait, each on a thread of its own.
#pragma once

#include <atomic>
#include <functional>
#include <list>
#include <memory>
#include <thread>
#include <utility>

namespace weft::chaos {

/// Used by one thread.
class Tasks {
 public:
  ~Tasks() { join(); }
  void run(std::function<void()> task) {
    tasks_.remove_if([](Task& each) {
      if (!*each.over) return false;
      each.thread.join();
      return true;
    });
    auto over = std::make_shared<std::atomic<bool>>(false);
    tasks_.push_back({over, std::thread([over, task = std::move(task)] {
                        task();
                        *over = true;
                      })});
  }
  void join() {
    for (Task& each : tasks_) each.thread.join();
    tasks_.clear();
  }

 private:
  struct Task {
    std::shared_ptr<std::atomic<bool>> over;
    std::thread thread;
  };
  std::list<Task> tasks_;
};

}  // namespace weft::chaos
