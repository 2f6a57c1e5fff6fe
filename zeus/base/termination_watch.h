#pragma once

#include <atomic>
#include <functional>
#include <memory>

#include "zeus/base/file_descriptor.h"
#include "zeus/base/result.h"
#include "zeus/base/ticker.h"

namespace zeus {

// Lets a library clean up when SIGINT, SIGTERM or SIGHUP ends the program: calls `clean_up` on a
// thread of its own, where locks and drivers may be used, and then delivers the signal as if
// nothing had happened: the program's own handler is called, or the program ends by the signal.
// Signals that are ignored (nohup) stay ignored. It fires once; Arm() makes it ready again for a
// program that went on. A fork()ed child has no such thread: there the signal acts at once.
//
// Programs that wait for signals in their own main loop do not need it. At most one per process,
// because a signal has one handler.
class TerminationWatch {
 public:
  static Result<std::unique_ptr<TerminationWatch>> Start(std::function<void()> clean_up);
  ~TerminationWatch();  // Restores the previous handlers.
  TerminationWatch(const TerminationWatch&) = delete;
  TerminationWatch& operator=(const TerminationWatch&) = delete;

  void Arm();

 private:
  TerminationWatch(std::function<void()> clean_up, int read_end, int write_end);

  // Waits for a signal and passes it on; the thread's step.
  TimePoint Step();
  void Disarm();
  void WakeToStop();

  const std::function<void()> clean_up_;
  const FileDescriptor read_end_;
  const FileDescriptor write_end_;
  std::atomic<bool> armed_{false};
  std::unique_ptr<Ticker> thread_;
};

}  // namespace zeus
