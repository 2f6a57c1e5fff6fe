#pragma once

#include <algorithm>

#include "zeus/base/units.h"

namespace zeus {

// How long a caller waits for a server that does not answer, and how often it asks again. All
// callers in this tree use one of the policies below.
struct RetryPolicy {
  int attempts = 4;          // The first one included.
  Seconds first_pause{0.1};  // Before the second attempt. Pauses double,
  Seconds longest_pause{5};  // up to this length.
  Seconds connect_timeout{5};
  Seconds answer_timeout{30};
};

// A program waits for the answer and can do nothing without it.
inline constexpr RetryPolicy kRetryUsually{};
// A person waits for the answer, as in `zeus job`.
inline constexpr RetryPolicy kRetryForAPerson{.answer_timeout = Seconds(10)};
// A person looks at a server that answers at once if at all, as in `zeus budget`.
inline constexpr RetryPolicy kRetryForALook{
    .attempts = 2, .connect_timeout = Seconds(1), .answer_timeout = Seconds(2)};
// A training reports in the background, and its TrialReporter repeats what was not answered.
inline constexpr RetryPolicy kRetryInTraining{.attempts = 2, .answer_timeout = Seconds(5)};
// A training asks between two iterations, and asks again after the next one. The second attempt
// forgives one connection that went stale.
inline constexpr RetryPolicy kRetryBetweenIterations{.attempts = 2, .answer_timeout = Seconds(2.5)};
// The server solves a pipeline, which takes minutes, and continues while it is asked again.
inline constexpr RetryPolicy kRetryForAFrontier{
    .attempts = 6, .first_pause = Seconds(0.25), .answer_timeout = Seconds(75)};
// Repeats whole calls until a deadline of the caller: at the start of a run, and for its reports.
inline constexpr RetryPolicy kRetryUntilDeadline{.first_pause = Seconds(0.2)};

// How long the end of a training waits for its last reports to be answered.
inline constexpr Seconds kFlushTimeout{10};
// How long a server that did not answer before is waited for once more.
inline constexpr Seconds kTimeoutOfASilentServer{1};

// The pauses of a policy, one after the other. One owner.
class BackOff {
 public:
  explicit BackOff(const RetryPolicy& policy)
      : first_(policy.first_pause), longest_(policy.longest_pause), next_(first_) {}

  // Returns the pause before the next attempt; the one after it is twice as long.
  Seconds NextPause() {
    const Seconds pause = next_;
    next_ = std::min(2 * next_, longest_);
    return pause;
  }
  void Reset() { next_ = first_; }

 private:
  Seconds first_;
  Seconds longest_;
  Seconds next_;
};

}  // namespace zeus
