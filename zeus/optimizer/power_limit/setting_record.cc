#include "zeus/optimizer/power_limit/setting_record.h"

#include <cmath>

namespace zeus {

SliceReading operator+(const SliceReading& a, const SliceReading& b) {
  return {.time = a.time + b.time,
          .energy = a.energy + b.energy,
          .sigma = Joules(std::hypot(a.sigma.value(), b.sigma.value())),
          // The same sensors: their gain is off in the same direction.
          .shared_sigma = a.shared_sigma + b.shared_sigma,
          .final = a.final && b.final};
}

Result<SliceReading> SettingRecord::Read(SliceMeter& meter) {
  SliceReading sum;
  for (Slice& slice : slices_) {
    if (!slice.reading.final) {
      ZEUS_TRY(slice.reading, meter.Read(slice.ticket));
    }
    sum = sum + slice.reading;
  }
  return sum;
}

}  // namespace zeus
