#include "zeus/monitor/profile_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <system_error>
#include <utility>

#include "zeus/base/file.h"
#include "zeus/base/json.h"
#include "zeus/base/log.h"
#include "zeus/base/text.h"

namespace zeus {
namespace {

namespace fs = std::filesystem;

std::string Prefix(const GpuIdentity& gpu) { return FileNamePart(gpu.uuid) + "_"; }

std::string FileName(const GpuIdentity& gpu) {
  return Prefix(gpu) + FileNamePart(gpu.driver) + ".json";
}

Result<SensorCalibration> Load(const fs::path& file, const GpuIdentity& gpu) {
  ZEUS_TRY(const std::string text, ReadSmallFile(file));
  ZEUS_TRY(const Json json, ParseJson(text));
  ZEUS_TRY(SensorCalibration calibration, ParseSensorCalibration(json));
  if (calibration.gpu.uuid != gpu.uuid || calibration.gpu.driver != gpu.driver) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("is of {} with driver {}", Quote(calibration.gpu.uuid),
                             Quote(calibration.gpu.driver))};
  }
  return calibration;
}

// Calibrations of this GPU under other drivers, by name.
std::vector<std::string> OtherDrivers(const fs::path& folder, const GpuIdentity& gpu) {
  std::vector<std::string> files;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(Prefix(gpu)) && name.ends_with(".json") && name != FileName(gpu))
      files.push_back(entry.path().string());
  }
  std::ranges::sort(files);
  return files;
}

}  // namespace

ProfileStore::ProfileStore(std::optional<fs::path> own, fs::path system)
    : own_(std::move(own)), system_(std::move(system)) {}

ProfileStore ProfileStore::FromEnvironment(const Environment& environment) {
  std::optional<fs::path> own = UserFolder(environment, "sensors");
  if (const auto folder = environment("ZEUS_PROFILE_DIR"); folder && !folder->empty())
    own = *folder;
  return {std::move(own), "/etc/zeus/sensors"};
}

ProfileStore::Finding ProfileStore::Find(const GpuIdentity& gpu) const {
  Finding finding;
  if (gpu.uuid.empty()) return finding;
  std::vector<fs::path> folders;
  if (own_) folders.push_back(*own_);
  folders.push_back(system_);
  for (const fs::path& folder : folders) {
    const fs::path file = folder / FileName(gpu);
    auto loaded = Load(file, gpu);
    if (loaded.ok()) {
      finding.calibration = std::move(loaded).value();
      finding.file = file;
      return finding;
    }
    if (loaded.error().code == ErrorCode::kNotFound) continue;
    const std::string path = Printable(file.string());
    const std::string& reason = loaded.error().message;
    finding.remarks.push_back(
        fmt::format("{} is not used: {}", path,
                    reason.starts_with(path + ": ") ? reason.substr(path.size() + 2) : reason));
  }
  for (const fs::path& folder : folders) {
    for (const std::string& other : OtherDrivers(folder, gpu)) {
      finding.remarks.push_back(
          fmt::format("{} is not used: it is of another driver than {}: run zeus calibrate again",
                      Printable(other), Quote(gpu.driver)));
    }
  }
  return finding;
}

Result<fs::path> ProfileStore::OwnFile(const GpuIdentity& gpu) const {
  if (gpu.uuid.empty()) {
    return Error{
        ErrorCode::kNotSupported,
        fmt::format("the GPU at {} has no UUID to know it by, so its calibration cannot be "
                    "kept",
                    gpu.pci_address)};
  }
  if (!own_) {
    return Error{ErrorCode::kInvalidArgument,
                 "nowhere to keep calibrations: set ZEUS_PROFILE_DIR or HOME"};
  }
  return *own_ / FileName(gpu);
}

Result<fs::path> ProfileStore::Save(const SensorCalibration& calibration) const {
  ZEUS_TRY(fs::path file, OwnFile(calibration.gpu));
  std::error_code error;
  fs::create_directories(file.parent_path(), error);
  if (error) return FileError(file.parent_path(), error.value());
  const std::string text = JsonText(ToJson(calibration), 2) + "\n";
  ZEUS_RETURN_IF_ERROR(ReplaceFile(file, text));
  return file;
}

Result<fs::path> ProfileStore::Remove(const GpuIdentity& gpu) const {
  ZEUS_TRY(fs::path file, OwnFile(gpu));
  std::error_code error;
  if (fs::remove(file, error)) return file;
  if (error) return FileError(file, error.value());
  return Error{ErrorCode::kNotFound, fmt::format("no calibration at {}", file.string())};
}

std::function<std::optional<SensorProfile>(const GpuIdentity&)> ProfileStore::Lookup() const {
  return [store = *this](const GpuIdentity& gpu) -> std::optional<SensorProfile> {
    const Finding finding = store.Find(gpu);
    for (const std::string& remark : finding.remarks) log::Warning("{}", remark);
    if (!finding.calibration) return std::nullopt;
    return ApplyCalibration(PriorProfile(gpu), *finding.calibration);
  };
}

}  // namespace zeus
