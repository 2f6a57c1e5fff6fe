#include "apps/zeus/monitor/outputs.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

#include "apps/zeus/output.h"
#include "zeus/base/json.h"
#include "zeus/export/append_only_file.h"
#include "zeus/export/json_lines.h"
#include "zeus/export/sample_csv.h"

namespace zeus::cli {
namespace {

class JsonOnStandardOutput final : public SampleOutput {
 public:
  Status Write(const Sample& sample) override {
    fmt::print("{}\n", JsonText(ToJson(sample)));
    return FlushOutput();
  }
};

class CsvOnStandardOutput final : public SampleOutput {
 public:
  CsvOnStandardOutput() { fmt::print("{}\n", SampleCsvHeader()); }
  Status Write(const Sample& sample) override {
    fmt::print("{}\n", fmt::join(SampleCsvRows(sample), "\n"));
    return FlushOutput();
  }
};

class JsonInFile final : public SampleOutput {
 public:
  explicit JsonInFile(std::unique_ptr<JsonLines> file) : file_(std::move(file)) {}
  Status Write(const Sample& sample) override { return file_->Write(sample); }

 private:
  const std::unique_ptr<JsonLines> file_;
};

class CsvInFile final : public SampleOutput {
 public:
  explicit CsvInFile(std::unique_ptr<AppendOnlyFile> file) : file_(std::move(file)) {}
  // All rows of a sample are appended as one record, so that either all or none of them are in the
  // file.
  Status Write(const Sample& sample) override {
    return file_->Append(fmt::format("{}", fmt::join(SampleCsvRows(sample), "\n")));
  }

 private:
  const std::unique_ptr<AppendOnlyFile> file_;
};

}  // namespace

std::unique_ptr<SampleOutput> LinesOnStandardOutput(LineFormat format) {
  if (format == LineFormat::kJson) return std::make_unique<JsonOnStandardOutput>();
  return std::make_unique<CsvOnStandardOutput>();
}

Result<std::unique_ptr<SampleOutput>> LinesInFile(const std::filesystem::path& path,
                                                  LineFormat format) {
  std::unique_ptr<SampleOutput> output;
  if (format == LineFormat::kJson) {
    ZEUS_TRY(auto file, JsonLines::Open(path));
    output = std::make_unique<JsonInFile>(std::move(file));
  } else {
    ZEUS_TRY(auto file, AppendOnlyFile::Open(path, SampleCsvHeader()));
    output = std::make_unique<CsvInFile>(std::move(file));
  }
  return output;
}

Status TolerantOutput::Completeness() const {
  if (notice_.failures() == 0) return Ok();
  return Error{ErrorCode::kUnavailable, fmt::format("{} lacks {} samples that could not be written",
                                                    path_, notice_.failures())};
}

}  // namespace zeus::cli
