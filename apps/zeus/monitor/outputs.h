#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "apps/zeus/monitor/power_table.h"
#include "apps/zeus/monitor/screen.h"
#include "zeus/base/result.h"
#include "zeus/export/failure_notice.h"
#include "zeus/export/sample.h"
#include "zeus/monitor/energy_monitor.h"

namespace zeus::cli {

// Where samples go.
class SampleOutput {
 public:
  virtual ~SampleOutput() = default;
  virtual Status Write(const Sample& sample) = 0;
};

// A table on standard output.
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

// A Perfetto trace of the recording, which must outlive it.
Result<std::unique_ptr<SampleOutput>> TraceInFile(const std::filesystem::path& path,
                                                  const std::vector<DeviceIdentity>& devices,
                                                  EnergyMonitor& monitor);

// A file that cannot be written for a while (a full disk) ends nothing: it is said once, and what
// was lost is counted.
class PatientOutput final : public SampleOutput {
 public:
  PatientOutput(std::unique_ptr<SampleOutput> output, std::string path)
      : output_(std::move(output)), path_(std::move(path)) {}

  Status Write(const Sample& sample) override {
    notice_.Note(output_->Write(sample));
    return Ok();
  }

  // kUnavailable when samples are missing in the file.
  Status Completeness() const;

 private:
  const std::unique_ptr<SampleOutput> output_;
  const std::string path_;
  FailureNotice notice_{"output"};  // The reason names the file.
};

}  // namespace zeus::cli
