#pragma once

#include <optional>
#include <string>

#include "zeus/base/clock.h"
#include "zeus/base/units.h"

namespace zeus::cli {

// What a person wants to know while a job runs.
struct TrainStatus {
  std::int64_t recurrence = 0;  // Of this invocation, from 1.
  unsigned recurrences = 0;
  int batch_size = 0;
  int attempt = 0;
  int epoch = 0;
  int max_epochs = 0;
  std::optional<double> metric{};
  double target = 0;
  Joules cost{};
  std::optional<Joules> bound{};
  std::optional<Watts> limit{};
  std::optional<std::string> trouble{};
};

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
  // Makes room for what others print.
  void Hide();

 private:
  const bool active_;
  std::string shown_;
};

}  // namespace zeus::cli
