#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "zeus/base/json_fwd.h"
#include "zeus/base/result.h"
#include "zeus/export/append_only_file.h"
#include "zeus/export/sample.h"
#include "zeus/monitor/measurement.h"

namespace zeus {

// The fields are promised in docs/formats.md.
Json ToJson(const Measurement& measurement);  // "schema": "zeus.window/1"
Json ToJson(const Sample& sample);            // "schema": "zeus.sample/1"

// On one line, without its end. Bytes that are not UTF-8 are replaced.
std::string ToLine(const Json& json);

// A file with one JSON object per line. One owner.
class JsonLines {
 public:
  // An existing file must begin with a record of ours.
  static Result<std::unique_ptr<JsonLines>> Open(const std::filesystem::path& path);

  Status Write(const Measurement& measurement);
  Status Write(const Sample& sample);

 private:
  explicit JsonLines(std::unique_ptr<AppendOnlyFile> file) : file_(std::move(file)) {}

  std::unique_ptr<AppendOnlyFile> file_;
};

}  // namespace zeus
