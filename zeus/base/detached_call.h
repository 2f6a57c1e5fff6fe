#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "zeus/base/file_descriptor.h"
#include "zeus/base/units.h"

namespace zeus {

// The part of DetachedCall that does not depend on the type of its value.
class DetachedThread {
 public:
  // Runs `work` on a thread of its own, or here where the system gives no thread.
  explicit DetachedThread(std::function<void()> work);
  ~DetachedThread();
  DetachedThread(const DetachedThread&) = delete;
  DetachedThread& operator=(const DetachedThread&) = delete;

  int descriptor() const;
  bool FinishedWithin(Seconds timeout) const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

// The number of calls whose DetachedCall is gone although they have not returned yet. A program in
// which it is not zero at the end leaves by std::_Exit(): destructors of statics, also those of a
// driver's library, would run beside the threads of these calls.
int AbandonedCalls();

// A call that may take very long or for ever, as one into a driver that hangs. It runs on a thread
// of its own. The owner decides how long to wait; when the owner is destroyed before the call has
// returned, the call is abandoned: its thread goes on, and its value is dropped. The function must
// therefore own or share everything that it uses, and may not throw. Real time only. One owner.
template <typename T>
class DetachedCall {
 public:
  explicit DetachedCall(std::function<T()> function)
      : value_(std::make_shared<std::optional<T>>()),
        thread_([value = value_, function = std::move(function)] { value->emplace(function()); }) {}

  // Readable from when the call has returned: for owners that wait for other things as well.
  int descriptor() const { return thread_.descriptor(); }
  bool FinishedWithin(Seconds timeout) const { return thread_.FinishedWithin(timeout); }

  // Waits for the value; nothing when the call has not returned in time. Gives the value once.
  std::optional<T> TakeWithin(Seconds timeout) {
    if (!FinishedWithin(timeout)) return std::nullopt;
    return std::exchange(*value_, std::nullopt);
  }

 private:
  std::shared_ptr<std::optional<T>> value_;  // Written before the thread says that it is finished.
  DetachedThread thread_;
};

}  // namespace zeus
