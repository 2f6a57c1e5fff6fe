#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "zeus/device/knobs/device_knob.h"
#include "zeus/device/knobs/knob.h"

namespace zeus {

// The same setting on several devices: those of a job (Zeus §6.6). All have it or none: when one
// refuses, all are put back.
class KnobGroup final : public Knob {
 public:
  // kInvalidArgument when there is none or when they are of different kinds.
  static Result<std::unique_ptr<KnobGroup>> Of(std::vector<std::unique_ptr<DeviceKnob>> members);

  const std::string& name() const override { return name_; }
  KnobKind kind() const override { return members_.front()->kind(); }

  // Those that every member can have.
  Result<std::vector<Setting>> Settings(const Setting& stride) override;
  Result<Setting> Current() override;
  Watts max_power() const override;

  Status Set(const Setting& setting) override;
  Status CheckInForce(const Setting& setting) override;
  // Restores what can be restored; the first error, and the others in the log.
  Status Restore() override;

 private:
  explicit KnobGroup(std::vector<std::unique_ptr<DeviceKnob>> members);

  const std::vector<std::unique_ptr<DeviceKnob>> members_;
  const std::string name_;
  std::mutex mutex_;  // A Restore() from another thread comes before or after a whole Set().
};

}  // namespace zeus
