#include "zeus/session/train.h"

#include <utility>

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
Result<std::unique_ptr<ProfiledDevices>> OpenTrainDevices(
    Clock& clock, const TrainOptions& options, const std::optional<std::vector<unsigned>>& gpus,
    Seconds driver_timeout) {
  auto devices = ProfiledDevices::Open(
      clock, {.gpus = gpus, .ceiling = options.limit.ceiling, .driver_timeout = driver_timeout});
  if (devices.ok() || gpus || devices.error().code != ErrorCode::kNotFound) return devices;
  // Without a place to note what is to be restored, no GPU is opened either.
  if (auto folder = KnobFolder(); !folder.ok() && options.spec.gpu_model.empty())
    return std::move(folder).error();
  return std::unique_ptr<ProfiledDevices>();
}

}  // namespace

Status FindTrainCommand(const TrainOptions& options) {
  if (options.command.empty()) return InvalidArgument("there is no command to train with");
  if (options.command.front().find('{') != std::string::npos) return Ok();
  auto file = FindExecutable(options.command.front());
  return file.ok() ? Ok() : Status(std::move(file).error());
}

Result<TrainOutcome> Train(TrainOptions options, const TrainPlace& place) {
  ZEUS_RETURN_IF_ERROR(FindTrainCommand(options));
  if (options.limit.profiles.empty()) {
    if (const auto folder = ProfileFolder::OfUser(ProcessEnvironment()))
      options.limit.profiles = *folder;
  }
  ActivityGroup::BecomeHost();
  SystemClock clock;
  TrainListener silent;
  TrainListener& listener = place.listener != nullptr ? *place.listener : silent;
  ZEUS_TRY(const std::unique_ptr<SignalWatch> no_signals, SignalWatch::WatchNothing());
  std::unique_ptr<JobSource> opened;
  if (place.open_jobs == nullptr) {
    ZEUS_TRY(opened, JobSource::Open(place.jobs, clock));
  }
  JobSource& jobs = place.open_jobs != nullptr ? *place.open_jobs : *opened;
  for (const KnobRepair& repair : RepairTrainLimits(clock, place.driver_timeout))
    listener.OnLimitRepaired(repair);
  ZEUS_TRY(const std::unique_ptr<ProfiledDevices> devices,
           OpenTrainDevices(clock, options, place.gpus, place.driver_timeout));
  listener.OnDevicesOpened(devices.get());
  TrainSession session({.clock = clock,
                        .signals = place.signals != nullptr ? *place.signals : *no_signals,
                        .service = jobs.service(),
                        .where = jobs.where(),
                        .devices = devices.get(),
                        .listener = listener,
                        .stop_requested = place.stop_requested},
                       std::move(options));
  return session.Execute();
}

}  // namespace zeus
