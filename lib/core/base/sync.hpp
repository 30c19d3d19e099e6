// Mutexes of which clang checks who holds them: -Wthread-safety reads these annotations.
// https://clang.llvm.org/docs/ThreadSafetyAnalysis.html
#pragma once

#include <condition_variable>
#include <mutex>
#include <utility>
#include <weft/deadline.hpp>

#if defined(__clang__)
#define WEFT_THREAD_ANNOTATION(x) __attribute__((x))
#else
#define WEFT_THREAD_ANNOTATION(x)
#endif

/// The member may be touched only by a thread that holds the mutex.
#define WEFT_GUARDED_BY(mutex) WEFT_THREAD_ANNOTATION(guarded_by(mutex))
/// What the pointer points to may.
#define WEFT_PT_GUARDED_BY(mutex) WEFT_THREAD_ANNOTATION(pt_guarded_by(mutex))
/// The caller of this function holds the mutexes, before and after. Lambdas take it too.
#define WEFT_REQUIRES(...) WEFT_THREAD_ANNOTATION(exclusive_locks_required(__VA_ARGS__))
/// The caller of this function does not hold the mutexes.
#define WEFT_EXCLUDES(...) WEFT_THREAD_ANNOTATION(locks_excluded(__VA_ARGS__))
/// The function locks, or unlocks.
#define WEFT_ACQUIRE(...) WEFT_THREAD_ANNOTATION(exclusive_lock_function(__VA_ARGS__))
#define WEFT_TRY_ACQUIRE(...) WEFT_THREAD_ANNOTATION(exclusive_trylock_function(__VA_ARGS__))
#define WEFT_RELEASE(...) WEFT_THREAD_ANNOTATION(unlock_function(__VA_ARGS__))
/// The mutex that the function returns.
#define WEFT_RETURNS(mutex) WEFT_THREAD_ANNOTATION(lock_returned(mutex))
/// The function does something that the analysis can't follow: say what, beside it.
#define WEFT_NO_THREAD_SAFETY_ANALYSIS WEFT_THREAD_ANNOTATION(no_thread_safety_analysis)

namespace weft::core {

/// Of x86-64 and of the Arm cores of EC2.
/// Keeps data of different threads apart (false sharing).
constexpr std::size_t cache_line = 64;

class WEFT_THREAD_ANNOTATION(capability("mutex")) Mutex {
 public:
  void lock() WEFT_ACQUIRE() { mutex_.lock(); }
  bool try_lock() WEFT_TRY_ACQUIRE(true) { return mutex_.try_lock(); }
  void unlock() WEFT_RELEASE() { mutex_.unlock(); }

 private:
  friend class Condition;
  std::mutex mutex_;
};

/// Holds a mutex for as long as it lives, but between unlock() and lock().
class WEFT_THREAD_ANNOTATION(scoped_lockable) Lock {
 public:
  explicit Lock(Mutex& mutex) WEFT_ACQUIRE(mutex) : mutex_(mutex), held_(true) { mutex_.lock(); }
  /// Takes over a mutex that the thread holds, as after try_lock().
  Lock(Mutex& mutex, std::adopt_lock_t) WEFT_REQUIRES(mutex) : mutex_(mutex), held_(true) {}
  ~Lock() WEFT_RELEASE() {
    if (held_) mutex_.unlock();
  }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

  void lock() WEFT_ACQUIRE() {
    mutex_.lock();
    held_ = true;
  }
  void unlock() WEFT_RELEASE() {
    held_ = false;
    mutex_.unlock();
  }

 private:
  Mutex& mutex_;
  bool held_;
};

/// What threads that hold a mutex wait for.
class Condition {
 public:
  void notify_one() noexcept { changed_.notify_one(); }
  void notify_all() noexcept { changed_.notify_all(); }

  /// Whether `done` came true by the deadline. The mutex is held when `done` is asked, and
  /// afterwards. A deadline that has passed costs no system call: callers who make progress
  /// themselves look that way between two steps.
  template <typename Done>
  bool wait(Mutex& mutex, Deadline deadline, Done&& done)
      WEFT_REQUIRES(mutex) WEFT_NO_THREAD_SAFETY_ANALYSIS {  // std::unique_lock is not annotated.
    if (done()) return true;
    if (deadline.passed()) return false;
    std::unique_lock lock(mutex.mutex_, std::adopt_lock);
    const bool came = changed_.wait_until(lock, deadline.when(), std::forward<Done>(done));
    lock.release();
    return came;
  }

 private:
  std::condition_variable changed_;
};

}  // namespace weft::core
