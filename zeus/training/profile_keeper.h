#pragma once

#include <filesystem>
#include <optional>

#include "zeus/optimizer/power_limit/profile.h"

namespace zeus {

// Where the profiles of a job are kept between its runs: a folder, one file, or nowhere. What goes
// wrong is said and costs no more than measuring again. One owner.
class ProfileKeeper {
 public:
  // Of the ranks of a job, one writes.
  enum class Access { kReadWrite, kReadOnly };

  ProfileKeeper(std::filesystem::path folder, std::filesystem::path file, Access access);

  std::optional<Profile> Find(const ProfileContext& context, KnobKind knob);
  // Nothing is written over that somebody may still need: a file that holds for another device.
  void Keep(const Profile& profile);

 private:
  std::optional<Profile> FindInFile(const ProfileContext& context, KnobKind knob);

  const std::filesystem::path folder_;
  const std::filesystem::path file_;
  const Access access_;
  bool file_is_of_others_ = false;
};

}  // namespace zeus
