#include "apps/zeus/run/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <utility>

#include "apps/zeus/command_line.h"
#include "apps/zeus/exit_code.h"
#include "apps/zeus/output.h"
#include "apps/zeus/output_file.h"
#include "apps/zeus/terminal.h"
#include "zeus/base/json.h"
#include "zeus/base/process.h"
#include "zeus/monitor/sharing/shared_activity_board.h"

namespace zeus::cli {

Cooldown::Cooldown(std::vector<Celsius> start) : start_(std::move(start)) {}

bool Cooldown::MayBegin(TimePoint now, const std::vector<Celsius>& temperatures) {
  // A GPU was lost or came back: what remains cannot be compared.
  if (temperatures.size() != start_.size()) return true;
  recent_.emplace_back(now, temperatures);
  // The oldest kept reading is the last one that is at least kSteadyTime old.
  while (recent_.size() > 1 && now - recent_[1].first >= kSteadyTime) recent_.pop_front();
  return BackAtStart(temperatures) || Steady();
}

bool Cooldown::BackAtStart(const std::vector<Celsius>& temperatures) const {
  return std::ranges::equal(temperatures, start_,
                            [](Celsius now, Celsius start) { return now <= start + kTolerance; });
}

bool Cooldown::Steady() const {
  if (recent_.back().first - recent_.front().first < kSteadyTime) return false;
  for (std::size_t gpu = 0; gpu < start_.size(); ++gpu) {
    const auto of_gpu = [gpu](const auto& reading) { return reading.second[gpu]; };
    const auto [low, high] = std::ranges::minmax_element(recent_, {}, of_gpu);
    if (of_gpu(*high) - of_gpu(*low) > kSteady) return false;
  }
  return true;
}

namespace {

constexpr int kInterruptedExitCode = 128;
constexpr Seconds kTemperatureInterval{0.5};

}  // namespace

RunSession::RunSession(const RunOptions& options, Clock& clock, SignalWatch& signals,
                       RunMeter& meter, const CarbonAccounting& carbon)
    : options_(options), clock_(clock), signals_(signals), meter_(meter), carbon_(carbon) {
  report_.command = options.command;
  report_.label = options.label;
  report_.host = HostName();
  report_.devices = meter.Devices();
  report_.remarks = meter.remarks();
  for (std::string& remark : RemarksOnWishes()) report_.remarks.push_back(std::move(remark));
  report_.planned_runs = options.repeat;
  report_.warmup_runs = options.warmup;
}

bool RunSession::Pause(Seconds time) {
  const TimePoint end = clock_.Now() + time;
  for (TimePoint now = clock_.Now(); now < end; now = clock_.Now()) {
    const auto signal = signals_.NextWithin(end - now);
    if (!signal || !AsksToEnd(static_cast<int>(signal->ssi_signo))) continue;
    exit_code_ = kInterruptedExitCode + static_cast<int>(signal->ssi_signo);
    return false;
  }
  return true;
}

// One value is for every GPU; several are for the measured GPUs, in their order.
Status RunSession::GiveIdle() {
  std::vector<std::string> gpus;
  for (const DeviceIdentity& device : report_.devices)
    if (device.device.starts_with("gpu:")) gpus.push_back(device.device);
  const std::vector<Watts>& given = options_.given_idle;
  if (given.size() > 1 && given.size() != gpus.size()) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("--subtract-idle gives {} values for {} GPUs: give one for all or one "
                             "for each",
                             given.size(), gpus.size())};
  }
  for (std::size_t i = 0; i < gpus.size(); ++i)
    report_.idle.push_back({gpus[i], given[given.size() > 1 ? i : 0], Watts(0)});
  return Ok();
}

// Whether a signal asked Zeus to end while the meter waited for a driver; then the exit code says
// so.
bool RunSession::AskedToEnd() {
  const std::optional<int> signal = meter_.asked_to_end();
  if (signal) exit_code_ = kInterruptedExitCode + *signal;
  return signal.has_value();
}

bool RunSession::MeasureIdle() {
  meter_.Begin();
  if (!Pause(*options_.measure_idle)) return false;
  const Measurement idle = meter_.End(Refinement::kAuto);
  if (AskedToEnd()) return false;
  for (const DeviceMeasurement& device : idle.devices) {
    if (!device.energy.ok()) continue;
    report_.idle.push_back({device.device, device.energy.value().energy / idle.time,
                            device.energy.value().sigma / idle.time});
  }
  return true;
}

bool RunSession::CoolDown(const std::vector<Celsius>& start) {
  if (options_.cooldown) return Pause(*options_.cooldown);
  Cooldown cooldown(start);
  const TimePoint limit = clock_.Now() + options_.cooldown_limit;
  while (!cooldown.MayBegin(clock_.Now(), meter_.Temperatures()) && clock_.Now() < limit)
    if (AskedToEnd() || !Pause(kTemperatureInterval)) return false;
  return !AskedToEnd();
}

Result<ChildOutcome> RunSession::Once(Measurement& measurement) {
  meter_.Begin();
  ChildOptions child_options = options_.child;
  if (std::string group = ActivityGroup::VariableOfMembers(); !group.empty())
    child_options.environment.push_back(std::move(group));
  ZEUS_TRY(Child child, Child::Start(options_.command, signals_, child_options));
  const ChildOutcome outcome = child.Wait();
  measurement = meter_.End(options_.refinement);
  return outcome;
}

void RunSession::WriteResults() {
  if (carbon_.wanted()) report_.carbon = ReportCarbon(carbon_, MeanRun(report_.runs).measurement);
  const auto remember = [this](const Status& status) {
    if (!status.ok()) not_written_ = status.error();
  };
  if (!options_.csv.empty())
    remember(Append(options_.csv, CsvHeader(), ToCsv(report_, report_.runs.size() - 1)));
  // After each run, so that a long series that is broken off leaves what it has.
  if (!options_.json.empty() && options_.json != "-")
    remember(WriteWhole(options_.json, JsonText(ToJson(report_), 2) + "\n"));
}

Result<int> RunSession::Execute() {
  if (AskedToEnd()) return exit_code_;
  if (!options_.given_idle.empty()) ZEUS_RETURN_IF_ERROR(GiveIdle());
  if (options_.measure_idle && !MeasureIdle()) return exit_code_;
  const unsigned rounds = options_.warmup + options_.repeat.value_or(1);
  bool go_on = true;
  for (unsigned round = 0; round < rounds && go_on; ++round) {
    ZEUS_TRY(go_on, Round(round));
  }
  return Finish();
}

Result<bool> RunSession::Round(unsigned round) {
  if (round > options_.warmup && !CoolDown(start_)) return false;
  // Only a pause of unknown length compares temperatures.
  if (round <= options_.warmup && !options_.cooldown) start_ = meter_.Temperatures();
  if (AskedToEnd()) return false;
  Measurement measurement;
  auto outcome = Once(measurement);
  if (!outcome.ok()) {
    if (round == 0) return std::move(outcome).error();
    not_written_ = std::move(outcome).error();
    return false;
  }
  exit_code_ = outcome.value().exit_code;
  if (round >= options_.warmup) {
    report_.runs.push_back({exit_code_, std::move(measurement)});
    WriteResults();
  }
  // A failed run is not repeated, and an interruption ends all runs.
  return exit_code_ == 0 && !outcome.value().interrupted && !meter_.asked_to_end();
}

int RunSession::Finish() {
  if (report_.runs.empty()) return exit_code_;
  if (!options_.quiet) Show(stderr, ToTable(report_));
  if (options_.explain) Show(stderr, ToExplanation(report_));
  if (options_.json == "-") PrintJson(ToJson(report_));
  if (!not_written_) return exit_code_;
  Complain("zeus", *not_written_);
  return exit_code_ != 0 ? exit_code_ : ExitCode(ErrorCode::kUnavailable);
}

}  // namespace zeus::cli
