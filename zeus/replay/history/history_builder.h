#pragma once

#include <cstdint>
#include <map>
#include <utility>

#include "zeus/base/result.h"
#include "zeus/replay/history/run_history.h"

namespace zeus::replay {

// The progress of a run at one report: sums since the start of the run.
struct RunProgress {
  int epochs = 0;
  Seconds time{};
  Joules energy{};
  std::optional<Watts> limit{};
};

// Reads an event of kind trial_reported. kInvalidArgument names the field that is wrong.
Result<RunProgress> ReadProgress(const JobEvent& event);

// Builds a history record by record in the order of an export: trials come before the events about
// them. Add() rejects records that no run can have produced (kInvalidArgument), so that later
// computations need no checks. Not thread-safe.
class HistoryBuilder {
 public:
  void SetJob(JobSpec spec) { history_.spec = std::move(spec); }
  Status Add(Trial trial);
  Status Add(JobEvent event);

  // Returns kNotFound when there is no run.
  Result<RunHistory> Finish() &&;

 private:
  struct Run {
    int epochs = 0;  // Epochs of the whole run, valid once it has ended.
    bool ended = false;
    RunProgress latest{};
  };

  RunHistory history_{};
  std::map<std::int64_t, Run> runs_{};  // By trial number.
};

}  // namespace zeus::replay
