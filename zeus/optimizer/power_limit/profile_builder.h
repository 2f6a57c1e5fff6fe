#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "zeus/base/result.h"
#include "zeus/device/knobs/knob.h"
#include "zeus/optimizer/collective.h"
#include "zeus/optimizer/power_limit/profile.h"
#include "zeus/optimizer/power_limit/setting_record.h"
#include "zeus/optimizer/power_limit/slice_meter.h"

namespace zeus {

// Collects the measurements of all settings over all ranks of a job into a profile: energies add
// up, and the slowest rank determines the time (Zeus §6.6). One owner.
class ProfileBuilder {
 public:
  // The settings are given fastest first. Those that `known` contains are not measured again. The
  // relative scatter of steps is taken to be `least_scatter` at least, for settings at which few
  // steps are measured.
  ProfileBuilder(const std::vector<Setting>& settings, Profile known, double least_scatter = 0);

  std::size_t size() const { return records_.size(); }
  SettingRecord& record(std::size_t setting) { return records_[setting]; }
  const SettingRecord& record(std::size_t setting) const { return records_[setting]; }
  const Setting& setting(std::size_t setting) const { return records_[setting].setting(); }
  std::optional<std::size_t> Find(const Setting& setting) const;

  bool IsKnown(std::size_t setting) const { return known_[setting].has_value(); }
  // Whether every setting was known before or has been measured.
  bool HasAll() const;

  // Updates the profile from the meter's present readings. Returns whether all of them are final.
  // Settings without a single step are left out, and so is the setting `open`, which is still being
  // measured. All ranks must call it.
  Result<bool> Update(SliceMeter& meter, Agreement& ranks,
                      std::optional<std::size_t> open = std::nullopt);
  // The same for a job of one process that is observed from outside.
  Result<bool> Update(SliceMeter& meter, const StepSource& source);
  const Profile& profile() const { return profile_; }
  void Complete() { profile_.complete = true; }
  // Returns the position of a setting in the profile; nullopt if it was left out.
  std::optional<std::size_t> FindPosition(std::size_t setting) const;

  // Returns the relative standard deviation of the energy per step in the present slice; infinite
  // if it is unknown. `open` is the part of the slice that is still being measured. All ranks must
  // call it.
  Result<double> EnergyPrecision(std::size_t setting, const std::optional<SliceReading>& open,
                                 SliceMeter& meter, Agreement& ranks);

 private:
  struct Gathered {
    std::vector<double> sums;  // Energy, variance and shared variance of each record.
    // Time of each record and 1 if its reading is not final; then the scatter of steps.
    std::vector<double> maxima;
  };
  Result<Gathered> Gather(SliceMeter& meter, Agreement& ranks);
  double ScatterOfSteps() const;

  std::vector<SettingRecord> records_;
  std::vector<std::optional<ProfilePoint>> known_;  // One for each setting.
  double least_scatter_;
  Profile profile_;
};

}  // namespace zeus
