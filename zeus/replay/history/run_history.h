#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "zeus/base/result.h"
#include "zeus/job/job.h"
#include "zeus/replay/replay_job.h"

// Somebody's own recurring job, as it was recorded: a server's, or that of `zeus train`.
namespace zeus::replay {

struct RunHistory {
  JobSpec spec{};
  std::vector<Trial> trials{};
  std::vector<JobEvent> events{};  // What each epoch took; may be empty.
};

// What the runs with one batch size on one GPU model showed.
struct MeasuredArm {
  int batch_size = 0;
  std::vector<std::optional<int>> epochs_to_target{};  // One per run; nullopt: it did not arrive.
  std::vector<LimitRecord> limits{};                   // Ascending, at least one; without costs.
};

struct MeasuredJob {
  JobSpec spec{};
  std::string gpu_model{};
  Watts max_power{};
  std::vector<MeasuredArm> arms{};  // Ascending, at least one.
  std::int64_t recurrences = 0;     // With a run on this GPU model.
  Seconds time{};                   // Of all runs on it, failed ones included.
  Joules energy{};
  std::vector<std::string> remarks{};  // What could not be used, and what was assumed.

  const MeasuredArm& default_arm() const;  // Of the default batch size, or of the nearest one.
};

// `gpu_model` empty: the one with most runs. kNotFound when no run on it came to an end.
Result<MeasuredJob> MeasureHistory(const RunHistory& history, std::string_view gpu_model);

}  // namespace zeus::replay
