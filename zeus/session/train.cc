#include "zeus/session/train.h"

#include <utility>

#include "zeus/base/executable.h"
#include "zeus/base/log.h"
#include "zeus/device/knobs/knob_repair.h"
#include "zeus/monitor/sharing/shared_activity_board.h"
#include "zeus/process/signal_watch.h"
#include "zeus/session/profiled_devices.h"
#include "zeus/session/train_session.h"
#include "zeus/training/profile_folder.h"

namespace zeus {

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

Result<TrainOutcome> Train(TrainOptions options, const TrainPlace& place) {
  if (options.command.empty()) return InvalidArgument("there is no command to train with");
  if (options.command.front().find('{') == std::string::npos) {
    if (auto file = FindExecutable(options.command.front()); !file.ok())
      return std::move(file).error();
  }
  if (options.limit.profiles.empty()) {
    if (const auto folder = ProfileFolder::OfUser(ProcessEnvironment()))
      options.limit.profiles = *folder;
  }
  ActivityGroup::BecomeHost();
  SystemClock clock;
  ZEUS_TRY(const std::unique_ptr<SignalWatch> signals, SignalWatch::WatchNothing());
  ZEUS_TRY(const std::unique_ptr<JobSource> jobs, JobSource::Open(place.jobs, clock));
  (void)RepairTrainLimits(clock, place.driver_timeout);
  ZEUS_TRY(const std::unique_ptr<ProfiledDevices> devices,
           OpenTrainDevices(clock, options, place.gpus, place.driver_timeout));
  TrainListener silent;
  TrainSession session({.clock = clock,
                        .signals = *signals,
                        .service = jobs->service(),
                        .where = jobs->where(),
                        .devices = devices.get(),
                        .listener = place.listener != nullptr ? *place.listener : silent,
                        .stop_requested = place.stop_requested},
                       std::move(options));
  return session.Execute();
}

}  // namespace zeus
