#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <system_error>
#include <utility>

#include "zeus/base/field_reader.h"
#include "zeus/base/file.h"
#include "zeus/base/json.h"
#include "zeus/base/log.h"
#include "zeus/base/text.h"
#include "zeus/daemon/api/daemon.h"
#include "zeus/daemon/trusted_file.h"

// Jobs of schedulers: their devices by the scheduler's names, their limits, messages of hooks that
// found no daemon, and energy that was used while there was none.
namespace zeus::daemon {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kPendingLimit = std::size_t{64} * 1024;
constexpr Seconds kCounterAge{0.1};  // A counter is no older when it is kept.

}  // namespace

Result<std::vector<std::string>> Daemon::DevicesAt(
    const std::vector<std::int64_t>& positions) const {
  const std::vector<std::string> listed = configuration()->slurm_gpus;
  std::vector<std::string> devices;
  for (const std::int64_t position : positions) {
    if (position < 0 || (!listed.empty() && position >= std::ssize(listed)))
      return InvalidArgument(fmt::format(
          "gpu_positions: {}: [slurm] gpus of zeusd.toml lists {} GPUs", position, listed.size()));
    const std::string wanted = listed.empty() ? fmt::format("/dev/nvidia{}", position)
                                              : listed[static_cast<std::size_t>(position)];
    const auto found = std::ranges::find_if(devices_->gpus(), [&](const NodeDevice& device) {
      const auto file = options_.device_files.find(device.id);
      return device.id == wanted || device.gpu->identity().pci_address == wanted ||
             (file != options_.device_files.end() && file->second == wanted);
    });
    if (found == devices_->gpus().end())
      return InvalidArgument(fmt::format(
          "gpu_positions: {}: there is no GPU {} on this machine: list the GPUs of gres.conf under "
          "[slurm] gpus in zeusd.toml",
          position, Quote(wanted)));
    devices.push_back(found->id);
  }
  return devices;
}

// Returns why the limit is not set, else "".
std::string Daemon::LimitJob(const Caller& caller, const Grant& grant, const JobSpec& spec) {
  if (!spec.power_limit || spec.devices.empty()) return "";
  wire::LeaseSpec lease{.name = "power limit of " + spec.id,
                        .holder = wire::HolderKind::kJob,
                        .job = spec.id,
                        .lease_class = wire::LeaseClass::kJob};
  for (const std::string& device : spec.devices)
    lease.requests.push_back({.key = {.device = device, .knob = wire::LeaseKnob::kGpuPowerLimit},
                              .demand = wire::AtMost{Setting(*spec.power_limit)}});
  const auto created = Create(caller, grant, lease);
  const auto* refusal = std::get_if<wire::LeaseRefusal>(&created);
  return refusal == nullptr ? "" : refusal->message;
}

Result<Daemon::JobStart> Daemon::BeginJob(const Caller& caller, const Grant& grant, JobSpec spec,
                                          std::optional<WallTime> begun) {
  if (!spec.gpu_positions.empty()) {
    ZEUS_TRY(const auto devices, DevicesAt(std::exchange(spec.gpu_positions, {})));
    spec.devices.insert(spec.devices.end(), devices.begin(), devices.end());
  }
  for (const std::string& device : spec.devices)
    if (devices_->Find(device) == nullptr)
      return InvalidArgument(
          fmt::format("devices: there is no device {}: GET /v1/node lists them", Quote(device)));
  BookEnergy();
  ZEUS_TRY(const JobBook::Registered registered, jobs_->Register(spec, begun));
  ShowJobs();
  RecorderWanted();
  JobStart start{.id = spec.id};
  if (registered != JobBook::Registered::kAlready)
    start.limit_refused = LimitJob(caller, grant, spec);
  return start;
}

Status Daemon::BeginStep(const Caller& caller, const Grant& grant, std::string_view job,
                         const StepSpec& step) {
  BookEnergy();
  ZEUS_TRY(const JobBook::Registered registered, jobs_->BeginStep(job, step));
  if (registered != JobBook::Registered::kRevived) return Ok();
  RecorderWanted();
  const auto view = jobs_->Find(job);
  const std::string refused = view ? LimitJob(caller, grant, view->spec) : "";
  if (!refused.empty()) log::Warning("{}: {}", job, refused);
  return Ok();
}

void Daemon::ShowJobs() {
  if (!job_folder_) return;
  const std::lock_guard lock(showing_);
  JobFolder::Jobs jobs;
  for (const NodeDevice& gpu : devices_->gpus())
    for (const std::string& job : jobs_->JobsWith(gpu.id))
      if (std::string name = NameForOthers(job); !name.empty())
        jobs[gpu.index].insert(std::move(name));
  if (const Status shown = job_folder_->Show(jobs); !shown.ok())
    log::Warning("other programs do not see which job has which GPU: {}", shown.error().message);
}

// Messages.

void Daemon::TakePendingJobs() {
  if (options_.pending_jobs.empty()) return;
  std::error_code failure;
  std::vector<fs::path> files;
  fs::directory_iterator entry(options_.pending_jobs, failure);
  for (const fs::directory_iterator end; !failure && entry != end; entry.increment(failure))
    if (entry->path().extension() == ".json" && !entry->path().filename().string().starts_with('.'))
      files.push_back(entry->path());
  std::ranges::sort(files);
  for (const fs::path& file : files) TakePendingJob(file);
}

void Daemon::TakePendingJob(const fs::path& file) {
  std::error_code failure;
  const auto written = fs::last_write_time(file, failure);
  // A file of somebody else is refused, and removed like all others, so that it is refused once.
  const auto text = ReadTrustedFile(file, Secrecy::kPublic, kPendingLimit);
  fs::remove(file, failure);
  const auto take = [&]() -> Status {
    ZEUS_RETURN_IF_ERROR(text);
    ZEUS_TRY(const Json message, ParseJson(text.value()));
    if (message.is_object() && message.contains("ended")) {
      ZEUS_TRY(const std::string id, GetField<std::string>(message, "ended"));
      BookEnergy();
      (void)jobs_->End(id);  // It may have ended by itself.
      return Ok();
    }
    ZEUS_TRY(JobSpec spec, ParseJobSpec(message));
    const auto age =
        std::chrono::duration_cast<Seconds>(fs::file_time_type::clock::now() - written);
    const WallTime begun = clock_.WallNow() - std::chrono::duration_cast<WallTime::duration>(
                                                  std::max(Seconds(0), age));
    ZEUS_TRY(const JobStart start,
             BeginJob(DaemonItself(), EverythingGranted(), std::move(spec), begun));
    if (!start.limit_refused.empty()) log::Warning("{}: {}", start.id, start.limit_refused);
    return Ok();
  };
  if (const Status taken = take(); !taken.ok())
    log::Warning("{}: {}", file.string(), taken.error().message);
}

// Energy over restarts.

void Daemon::NoteCounter(const std::string& device, const DeviceReading& reading) {
  const Result<EnergyReading>* energy = nullptr;
  if (reading.energy) energy = &*reading.energy;
  if (reading.telemetry) energy = &reading.telemetry->energy;
  if (energy == nullptr || !energy->ok()) return;
  const std::lock_guard lock(counters_mutex_);
  counters_[device] = energy->value().total;
}

void Daemon::BookGap() {
  for (const NodeDevice& device : devices_->gpus()) {
    const auto before = jobs_->SavedCounter(device.id);
    if (!before || !device.recorded) continue;
    JobBook::Slice slice{.device = device.id};
    {
      const std::lock_guard lock(counters_mutex_);
      const auto now = counters_.find(device.name);
      // A driver that was loaded again counts from 0.
      if (now == counters_.end() || now->second < *before) continue;
      slice.energy = now->second - *before;
    }
    const auto power = recorder_->monitor().Now(*device.recorded).power;
    if (power.ok()) slice.sigma = power.value() * kCounterAge;
    jobs_->Book(slice);
  }
}

}  // namespace zeus::daemon
