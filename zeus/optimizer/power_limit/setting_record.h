#pragma once

#include <cstdint>
#include <vector>

#include "zeus/base/result.h"
#include "zeus/base/units.h"
#include "zeus/device/knobs/knob.h"
#include "zeus/optimizer/power_limit/slice_meter.h"
#include "zeus/optimizer/power_limit/slice_statistics.h"

namespace zeus {

// What was measured at one setting: one slice, or several where epochs ended in between. One owner.
class SettingRecord {
 public:
  explicit SettingRecord(const Setting& setting) : setting_(setting) {}

  const Setting& setting() const { return setting_; }
  std::int64_t steps() const { return times_.count(); }
  const StepTimes& times() const { return times_; }

  void AddStep(Seconds time) { times_.Add(time); }
  void AddSlice(SliceMeter::Ticket ticket) { slices_.push_back({.ticket = ticket}); }

  // Forgets what was measured.
  void StartOver() {
    times_ = {};
    slices_.clear();
  }

  // Everything that was measured, as well as is known by now.
  Result<SliceReading> Read(SliceMeter& meter);

 private:
  struct Slice {
    SliceMeter::Ticket ticket;
    SliceReading reading{.final = false};
  };

  Setting setting_;
  StepTimes times_;
  std::vector<Slice> slices_;
};

// The sum of two stretches of training that were measured one after the other.
SliceReading operator+(const SliceReading& a, const SliceReading& b);

}  // namespace zeus
