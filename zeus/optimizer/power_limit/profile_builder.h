#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "zeus/base/result.h"
#include "zeus/device/knob.h"
#include "zeus/optimizer/agreement.h"
#include "zeus/optimizer/power_limit/profile.h"
#include "zeus/optimizer/power_limit/setting_record.h"
#include "zeus/optimizer/power_limit/slice_meter.h"

namespace zeus {

// The settings that are to be tried and what is known about each, over all ranks of a job: energies
// add up, the slowest rank sets the time (Zeus §6.6). One owner.
class ProfileBuilder {
 public:
  // Settings fastest first; those that `known` has are not measured again. The relative scatter of
  // steps is taken to be `least_scatter` at least, for settings at which few steps are measured.
  ProfileBuilder(const std::vector<Setting>& settings, Profile known, double least_scatter = 0);

  std::size_t size() const { return records_.size(); }
  SettingRecord& record(std::size_t setting) { return records_[setting]; }
  const SettingRecord& record(std::size_t setting) const { return records_[setting]; }
  const Setting& setting(std::size_t setting) const { return records_[setting].setting(); }
  std::optional<std::size_t> Find(const Setting& setting) const;

  bool IsKnown(std::size_t setting) const { return known_[setting].has_value(); }
  // Whether every setting was known before or has been measured.
  bool HasAll() const;

  // Brings the profile up to date with what the meter measures now, and returns whether that is
  // final. Settings without a single step are left out. The setting `open`, which is being
  // measured, is left out as well.
  Result<bool> Update(SliceMeter& meter, Agreement& ranks,
                      std::optional<std::size_t> open = std::nullopt);
  // The same for a job of one process that is observed from outside.
  Result<bool> Update(SliceMeter& meter, const StepSource& source);
  const Profile& profile() const { return profile_; }
  void Complete() { profile_.complete = true; }
  // Of a setting in the profile; none if it was left out.
  std::optional<std::size_t> PositionOf(std::size_t setting) const;

  // How well the energy per step of the slice under way is known: one standard deviation, relative;
  // infinite when nothing can be said. `open` is the part that is still being measured.
  Result<double> EnergyPrecision(std::size_t setting, const std::optional<SliceReading>& open,
                                 SliceMeter& meter, Agreement& ranks);

 private:
  struct Gathered {
    std::vector<double> sums;    // Energy, variance and shared variance of each record.
    std::vector<double> maxima;  // Time and unsettledness of each record, and the scatter of steps.
  };
  Result<Gathered> Gather(SliceMeter& meter, Agreement& ranks);
  double ScatterOfSteps() const;

  std::vector<SettingRecord> records_;
  std::vector<std::optional<ProfilePoint>> known_;  // By setting.
  double least_scatter_;
  Profile profile_;
};

}  // namespace zeus
