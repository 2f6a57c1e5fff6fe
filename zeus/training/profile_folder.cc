#include "zeus/training/profile_folder.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "zeus/base/file.h"
#include "zeus/base/json.h"
#include "zeus/base/log.h"
#include "zeus/base/text.h"
#include "zeus/optimizer/power_limit/profile.h"

namespace zeus {
namespace {

namespace fs = std::filesystem;

// Returns the text as it reads after it was written to a file, which holds only UTF-8.
std::string Written(const std::string& text) { return JsonText(Json(text)); }

std::vector<std::string> Sorted(std::vector<std::string> uuids) {
  std::ranges::sort(uuids);
  return uuids;
}

// FNV-1a hash, which distinguishes contexts whose readable names are equal.
std::uint64_t Digest(std::string_view text) {
  std::uint64_t hash = 14695981039346656037U;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211U;
  return hash;
}

// The name has the parts that people look for, then a digest of the whole context.
std::string FileName(const ProfileContext& context, KnobKind knob) {
  constexpr std::size_t kReadable = 60;
  const Json all = {Written(context.job),  context.batch_size, Written(context.device_model),
                    Sorted(context.uuids), context.devices,    Written(context.driver),
                    KnobKindName(knob)};
  return fmt::format("{}_{}_{}x{}_{}_{:016x}.json", FileNamePart(context.job).substr(0, kReadable),
                     context.batch_size, context.devices,
                     FileNamePart(context.device_model).substr(0, kReadable), KnobKindName(knob),
                     Digest(JsonText(all)));
}

std::vector<fs::path> ProfilesIn(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code error;
  for (auto entry = fs::directory_iterator(folder, error);
       !error && entry != fs::directory_iterator(); entry.increment(error)) {
    if (entry->path().extension() == ".json") files.push_back(entry->path());
  }
  std::ranges::sort(files);
  return files;
}

}  // namespace

std::optional<std::string> WhyProfileDoesNotHold(const ProfileContext& measured,
                                                 const ProfileContext& wanted) {
  if (measured.device_model.empty()) return std::nullopt;
  const auto differ = [](std::string_view what, const std::string& there, const std::string& here) {
    return fmt::format("it was measured with {} {} and not {}", what, Quote(there), Quote(here));
  };
  if (Written(measured.job) != Written(wanted.job)) return differ("job", measured.job, wanted.job);
  if (measured.batch_size != wanted.batch_size) {
    return differ("batch size", std::to_string(measured.batch_size),
                  std::to_string(wanted.batch_size));
  }
  if (Written(measured.device_model) != Written(wanted.device_model))
    return differ("device", measured.device_model, wanted.device_model);
  if (measured.devices != wanted.devices) {
    return differ("number of devices", std::to_string(measured.devices),
                  std::to_string(wanted.devices));
  }
  if (Written(measured.driver) != Written(wanted.driver))
    return differ("driver", measured.driver, wanted.driver);
  // Boards of one model differ by a few per cent, so the best setting may differ, too.
  if (Sorted(measured.uuids) != Sorted(wanted.uuids))
    return "it was measured on other devices of the same model";
  return std::nullopt;
}

Result<Profile> ReadProfileFile(const fs::path& file, int devices) {
  ZEUS_TRY(const std::string text, ReadSmallFile(file, kLargestProfileText));
  auto profile = ParseProfile(text, devices);
  if (!profile.ok()) return std::move(profile).error().While(Printable(file.string()));
  return profile;
}

Status WriteProfileFile(const fs::path& file, const Profile& profile) {
  return ReplaceFile(file, ProfileToJson(profile));
}

ProfileFolder::ProfileFolder(fs::path folder) : folder_(std::move(folder)) {}

std::optional<fs::path> ProfileFolder::OfUser(const Environment& environment) {
  if (const auto folder = environment("ZEUS_PROFILE_DIR"); folder && !folder->empty())
    return fs::path(*folder) / "power";
  return UserFolder(environment, "power");
}

std::optional<Profile> ProfileFolder::Find(const ProfileContext& context, KnobKind knob) const {
  std::optional<Profile> newest;
  std::vector<std::string> unusable;
  for (const fs::path& file : ProfilesIn(folder_)) {
    auto profile = ReadProfileFile(file, context.devices);
    if (!profile.ok()) {
      // Another process may have replaced or removed the file in the meantime.
      if (profile.error().code != ErrorCode::kNotFound) unusable.push_back(profile.error().message);
      continue;
    }
    // A context without a device is only accepted from a file that the user names.
    const ProfileContext& measured = profile.value().context;
    if (profile.value().knob != knob || measured.device_model.empty() ||
        WhyProfileDoesNotHold(measured, context))
      continue;
    if (!newest || measured.date >= newest->context.date) newest = std::move(profile).value();
  }
  if (!unusable.empty()) log::Warning("profiles that are not used: {}", fmt::join(unusable, "; "));
  return newest;
}

Result<fs::path> ProfileFolder::Save(const Profile& profile) const {
  std::error_code error;
  fs::create_directories(folder_, error);
  if (error) return FileError(folder_, error.value());
  const fs::path file = folder_ / FileName(profile.context, profile.knob);
  ZEUS_RETURN_IF_ERROR(WriteProfileFile(file, profile));
  return file;
}

}  // namespace zeus
