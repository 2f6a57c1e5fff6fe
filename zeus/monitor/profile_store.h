#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "zeus/base/file.h"
#include "zeus/base/result.h"
#include "zeus/device/gpu.h"
#include "zeus/monitor/sensor_calibration.h"
#include "zeus/monitor/sensor_profile.h"

namespace zeus {

// Calibrations on disk: one file per GPU (UUID) and version of its driver, since a new driver may
// read sensors differently. A user's own are looked for before those of the machine; only the own
// ones are ever written. What cannot be used is said and never a failure: the prior serves then.
// Thread-safe; processes may share the folders.
class ProfileStore {
 public:
  // `own` is nullopt where the user has no home.
  ProfileStore(std::optional<std::filesystem::path> own, std::filesystem::path system);

  // $ZEUS_PROFILE_DIR, else $XDG_CONFIG_HOME/zeus/sensors, else $HOME/.config/zeus/sensors; and
  // /etc/zeus/sensors for the machine.
  static ProfileStore FromEnvironment(const Environment& environment);

  struct Finding {
    std::optional<SensorCalibration> calibration;
    std::filesystem::path file;        // File of the calibration.
    std::vector<std::string> remarks;  // One sentence per file that was there and not usable.
  };
  Finding Find(const GpuIdentity& gpu) const;

  // Replaces what was there, all at once. The file that was written.
  Result<std::filesystem::path> Save(const SensorCalibration& calibration) const;

  // Removes the user's calibration of the GPU with its present driver and returns its file.
  // kNotFound if there is none.
  Result<std::filesystem::path> Remove(const GpuIdentity& gpu) const;

  // For NodeMonitorOptions::calibration: the prior with what was measured. Remarks are logged as
  // warnings.
  std::function<std::optional<SensorProfile>(const GpuIdentity&)> Lookup() const;

 private:
  Result<std::filesystem::path> OwnFile(const GpuIdentity& gpu) const;

  std::optional<std::filesystem::path> own_;
  std::filesystem::path system_;
};

}  // namespace zeus
