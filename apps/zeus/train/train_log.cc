#include "apps/zeus/train/train_log.h"

#include <cstdio>
#include <optional>
#include <utility>

#include "apps/zeus/terminal.h"
#include "zeus/base/json.h"
#include "zeus/base/text.h"
#include "zeus/base/wall_time_text.h"
#include "zeus/device/knobs/knob_repair.h"
#include "zeus/session/limit_follower.h"
#include "zeus/wire/answers.h"

namespace zeus::cli {
namespace {

constexpr const char* kStartOfLine = "{\"time\":";

Json OrNull(const std::optional<double>& value) { return value ? FiniteOrNull(*value) : Json(); }
Json OrNull(const std::optional<std::string>& text) { return text ? Json(*text) : Json(); }

bool SameRun(const TrainStatus& a, const TrainStatus& b) {
  return a.recurrence == b.recurrence && a.attempt == b.attempt && a.batch_size == b.batch_size;
}

const char* EventOf(const TrainStatus& status, const TrainStatus& before) {
  if (!SameRun(status, before)) return "run_started";
  return status.epoch == before.epoch ? "service_answers" : "epoch";
}

}  // namespace

Result<std::unique_ptr<TrainLog>> TrainLog::Open(const std::filesystem::path& file, std::string job,
                                                 const Clock& clock, TrainListener& next) {
  std::unique_ptr<AppendOnlyFile> opened;
  if (file != "-") {
    ZEUS_TRY(opened, AppendOnlyFile::Open(file, "", kStartOfLine));
  }
  return std::unique_ptr<TrainLog>(new TrainLog(std::move(opened), std::move(job), clock, next));
}

TrainLog::TrainLog(std::unique_ptr<AppendOnlyFile> file, std::string job, const Clock& clock,
                   TrainListener& next)
    : file_(std::move(file)),
      notice_("write " + (file_ ? Printable(file_->path().string()) : "standard error")),
      job_(std::move(job)),
      clock_(clock),
      next_(next) {}

void TrainLog::Write(const char* event, Json fields) {
  // The time stands first, so that lines can be told from those of other programs.
  std::string line = kStartOfLine + JsonText(Json(ToExactText(clock_.WallNow())));
  line += ",\"event\":" + JsonText(Json(event)) + ",\"job\":" + JsonText(Json(job_));
  const std::string rest = JsonText(fields);
  line += rest == "{}" ? rest.substr(1) : "," + rest.substr(1);
  if (file_)
    notice_.Note(file_->Append(line));
  else
    Show(stderr, line + "\n");
}

void TrainLog::OnStatus(const TrainStatus& status) {
  next_.OnStatus(status);
  const bool anew = !SameRun(status, written_);
  if (!anew && status.epoch == written_.epoch &&
      status.waiting_for_service == written_.waiting_for_service)
    return;
  const bool waits = status.waiting_for_service && !written_.waiting_for_service;
  const TrainStatus before = std::exchange(written_, status);
  Write(waits ? "waiting_for_service" : EventOf(status, before),
        {{"recurrence", status.recurrence},
         {"attempt", status.attempt},
         {"batch_size", status.batch_size},
         {"epoch", status.epoch},
         {"max_epochs", status.max_epochs},
         {"metric", OrNull(status.metric)},
         {"target", FiniteOrNull(status.target)},
         {"cost_joules", FiniteOrNull(status.cost.value())},
         {"cost_bound_joules", status.bound ? FiniteOrNull(status.bound->value()) : Json()},
         {"power_limit_watts", status.limit ? FiniteOrNull(status.limit->value()) : Json()}});
}

void TrainLog::OnLimitRepaired(const KnobRepair& repair) {
  next_.OnLimitRepaired(repair);
  Write("limit_repaired", {{"message", ToText(repair)}});
}

void TrainLog::OnOrphanEnded(std::int64_t trial) {
  next_.OnOrphanEnded(trial);
  Write("orphan_ended", {{"trial", trial}});
}

void TrainLog::OnTrialEnded(const TrialOutcome& outcome) {
  next_.OnTrialEnded(outcome);
  const auto trouble = outcome.limit_trouble ? Json(outcome.limit_trouble->message) : Json();
  Write("run_ended", {{"trial", wire::ToJson(outcome.trial)},
                      {"retry", outcome.retry},
                      {"exit_code", outcome.exit_code ? Json(*outcome.exit_code) : Json()},
                      {"failure", OrNull(outcome.failure)},
                      {"limit_trouble", trouble},
                      {"limit_left_changed", outcome.limit_left_changed}});
}

void TrainLog::OnTargetMissed(unsigned recurrence, unsigned runs) {
  next_.OnTargetMissed(recurrence, runs);
  Write("target_missed", {{"recurrence", recurrence}, {"runs", runs}});
}

void TrainLog::OnStartPlanned(const StartAdvice& advice, WallTime now) {
  next_.OnStartPlanned(advice, now);
  Write("start_planned", ToJson(advice));
}

void TrainLog::OnShiftTrouble(const Error& reason, bool planned) {
  next_.OnShiftTrouble(reason, planned);
  Write("no_forecast", {{"message", reason.message}, {"planned", planned}});
}

void TrainLog::OnShiftJudged(const ShiftReport& report) {
  next_.OnShiftJudged(report);
  Write("shift_judged", ToJson(report));
}

void TrainLog::OnFollowed(const FollowReport& report) {
  next_.OnFollowed(report);
  Write("limit_followed", {{"message", ToSentence(report)}});
}

}  // namespace zeus::cli
