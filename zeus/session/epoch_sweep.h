#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "zeus/base/result.h"
#include "zeus/device/knobs/knob.h"
#include "zeus/optimizer/power_limit/slice_meter.h"
#include "zeus/session/sweep.h"

namespace zeus {

// Tries a setting of a knob per epoch: for programs that tell of nothing smaller. The first epoch
// is left alone, for it contains the program's start. An epoch in which its setting was not in
// force all the time is tried once more, and then skipped. What is done() is not put back. One
// owner; knob and meter must outlive it.
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
  // Looks whether the setting is in force; returns when to come again.
  TimePoint Look(TimePoint now);
  // Drops the epoch that is under way.
  void Stop();

  bool done() const { return next_ > settings_.size(); }
  const std::vector<SkippedSlice>& skipped() const { return skipped_; }
  // As well as known by now: an epoch is a step.
  Result<std::vector<MeasuredSlice>> Slices();

 private:
  Status EndOne();
  Status BeginNext();
  void CheckInForce(std::size_t setting);

  Knob& knob_;
  SliceMeter& meter_;
  std::vector<Setting> settings_;
  std::size_t next_ = 0;  // Setting to try with the next epoch.
  bool measuring_ = false;
  std::optional<Error> disturbed_;  // Why the epoch under way tells nothing.
  int tries_ = 0;                   // Tries of the present setting.
  TimePoint next_look_{};
  std::vector<SkippedSlice> skipped_;
  struct Measured {
    std::size_t setting;
    SliceMeter::Ticket ticket;
  };
  std::vector<Measured> measured_;
  std::vector<MeasuredSlice> slices_;
};

}  // namespace zeus
