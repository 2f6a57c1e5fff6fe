#include "zeus/training/job_knob.h"

#include <utility>

#include "zeus/device/device_knob.h"
#include "zeus/device/knob_group.h"

namespace zeus {
namespace {

// Stands where no knob is, and says why.
class AbsentKnob final : public Knob {
 public:
  AbsentKnob(KnobKind kind, Error reason) : kind_(kind), reason_(std::move(reason)) {}

  const std::string& name() const override { return name_; }
  KnobKind kind() const override { return kind_; }
  Result<std::vector<Setting>> Settings(const Setting&) override { return reason_; }
  Result<Setting> Current() override { return reason_; }
  Watts max_power() const override { return Watts(0); }
  Status Set(const Setting&) override { return reason_; }
  Status Restore() override { return Ok(); }

 private:
  const std::string name_ = "devices";
  const KnobKind kind_;
  const Error reason_;
};

Result<std::unique_ptr<Knob>> GroupOf(Result<std::vector<std::unique_ptr<DeviceKnob>>> members) {
  ZEUS_TRY(std::vector<std::unique_ptr<DeviceKnob>> knobs, std::move(members));
  ZEUS_TRY(std::unique_ptr<KnobGroup> group, KnobGroup::Of(std::move(knobs)));
  return std::unique_ptr<Knob>(std::move(group));
}

Result<std::unique_ptr<Knob>> GpuKnob(KnobKind kind, NodeMonitor& monitor, JobKnob& job) {
  std::vector<std::unique_ptr<DeviceKnob>> members;
  for (std::size_t device = 0; device < monitor.monitor().device_count(); ++device) {
    Gpu* const gpu = monitor.gpu(device);
    if (gpu == nullptr) continue;
    ZEUS_TRY(std::unique_ptr<DeviceKnob> knob, DeviceKnob::Of(kind, *gpu));
    members.push_back(std::move(knob));
    job.devices.push_back(device);
    if (job.devices.size() == 1) job.model = gpu->identity().model;
    if (job.devices.size() == 1) job.driver = gpu->identity().driver;
    if (!gpu->identity().uuid.empty()) job.uuids.push_back(gpu->identity().uuid);
  }
  if (members.empty())
    return Error{ErrorCode::kNotFound, "the monitor has no GPU: run zeus doctor"};
  return GroupOf(std::move(members));
}

Result<std::unique_ptr<Knob>> CpuKnob(NodeMonitor& monitor, JobKnob& job) {
  std::vector<std::unique_ptr<DeviceKnob>> members;
  for (const std::unique_ptr<CpuPackage>& cpu : monitor.node().cpus) {
    for (std::size_t device = 0; device < monitor.monitor().device_count(); ++device) {
      if (monitor.monitor().device_name(device) != cpu->name()) continue;
      ZEUS_TRY(std::unique_ptr<DeviceKnob> knob, DeviceKnob::Of(*cpu));
      members.push_back(std::move(knob));
      job.devices.push_back(device);
      job.model = cpu->identity().model;
    }
  }
  if (members.empty())
    return Error{ErrorCode::kNotFound, "the monitor has no CPU package: run zeus doctor"};
  return GroupOf(std::move(members));
}

}  // namespace

JobKnob KnobOfJob(KnobKind kind, NodeMonitor& monitor) {
  JobKnob job;
  auto knob =
      kind == KnobKind::kCpuPowerLimit ? CpuKnob(monitor, job) : GpuKnob(kind, monitor, job);
  if (knob.ok())
    job.knob = std::move(knob).value();
  else
    job.knob = std::make_unique<AbsentKnob>(kind, knob.error());
  return job;
}

}  // namespace zeus
