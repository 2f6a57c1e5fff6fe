#include "zeus/training/job_knob.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "zeus/base/log.h"
#include "zeus/device/knobs/device_knob.h"
#include "zeus/device/knobs/knob_group.h"
#include "zeus/device/knobs/knob_policy.h"
#include "zeus/device/knobs/knob_repair.h"

namespace zeus {
namespace {

using Members = std::vector<std::unique_ptr<DeviceKnob>>;

class KnobThatIsAbsent final : public Knob {
 public:
  KnobThatIsAbsent(KnobKind kind, Error reason) : kind_(kind), reason_(std::move(reason)) {}

  const std::string& name() const override { return name_; }
  KnobKind kind() const override { return kind_; }
  Result<std::vector<Setting>> Settings(const Setting&) override { return reason_; }
  Result<Setting> Current() override { return reason_; }
  Watts max_power() const override { return Watts(0); }
  Status Set(const Setting&) override { return reason_; }
  Status Restore() override { return Ok(); }

 private:
  const std::string name_ = "absent knob";
  const KnobKind kind_;
  const Error reason_;
};

struct Wanted {
  KnobKind kind;
  Ceiling ceiling;
};

Result<Members> GpuMembers(const Wanted& wanted, NodeMonitor& monitor, JobKnob& job) {
  const auto [kind, ceiling] = wanted;
  Members members;
  for (std::size_t position = 0; position < monitor.monitor().device_count(); ++position) {
    Gpu* const gpu = monitor.gpu(position);
    if (gpu == nullptr) continue;
    ZEUS_TRY(std::unique_ptr<DeviceKnob> knob,
             gpu->EndsWithProcess() ? DeviceKnob::WithoutJournal(kind, *gpu, ceiling)
                                    : DeviceKnob::Of(kind, *gpu, *job.journal, ceiling));
    members.push_back(std::move(knob));
    const GpuIdentity& identity = gpu->identity();
    job.devices.push_back(position);
    job.turned.push_back({.name = gpu->name(), .model = identity.model, .uuid = identity.uuid});
    job.driver = identity.driver;
  }
  if (members.empty())
    return Error{ErrorCode::kNotFound, "there is no GPU to optimise: zeus doctor says why"};
  return members;
}

Result<Members> CpuMembers(Ceiling ceiling, NodeMonitor& monitor, JobKnob& job) {
  Members members;
  for (const std::unique_ptr<CpuPackage>& cpu : monitor.node().cpus) {
    ZEUS_TRY(std::unique_ptr<DeviceKnob> knob, DeviceKnob::Of(*cpu, *job.journal, ceiling));
    members.push_back(std::move(knob));
    job.turned.push_back({.name = cpu->name(), .model = cpu->identity().model, .uuid = ""});
  }
  for (std::size_t position = 0; position < monitor.monitor().device_count(); ++position)
    if (monitor.gpu(position) == nullptr && monitor.monitor().device_in_total(position))
      job.devices.push_back(position);
  if (members.empty() || job.devices.empty())
    return Error{ErrorCode::kNotFound,
                 "there is no CPU package whose energy can be read: zeus doctor says why"};
  return members;
}

// Restores the settings that killed programs left behind, so that the job begins without them.
void RepairLeftovers(KnobJournal& journal, Clock& clock) {
  const auto repairs = RepairKnobs(journal, RealSurroundings(clock));
  if (!repairs.ok()) return log::Warning("{}", repairs.error().message);
  for (const KnobRepair& repair : repairs.value())
    if (repair.outcome == KnobRepair::Outcome::kFailed ||
        repair.outcome == KnobRepair::Outcome::kNotOurs)
      log::Warning("{}", ToText(repair));
}

}  // namespace

Result<JobKnob> FindJobKnob(KnobKind kind, NodeMonitor& monitor, Ceiling asked) {
  JobKnob job;
  const Ceiling ceiling = KnobPolicyOfMachine().Allowed(asked);
  const bool lasting = kind == KnobKind::kCpuPowerLimit ||
                       std::ranges::any_of(monitor.node().gpus,
                                           [](const auto& gpu) { return !gpu->EndsWithProcess(); });
  if (lasting) {
    ZEUS_TRY(std::filesystem::path folder, KnobFolder());
    job.journal = std::make_unique<KnobJournal>(monitor.monitor().clock(), std::move(folder));
    RepairLeftovers(*job.journal, monitor.monitor().clock());
    for (const UnexplainedLimit& limit : FindUnexplainedLimits(monitor.node(), *job.journal))
      log::Warning("{}", ToText(limit));
  }
  ZEUS_TRY(Members members, kind == KnobKind::kCpuPowerLimit
                                ? CpuMembers(ceiling, monitor, job)
                                : GpuMembers({kind, ceiling}, monitor, job));
  ZEUS_TRY(job.knob, KnobGroup::Of(std::move(members)));
  return job;
}

std::unique_ptr<Knob> AbsentKnob(KnobKind kind, Error reason) {
  return std::make_unique<KnobThatIsAbsent>(kind, std::move(reason));
}

}  // namespace zeus
