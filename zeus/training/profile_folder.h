#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "zeus/base/result.h"
#include "zeus/base/user_files.h"
#include "zeus/optimizer/power_limit/profile.h"

namespace zeus {

// One sentence why a profile that was measured on `measured` does not hold for `wanted`: another
// job, batch size, model, number or set of devices, or driver. nullopt if it does. A context that
// names no device, that of the reference implementation's files, is taken on trust.
std::optional<std::string> WhyProfileDoesNotHold(const ProfileContext& measured,
                                                 const ProfileContext& wanted);

// One profile in either format (docs/formats.md); errors name the file. `devices` is how many GPUs
// the job has.
Result<Profile> ReadProfileFile(const std::filesystem::path& file, int devices = 1);
Status WriteProfileFile(const std::filesystem::path& file, const Profile& profile);

// Profiles of jobs, one file for each context and knob. Thread-safe; processes may share it.
class ProfileFolder {
 public:
  explicit ProfileFolder(std::filesystem::path folder);

  // $ZEUS_PROFILE_DIR/power, else $XDG_CONFIG_HOME/zeus/power, else $HOME/.config/zeus/power;
  // nullopt where the user has no home.
  static std::optional<std::filesystem::path> OfUser(const Environment& environment);

  // The newest one that was measured on the same. Files that cannot be read are skipped, and said
  // in one warning.
  std::optional<Profile> Find(const ProfileContext& context, KnobKind knob) const;

  // Replaces what was there for the same context and knob, all at once. The file that was written.
  Result<std::filesystem::path> Save(const Profile& profile) const;

 private:
  std::filesystem::path folder_;
};

}  // namespace zeus
