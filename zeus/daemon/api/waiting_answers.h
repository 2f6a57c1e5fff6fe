#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "zeus/base/clock.h"
#include "zeus/base/ticker.h"
#include "zeus/http/message.h"
#include "zeus/http/pushed_response.h"

namespace zeus::daemon {

// Answers that wait until something has changed, as a lease until its knobs are set. No thread
// waits with them, and they leave within microseconds after the change. Thread-safe; the clock must
// outlive it, and it must outlive the HTTP server.
class WaitingAnswers {
 public:
  struct Request {
    std::vector<std::string> topics{};                    // Names of what may change.
    std::function<std::optional<http::Answer>()> look{};  // nullopt: not yet. From any thread.
    std::function<http::Answer()> give_up{};              // The answer after the timeout.
    Seconds timeout{10};
  };

  explicit WaitingAnswers(const Clock& clock);
  ~WaitingAnswers();  // Gives up all that still wait.
  WaitingAnswers(const WaitingAnswers&) = delete;
  WaitingAnswers& operator=(const WaitingAnswers&) = delete;

  // Returns the answer if it is there already, else one that is sent later.
  http::Answer Wait(Request request);
  // Something named `topic` has changed.
  void Notify(const std::string& topic);
  // Answers all that wait as if their time had passed: the server is about to stop.
  void GiveUpAll();

  std::size_t size() const;

 private:
  struct Waiter {
    Request request;
    TimePoint until;
    std::shared_ptr<http::PushedResponse> response{};
    std::atomic<bool> done = false;
  };
  using Pointer = std::shared_ptr<Waiter>;

  TimePoint Step();
  void Remove(const Pointer& waiter);
  void LookAt(const Pointer& waiter);

  const Clock& clock_;
  mutable std::mutex mutex_;
  std::multimap<std::string, Pointer> waiters_{};  // By topic. Guarded by mutex_.
  TimePoint next_step_ = Ticker::kWhenWoken;  // The ticker sleeps until then. Guarded by mutex_.
  std::unique_ptr<Ticker> ticker_;            // Ends what waited too long.
};

}  // namespace zeus::daemon
