#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "zeus/base/file.h"
#include "zeus/base/process.h"
#include "zeus/job/job.h"

namespace zeus {

// The task of a scheduler that this process runs. A task may be begun again (requeued after a
// preemption or the death of its node), perhaps elsewhere; then it has the same name and a greater
// start.
struct ScheduledTask {
  std::string name{};  // "slurm:zeus.1234_7"
  int start = 0;       // How often it was begun again.
};

// Reads the variables of Slurm; nullopt outside of its jobs. The tasks of an array that was
// submitted to retry another one have the names of that one (ZEUS_SLURM_FIRST, ZEUS_SLURM_RETRY).
std::optional<ScheduledTask> FindScheduledTask(const Environment& environment);

// The request of a trial that a task asks for. It says which recurrence of the task the trial
// belongs to, so that a later start of the task goes on where this one ended, and no recurrence is
// lost or begun twice. A task may run the same job several times, one after the other.
struct TaskRequest {
  ScheduledTask task{};
  int call = 1;             // Counts the runs of the job in this start of the task, from 1.
  unsigned recurrence = 1;  // Counts the recurrences of the call.
};
// `unique` tells two processes apart that take each other's place.
std::string ToText(const TaskRequest& request, const std::string& unique);
// nullopt for a request of another task or of none.
std::optional<TaskRequest> ParseTaskRequest(const std::string& text, const std::string& task);

// Earlier starts of a task have left this: the latest trial of each recurrence of the call that is
// about to begin, and which call it is.
struct TaskPast {
  int call = 1;
  std::map<unsigned, Trial> latest{};
  std::vector<Trial> unfinished{};  // Their runners are gone.
};
TaskPast PastOf(const ScheduledTask& task, const std::vector<Trial>& trials);

}  // namespace zeus
