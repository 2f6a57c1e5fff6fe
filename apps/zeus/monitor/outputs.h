#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "apps/zeus/monitor/power_table.h"
#include "zeus/base/result.h"
#include "zeus/export/append_only_file.h"
#include "zeus/export/sample.h"
#include "zeus/monitor/energy_monitor.h"

namespace zeus::cli {

// A destination of samples.
class SampleOutput {
 public:
  virtual ~SampleOutput() = default;
  virtual Status Write(const Sample& sample) = 0;
};

// Shows a table on standard output.
class TableOutput final : public SampleOutput {
 public:
  explicit TableOutput(PowerTable table) : table_(std::move(table)) {}
  Status Write(const Sample& sample) override {
    return screen_.Show(table_.Rows(sample, screen_.width()));
  }

 private:
  const PowerTable table_;
  Screen screen_;
};

enum class LineFormat { kJson, kCsv };

std::unique_ptr<SampleOutput> LinesOnStandardOutput(LineFormat format);
Result<std::unique_ptr<SampleOutput>> LinesInFile(const std::filesystem::path& path,
                                                  LineFormat format);

// Writes a Perfetto trace of the recording. `monitor` must outlive it.
Result<std::unique_ptr<SampleOutput>> TraceInFile(const std::filesystem::path& path,
                                                  const std::vector<DeviceIdentity>& devices,
                                                  EnergyMonitor& monitor);

// Writes to a file without failing when it cannot be written for a while (a full disk): the failure
// is logged once, and lost samples are counted.
class TolerantOutput final : public SampleOutput {
 public:
  TolerantOutput(std::unique_ptr<SampleOutput> output, std::string path)
      : output_(std::move(output)), path_(std::move(path)) {}

  Status Write(const Sample& sample) override {
    notice_.Note(output_->Write(sample));
    return Ok();
  }

  // Returns kUnavailable when samples are missing in the file.
  Status Completeness() const;

 private:
  const std::unique_ptr<SampleOutput> output_;
  const std::string path_;
  FailureNotice notice_{"output"};  // The error already names the file.
};

}  // namespace zeus::cli
