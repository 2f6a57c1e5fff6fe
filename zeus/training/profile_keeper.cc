#include "zeus/training/profile_keeper.h"

#include <string>
#include <utility>

#include "zeus/base/log.h"
#include "zeus/training/profile_folder.h"

namespace zeus {

ProfileKeeper::ProfileKeeper(std::filesystem::path folder, std::filesystem::path file,
                             Access access)
    : folder_(std::move(folder)), file_(std::move(file)), access_(access) {}

std::optional<Profile> ProfileKeeper::Find(const ProfileContext& context, KnobKind knob) {
  if (!file_.empty()) return FindInFile(context, knob);
  if (!folder_.empty()) return ProfileFolder(folder_).Find(context, knob);
  return std::nullopt;
}

std::optional<Profile> ProfileKeeper::FindInFile(const ProfileContext& context, KnobKind knob) {
  auto profile = ReadProfileFile(file_, context.devices);
  if (!profile.ok()) {
    if (profile.error().code != ErrorCode::kNotFound)
      log::Warning("{}: the job is profiled again and the file replaced", profile.error().message);
    return std::nullopt;
  }
  std::optional<std::string> reason = WhyProfileDoesNotHold(profile.value().context, context);
  if (profile.value().knob != knob) reason = "it is of another knob";
  if (!reason) return std::move(profile).value();
  log::Warning("{} is not used, {}: the job is profiled again and the file left as it is",
               file_.string(), *reason);
  file_is_of_others_ = true;
  return std::nullopt;
}

void ProfileKeeper::Keep(const Profile& profile) {
  if (access_ == Access::kReadOnly || profile.points.empty()) return;
  Status kept = Ok();
  if (!file_.empty()) {
    if (!file_is_of_others_) kept = WriteProfileFile(file_, profile);
  } else if (!folder_.empty()) {
    const auto saved = ProfileFolder(folder_).Save(profile);
    if (!saved.ok()) kept = saved.error();
  }
  if (!kept.ok()) log::Warning("the profile of this job is not kept: {}", kept.error().message);
}

}  // namespace zeus
