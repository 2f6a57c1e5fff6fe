#include "zeus/session/train.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "zeus/base/detached_call.h"
#include "zeus/base/log.h"
#include "zeus/base/process.h"
#include "zeus/device/knobs/knob_repair.h"
#include "zeus/monitor/sharing/shared_activity_board.h"
#include "zeus/process/signal_watch.h"
#include "zeus/session/profiled_devices.h"
#include "zeus/session/train_session.h"
#include "zeus/training/profile_folder.h"

namespace zeus {
namespace {

// Less would give up on servers that are only busy.
constexpr Seconds kShortestAnswer{1};

constexpr double kLargestLearningRate = 1000;
constexpr double kMostWatts = 1e7;

// For callers without a listener: what they would not learn otherwise is logged.
class LimitTroubleLog final : public TrainListener {
 public:
  void OnTrialEnded(const TrialOutcome& outcome) override {
    if (outcome.limit_trouble && !std::exchange(logged_, true))
      log::Warning("the power limit is {}: {}",
                   outcome.limit_left_changed ? "not what it was" : "left alone",
                   outcome.limit_trouble->message);
  }

 private:
  bool logged_ = false;
};

// Restores limits that a killed run left changed, and returns what was done. Failures are logged.
std::vector<KnobRepair> RepairTrainLimits(Clock& clock, Seconds driver_timeout) {
  const auto folder = KnobFolder();
  if (!folder.ok()) return {};
  KnobJournal journal(clock, folder.value());
  Surroundings surroundings = RealSurroundings(clock);
  surroundings.answer_within = driver_timeout;
  auto repairs = RepairKnobs(journal, surroundings);
  if (repairs.ok()) return std::move(repairs).value();
  log::Warning("{}", repairs.error().message);
  return {};
}

// Opens the GPUs whose energy and power limit belong to a run; all of them when not chosen by
// number. Null when this machine has none: the command may report its own energy.
Result<std::unique_ptr<ProfiledDevices>> OpenTrainDevices(Clock& clock, const TrainOptions& options,
                                                          const TrainPlace& place) {
  auto devices = ProfiledDevices::Open(clock, {.gpus = place.gpus,
                                               .ceiling = options.limit.ceiling,
                                               .driver_timeout = place.driver_timeout,
                                               .guard_knob = place.signals == nullptr});
  if (devices.ok() || place.gpus || devices.error().code != ErrorCode::kNotFound) return devices;
  // Without a place to note what is to be restored, no GPU is opened either.
  if (auto folder = KnobFolder(); !folder.ok() && options.spec.gpu_model.empty())
    return std::move(folder).error();
  return std::unique_ptr<ProfiledDevices>();
}

// Closes the devices on a thread of their own: a driver that hangs does not hold up the caller.
struct ClosedInTime {
  std::shared_ptr<ProfiledDevices> devices;
  Seconds timeout;
  ~ClosedInTime() {
    const DetachedCall<bool> closing([held = std::move(devices)]() mutable {
      held.reset();
      return true;
    });
    (void)closing.FinishedWithin(timeout);
  }
};

}  // namespace

Status FindTrainCommand(const TrainOptions& options) {
  if (options.command.empty()) return InvalidArgument("there is no command to train with");
  if (options.command.front().find('{') != std::string::npos) return Ok();
  auto file = FindExecutable(options.command.front());
  return file.ok() ? Ok() : Status(std::move(file).error());
}

Status CheckTrainOptions(const TrainOptions& options) {
  if (std::ranges::any_of(options.command, [](const std::string& word) {
        return word.find('\0') != std::string::npos;
      }))
    return InvalidArgument("a word of the command contains a NUL, where the system would cut it");
  if (options.spec.batch_sizes.size() > 1 && !options.no_placeholder &&
      !Contains(options.command, "batch_size"))
    return InvalidArgument(
        "the command does not contain {batch_size}: put it where the batch size belongs, or say "
        "--no-placeholder if it reads ZEUS_BATCH_SIZE");
  if (Contains(options.command, "lr") && !options.learning_rate)
    return InvalidArgument(
        "the command contains {lr}: say with --lr what it is for the default batch size");
  if (options.learning_rate &&
      !(*options.learning_rate >= 0 && *options.learning_rate <= kLargestLearningRate))
    return InvalidArgument(fmt::format("--lr is a number from 0 to {:g}, not {:g}",
                                       kLargestLearningRate, *options.learning_rate));
  if (options.metric && !options.metric_file.empty())
    return InvalidArgument(
        "--metric-regex and --metric-file both tell the metric: give one of them");
  const double watts = options.limit.fixed.value();
  if (options.limit.mode == LimitMode::kFixed && !(watts > 0 && watts <= kMostWatts))
    return InvalidArgument(
        fmt::format("--power-limit is a number of watts greater than 0, not {:g}", watts));
  return Ok();
}

Result<TrainOutcome> Train(TrainOptions options, const TrainPlace& place) {
  ZEUS_RETURN_IF_ERROR(CheckTrainOptions(options));
  ZEUS_RETURN_IF_ERROR(FindTrainCommand(options));
  if (options.shift && (place.forecasts == nullptr || place.carbon == nullptr))
    return InvalidArgument("shifting needs forecasts, and a source of what really comes");
  if (options.limit.profiles.empty()) {
    if (const auto folder = ProfileFolder::OfUser(ProcessEnvironment()))
      options.limit.profiles = *folder;
  }
  static SystemClock clock;  // A step that a driver holds up may need it after the call.
  LimitTroubleLog log_only;
  TrainListener& listener = place.listener != nullptr ? *place.listener : log_only;
  ZEUS_TRY(const std::unique_ptr<SignalWatch> no_signals, SignalWatch::WatchNothing());
  std::unique_ptr<JobSource> opened;
  if (place.open_jobs == nullptr) {
    JobSourceOptions source = place.jobs;
    source.retry = kRetryInTraining;
    source.retry.answer_timeout =
        std::clamp(options.server_wait, kShortestAnswer, kRetryForAPerson.answer_timeout);
    ZEUS_TRY(opened, JobSource::Open(source, clock));
  }
  JobSource& jobs = place.open_jobs != nullptr ? *place.open_jobs : *opened;
  for (const KnobRepair& repair : RepairTrainLimits(clock, place.driver_timeout))
    listener.OnLimitRepaired(repair);
  const ActivityGroup group = ActivityGroup::NewHost();
  std::optional<ScopedActivityGroup> monitors_of_this_session(group);
  ZEUS_TRY(std::unique_ptr<ProfiledDevices> opened_devices,
           OpenTrainDevices(clock, options, place));
  monitors_of_this_session.reset();
  const ClosedInTime open{std::move(opened_devices), place.driver_timeout};
  listener.OnDevicesOpened(open.devices.get());
  TrainSession session({.clock = clock,
                        .signals = place.signals != nullptr ? *place.signals : *no_signals,
                        .service = jobs.service(),
                        .where = jobs.where(),
                        .devices = open.devices,
                        .driver_timeout = place.driver_timeout,
                        .activity_group = group.Variable(),
                        .listener = listener,
                        .stop_requested = place.stop_requested,
                        .forecasts = place.forecasts,
                        .carbon = place.carbon},
                       std::move(options));
  return session.Execute();
}

}  // namespace zeus
