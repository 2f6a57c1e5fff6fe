#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "zeus/base/file.h"
#include "zeus/base/result.h"
#include "zeus/optimizer/power_limit/profile.h"

namespace zeus {

// Returns a sentence why a profile of the context `measured` does not hold for `wanted`: another
// job, batch size, model, number or set of devices, or driver. Returns nullopt if it holds. Files
// of the reference implementation have a context without a device and are assumed to hold.
std::optional<std::string> WhyProfileDoesNotHold(const ProfileContext& measured,
                                                 const ProfileContext& wanted);

// Reads a profile in either format (docs/formats.md); errors name the file. `devices` is the number
// of GPUs of the job.
Result<Profile> ReadProfileFile(const std::filesystem::path& file, int devices = 1);
Status WriteProfileFile(const std::filesystem::path& file, const Profile& profile);

// A folder of profiles, with one file for each context and knob. Thread-safe; processes may share
// it.
class ProfileFolder {
 public:
  explicit ProfileFolder(std::filesystem::path folder);

  // Returns $ZEUS_PROFILE_DIR/power, else $XDG_CONFIG_HOME/zeus/power, else
  // $HOME/.config/zeus/power; nullopt if the user has no home.
  static std::optional<std::filesystem::path> OfUser(const Environment& environment);

  // Returns the newest profile that holds for the context. Files that cannot be read are skipped,
  // and logged in one warning.
  std::optional<Profile> Find(const ProfileContext& context, KnobKind knob) const;

  // Atomically replaces the profile of the same context and knob; returns the file.
  Result<std::filesystem::path> Save(const Profile& profile) const;

 private:
  std::filesystem::path folder_;
};

}  // namespace zeus
