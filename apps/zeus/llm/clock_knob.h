#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "zeus/base/result.h"
#include "zeus/device/gpu.h"
#include "zeus/device/knobs/guarded_knob.h"
#include "zeus/optimizer/clock/clock_knob.h"

namespace zeus::cli {

// The graphics clock of the GPUs of one engine for a ClockGovernor: noted in the journal and put
// back on every end of the program (docs/knobs.md). The GPUs must outlive it. One owner.
class GuardedClockKnob final : public ClockKnob {
 public:
  // kInvalidArgument without GPUs, kNotSupported where a GPU has no clock that can be locked.
  static Result<std::unique_ptr<GuardedClockKnob>> Make(const std::vector<Gpu*>& gpus,
                                                        Ceiling ceiling = Ceiling::kAsFound);

  const std::string& name() const override { return name_; }
  Result<std::vector<Hertz>> Supported() override;
  Result<Hertz> Present() override;
  // Before the first Lock() a busy GPU says whether another program has locked it; after it nothing
  // does, until Disown().
  Result<bool> IsOurs() override;
  void Disown() override;
  // All GPUs have the clock or none: when one refuses, all are put back.
  Status Lock(Hertz clock) override;
  Status Release() override;

  // Whether this user may set knobs of the GPUs, found out by setting a power limit to what it is.
  // kPermissionDenied names the remedy.
  Status CheckPermission();

 private:
  GuardedClockKnob() = default;

  std::vector<Gpu*> gpus_;
  std::vector<std::unique_ptr<GuardedKnob>> knobs_;
  std::string name_;
  std::optional<Hertz> locked_;
  std::optional<Hertz> disowned_;  // The last clock that was ours.
};

}  // namespace zeus::cli
