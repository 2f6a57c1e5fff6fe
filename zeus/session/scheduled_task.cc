#include "zeus/session/scheduled_task.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <string_view>
#include <utility>

#include "zeus/base/text.h"

namespace zeus {
namespace {

std::string ValueOf(const Environment& environment, const char* variable) {
  return environment(variable).value_or("");
}

// Malformed numbers count as 0: a run must not fail because of them.
int NumberIn(const Environment& environment, const char* variable) {
  const auto number = ParseUnsigned(ValueOf(environment, variable));
  constexpr std::uint64_t kMost = 999'999;
  return number.ok() && number.value() <= kMost ? static_cast<int>(number.value()) : 0;
}

// Takes "<mark><number>-" from the front of the text.
std::optional<int> TakeNumber(std::string_view& text, char mark) {
  const std::size_t end = text.find('-');
  if (text.empty() || text.front() != mark || end == std::string_view::npos) return std::nullopt;
  const auto number = ParseUnsigned(text.substr(1, end - 1));
  if (!number.ok() || number.value() > std::numeric_limits<int>::max()) return std::nullopt;
  text.remove_prefix(end + 1);
  return static_cast<int>(number.value());
}

}  // namespace

std::optional<ScheduledTask> FindScheduledTask(const Environment& environment) {
  const std::string job = ValueOf(environment, "SLURM_JOB_ID");
  if (job.empty()) return std::nullopt;
  std::string number = FileNamePart(job);
  const std::string first = ValueOf(environment, "ZEUS_SLURM_FIRST");
  const std::string array = first.empty() ? ValueOf(environment, "SLURM_ARRAY_JOB_ID") : first;
  if (const std::string index = ValueOf(environment, "SLURM_ARRAY_TASK_ID");
      !array.empty() && !index.empty())
    number = FileNamePart(array) + "_" + FileNamePart(index);
  else if (!first.empty())
    number = FileNamePart(first);
  ScheduledTask task{.name = fmt::format("slurm:{}.{}",
                                         FileNamePart(ValueOf(environment, "SLURM_CLUSTER_NAME")),
                                         number)};
  // The tasks of a step run beside each other.
  if (!ValueOf(environment, "SLURM_STEP_NUM_TASKS").empty())
    task.name += fmt::format(".{}.{}", FileNamePart(ValueOf(environment, "SLURM_STEP_ID")),
                             FileNamePart(ValueOf(environment, "SLURM_PROCID")));
  constexpr int kStartsOfAnArray = 1000;
  task.start = NumberIn(environment, "ZEUS_SLURM_RETRY") * kStartsOfAnArray +
               NumberIn(environment, "SLURM_RESTART_COUNT");
  return task;
}

std::string ToText(const TaskRequest& request, const std::string& unique) {
  return fmt::format("{}-s{}-c{}-n{}-{}", request.task.name, request.task.start, request.call,
                     request.recurrence, unique);
}

std::optional<TaskRequest> ParseTaskRequest(const std::string& text, const std::string& task) {
  std::string_view rest = text;
  if (!rest.starts_with(task) || rest.size() <= task.size() || rest[task.size()] != '-')
    return std::nullopt;
  rest.remove_prefix(task.size() + 1);
  const auto start = TakeNumber(rest, 's');
  const auto call = start ? TakeNumber(rest, 'c') : std::nullopt;
  const auto recurrence = call ? TakeNumber(rest, 'n') : std::nullopt;
  if (!recurrence) return std::nullopt;
  return TaskRequest{.task = {.name = task, .start = *start},
                     .call = *call,
                     .recurrence = static_cast<unsigned>(*recurrence)};
}

TaskPast PastOf(const ScheduledTask& task, const std::vector<Trial>& trials) {
  std::vector<std::pair<TaskRequest, const Trial*>> own;
  TaskPast past;
  for (const Trial& trial : trials) {
    auto request = ParseTaskRequest(trial.request_id, task.name);
    if (!request) continue;
    if (request->task.start == task.start) past.call = std::max(past.call, request->call + 1);
    own.emplace_back(*std::move(request), &trial);
  }
  for (const auto& [request, trial] : own) {
    if (request.task.start >= task.start) continue;
    if (!IsFinal(trial->status)) past.unfinished.push_back(*trial);
    if (request.call != past.call) continue;
    Trial& latest = past.latest[request.recurrence];
    if (trial->number > latest.number) latest = *trial;
  }
  return past;
}

}  // namespace zeus
