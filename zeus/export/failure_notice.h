#pragma once

#include <string>
#include <utility>

#include "zeus/base/log.h"
#include "zeus/base/result.h"

namespace zeus {

// Logs once that something keeps failing, and once that it works again. One owner.
class FailureNotice {
 public:
  // `doing` names the attempt: "write samples.csv", "push to http://…".
  explicit FailureNotice(std::string doing) : doing_(std::move(doing)) {}

  // Records the outcome of an attempt; returns whether it succeeded.
  bool Note(const Status& attempt) {
    if (!attempt.ok()) ++failures_;
    if (attempt.ok() == working_) return working_;
    working_ = attempt.ok();
    if (working_) {
      log::Warning("{}: works again", doing_);
    } else {
      log::Warning("{}: {}: will be tried again", doing_, attempt.error().message);
    }
    return working_;
  }

  bool working() const { return working_; }
  long failures() const { return failures_; }

 private:
  const std::string doing_;
  bool working_ = true;
  long failures_ = 0;
};

}  // namespace zeus
