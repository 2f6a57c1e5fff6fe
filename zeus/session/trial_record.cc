#include "zeus/session/trial_record.h"

#include <fmt/format.h>

#include <system_error>

#include "zeus/base/file.h"
#include "zeus/base/json.h"
#include "zeus/base/user_files.h"

namespace zeus {
namespace {

Json ToJson(const RunningTrial& trial) {
  return {{"schema", "zeus.running_trial/1"},
          {"where", trial.where},
          {"job", trial.job},
          {"request", trial.request},
          {"trial", trial.trial},
          {"pid", trial.runner.pid},
          {"start_ticks", trial.runner.start_ticks},
          {"pid_namespace", trial.runner.pid_namespace}};
}

Result<RunningTrial> Read(const std::filesystem::path& file) {
  ZEUS_TRY(const std::string text, ReadSmallFile(file));
  ZEUS_TRY(const Json json, ParseJson(text));
  RunningTrial trial;
  ZEUS_TRY(trial.where, GetField<std::string>(json, "where"));
  ZEUS_TRY(trial.job, GetField<std::string>(json, "job"));
  ZEUS_TRY(trial.request, GetField<std::string>(json, "request"));
  ZEUS_TRY(trial.trial, GetField<std::int64_t>(json, "trial"));
  ZEUS_TRY(trial.runner.pid, GetField<std::int64_t>(json, "pid"));
  ZEUS_TRY(trial.runner.start_ticks, GetField<std::uint64_t>(json, "start_ticks"));
  ZEUS_TRY(trial.runner.pid_namespace, GetField<std::string>(json, "pid_namespace"));
  return trial;
}

}  // namespace

std::filesystem::path TrialRecords::FileOf(const RunningTrial& trial) const {
  return folder_ / fmt::format("{}-{}.json", FileNamePart(trial.job), FileNamePart(trial.request));
}

Status TrialRecords::Add(const RunningTrial& trial) const {
  std::error_code error;
  std::filesystem::create_directories(folder_, error);
  if (error) return FileError(folder_, error.value());
  return ReplaceFile(FileOf(trial), JsonText(ToJson(trial), 2) + "\n", Readers::kOwnerOnly);
}

void TrialRecords::Remove(const RunningTrial& trial) const {
  std::error_code ignored;
  std::filesystem::remove(FileOf(trial), ignored);
}

std::vector<RunningTrial> TrialRecords::Orphans(const std::string& where,
                                                const std::string& job) const {
  std::vector<RunningTrial> orphans;
  std::error_code error;
  for (const auto& file : std::filesystem::directory_iterator(folder_, error)) {
    if (file.path().extension() != ".json") continue;
    const auto trial = Read(file.path());
    if (trial.ok() && trial.value().where == where && trial.value().job == job &&
        !IsRunning(trial.value().runner))
      orphans.push_back(trial.value());
  }
  return orphans;
}

}  // namespace zeus
