#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "zeus/base/json_fwd.h"
#include "zeus/base/result.h"
#include "zeus/export/append_only_file.h"
#include "zeus/export/sample.h"
#include "zeus/monitor/measurement_json.h"

namespace zeus {

// "schema": "zeus.sample/1"; docs/formats.md promises the fields.
Json ToJson(const Sample& sample);

// A file with one JSON object per line: windows and samples. One owner.
class JsonLines {
 public:
  // Appends to an existing file, which must begin with a record of Zeus.
  static Result<std::unique_ptr<JsonLines>> Open(const std::filesystem::path& path);

  Status Write(const Measurement& measurement);
  Status Write(const Sample& sample);

 private:
  explicit JsonLines(std::unique_ptr<AppendOnlyFile> file) : file_(std::move(file)) {}

  std::unique_ptr<AppendOnlyFile> file_;
};

}  // namespace zeus
