#include "zeus/training/profile_keeper.h"

#include <string>
#include <system_error>
#include <utility>

#include "zeus/base/file.h"
#include "zeus/base/log.h"
#include "zeus/training/profile_folder.h"

namespace zeus {
namespace {

constexpr std::size_t kLargestText = 1 << 20;  // Larger ones are no profiles.

// Nothing is lost with it: an empty file, or a profile that was cut off. Anything else is not ours.
bool MayBeReplaced(const std::filesystem::path& file) {
  const auto text = ReadSmallFile(file, kLargestText);
  if (!text.ok()) return text.error().code == ErrorCode::kNotFound;
  const auto has = [&](const char* words) { return text.value().find(words) != std::string::npos; };
  return text.value().empty() || has(R"("zeus.power_profile/1")") ||
         (has(R"("measurements")") && !has(R"("schema")"));
}

}  // namespace

ProfileKeeper::ProfileKeeper(std::filesystem::path folder, std::filesystem::path file,
                             Access access)
    : folder_(std::move(folder)), file_(std::move(file)), access_(access) {}

std::optional<Profile> ProfileKeeper::Find(const ProfileContext& context, KnobKind knob) {
  if (!file_.empty()) return FindInFile(context, knob);
  if (!folder_.empty()) return ProfileFolder(folder_).Find(context, knob);
  return std::nullopt;
}

std::optional<Profile> ProfileKeeper::FindInFile(const ProfileContext& context, KnobKind knob) {
  std::error_code failure;
  if (std::filesystem::exists(file_, failure) &&
      !std::filesystem::is_regular_file(file_, failure)) {
    log::Warning("{} is no regular file: the profile of this job is not kept", file_.string());
    file_is_of_others_ = true;
    return std::nullopt;
  }
  auto profile = ReadProfileFile(file_, context.devices);
  if (!profile.ok()) {
    file_is_of_others_ = !MayBeReplaced(file_);
    if (profile.error().code != ErrorCode::kNotFound)
      log::Warning("{}: the job is profiled again and the file {}", profile.error().message,
                   file_is_of_others_ ? "left as it is" : "replaced");
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
