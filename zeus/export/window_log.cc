#include "zeus/export/window_log.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>

#include "zeus/base/csv.h"
#include "zeus/base/file.h"
#include "zeus/export/sample.h"

namespace zeus {
namespace {

bool IsGpu(const std::string& device) { return device.starts_with("gpu:"); }

// "gpu:0" is "gpu0" in the reference's columns.
std::string ColumnPrefix(std::string device) {
  std::erase(device, ':');
  return device;
}

// GPUs first, each group in the order given. In the reference's columns there are only GPUs.
std::vector<std::string> Arrange(std::vector<std::string> devices, WindowColumns columns) {
  const auto others = std::ranges::stable_partition(devices, IsGpu);
  if (columns == WindowColumns::kReference) devices.erase(others.begin(), others.end());
  return devices;
}

constexpr const char* kFirstColumns[] = {"start_time", "window_name", "elapsed_time"};

std::string Header(const std::vector<std::string>& devices, WindowColumns columns) {
  std::vector<std::string> names(std::begin(kFirstColumns), std::end(kFirstColumns));
  for (const std::string& device : devices) names.push_back(ColumnPrefix(device) + "_energy");
  if (columns == WindowColumns::kExtended) {
    for (const std::string& device : devices) names.push_back(ColumnPrefix(device) + "_sigma");
    names.emplace_back("flags");
  }
  return CsvRow(names);
}

std::string JoinFlags(const Measurement& measurement) {
  std::set<std::string_view> flags;
  for (const DeviceMeasurement& device : measurement.devices) {
    if (!device.energy.ok()) continue;
    for (const std::string_view flag : device.energy.value().flags.Names()) flags.insert(flag);
  }
  return fmt::format("{}", fmt::join(flags, " "));
}

std::string Cell(const DeviceMeasurement* device, Joules EnergyEstimate::*part) {
  if (device == nullptr || !device->energy.ok()) return "";
  return fmt::format("{}", (device->energy.value().*part).value());
}

Status MakeRoom(const std::filesystem::path& path) {
  std::error_code failure;
  if (path.has_parent_path()) std::filesystem::create_directories(path.parent_path(), failure);
  // An error shows again when the file is opened.
  if (!std::filesystem::is_regular_file(path, failure)) return Ok();
  const auto first = ReadLine(path);
  if (!first.ok() || !first.value().starts_with(fmt::format("{}", fmt::join(kFirstColumns, ","))))
    return Ok();
  std::filesystem::resize_file(path, 0, failure);
  if (failure)
    return Error{ErrorCode::kPermissionDenied,
                 fmt::format("empty {}: {}", path.string(), failure.message())};
  return Ok();
}

}  // namespace

Result<std::unique_ptr<WindowLog>> WindowLog::Open(const std::filesystem::path& path,
                                                   std::vector<std::string> devices,
                                                   WindowColumns columns, IfLogExists if_exists) {
  if (if_exists == IfLogExists::kBeginAnew) ZEUS_RETURN_IF_ERROR(MakeRoom(path));
  devices = Arrange(std::move(devices), columns);
  ZEUS_TRY(auto file, AppendOnlyFile::Open(path, Header(devices, columns)));
  return std::unique_ptr<WindowLog>(new WindowLog(std::move(file), std::move(devices), columns));
}

Status WindowLog::Write(const Measurement& measurement) {
  std::vector<std::string> fields = {fmt::format("{:.6f}", UnixTime(measurement.started).count()),
                                     measurement.window,
                                     fmt::format("{}", measurement.time.count())};
  for (const std::string& device : devices_)
    fields.push_back(Cell(measurement.Find(device), &EnergyEstimate::energy));
  if (columns_ == WindowColumns::kExtended) {
    for (const std::string& device : devices_)
      fields.push_back(Cell(measurement.Find(device), &EnergyEstimate::sigma));
    fields.push_back(JoinFlags(measurement));
  }
  return file_->Append(CsvRow(fields));
}

}  // namespace zeus
