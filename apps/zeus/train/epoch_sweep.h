#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "apps/zeus/profile/sweep.h"
#include "zeus/base/result.h"
#include "zeus/device/knob.h"
#include "zeus/optimizer/power_limit/slice_meter.h"

namespace zeus::cli {

// Tries a setting of a knob per epoch: for programs that tell of nothing smaller. The first epoch
// is left alone, for it contains the program's start. What is done() is not put back. One owner;
// knob and meter must outlive it.
class EpochSweep {
 public:
  EpochSweep(Knob& knob, SliceMeter& meter, std::vector<Setting> settings);
  ~EpochSweep() { Stop(); }
  EpochSweep(const EpochSweep&) = delete;
  EpochSweep& operator=(const EpochSweep&) = delete;

  // An epoch has just ended, and the next one begins.
  Status EpochEnded();
  // Epochs have ended, nobody knows when: what is being tried is tried again.
  void EpochsLumped();
  // Drops the epoch that is under way.
  void Stop();

  bool done() const { return next_ > settings_.size(); }
  // As well as known by now: an epoch is a step.
  Result<std::vector<MeasuredSlice>> Slices();

 private:
  Knob& knob_;
  SliceMeter& meter_;
  std::vector<Setting> settings_;
  std::size_t next_ = 0;  // Setting to try with the next epoch.
  bool measuring_ = false;
  std::vector<SliceMeter::Ticket> tickets_;  // By setting.
  std::vector<MeasuredSlice> slices_;
};

}  // namespace zeus::cli
