#pragma once

#include <cstddef>
#include <string>

#include "zeus/session/train_options.h"

namespace zeus::cli {

// One line, at most `width` characters wide: a bar of the recurrences that are done, then the run.
std::string ToLine(const TrainStatus& status, std::size_t width);

// The last line of a terminal on standard error, redrawn in place; nothing elsewhere. One owner.
class StatusLine {
 public:
  enum class Wanted { kYes, kNo };
  explicit StatusLine(Wanted wanted);
  ~StatusLine() { Hide(); }
  StatusLine(const StatusLine&) = delete;
  StatusLine& operator=(const StatusLine&) = delete;

  bool active() const { return active_; }
  void Show(const TrainStatus& status);
  // Makes room for other output.
  void Hide();

 private:
  const bool active_;
  std::string shown_;
};

}  // namespace zeus::cli
