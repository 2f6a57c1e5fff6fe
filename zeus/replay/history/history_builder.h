#pragma once

#include <cstdint>
#include <map>
#include <utility>

#include "zeus/base/result.h"
#include "zeus/replay/history/run_history.h"

namespace zeus::replay {

// What a report says of a run so far.
struct RunProgress {
  int epochs = 0;
  Seconds time{};
  Joules energy{};
  std::optional<Watts> limit{};
};

// Of an event of kind trial_reported. kInvalidArgument names the field that makes no sense.
Result<RunProgress> ProgressOf(const JobEvent& event);

// A history, record by record as it was exported: trials before the events about them. Each Add()
// refuses what no run can have done (kInvalidArgument), so that nobody computes with it. One owner.
class HistoryBuilder {
 public:
  void SetJob(JobSpec spec) { history_.spec = std::move(spec); }
  Status Add(Trial trial);
  Status Add(JobEvent event);

  // kNotFound when there is no run.
  Result<RunHistory> Finish() &&;

 private:
  struct Run {
    int epochs = 0;      // Of the whole run …
    bool ended = false;  // … when it has ended.
    RunProgress latest{};
  };

  RunHistory history_{};
  std::map<std::int64_t, Run> runs_{};  // By number.
};

}  // namespace zeus::replay
