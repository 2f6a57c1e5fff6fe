#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "zeus/base/result.h"
#include "zeus/export/append_only_file.h"
#include "zeus/monitor/measurement.h"

namespace zeus {

enum class WindowColumns {
  kReference,  // Time and GPUs only, like the reference implementation.
  kExtended,   // Then the other devices, every device's standard deviation, and the flags.
};

enum class IfLogExists {
  kContinue,   // Appends; the file must have the same columns.
  kBeginAnew,  // A log of windows is emptied; any other file is refused. Folders are made.
};

// Writes finished windows as comma-separated values, one line each. The columns of the reference
// implementation come first, so that its readers work on both kinds. See docs/formats.md. One
// owner.
class WindowLog {
 public:
  // `devices` are the names that the monitor uses ("gpu:0", "cpu:0", …).
  static Result<std::unique_ptr<WindowLog>> Open(const std::filesystem::path& path,
                                                 std::vector<std::string> devices,
                                                 WindowColumns columns = WindowColumns::kReference,
                                                 IfLogExists if_exists = IfLogExists::kContinue);

  // A device without a number leaves its cell empty.
  Status Write(const Measurement& measurement);

 private:
  WindowLog(std::unique_ptr<AppendOnlyFile> file, std::vector<std::string> devices,
            WindowColumns columns)
      : file_(std::move(file)), devices_(std::move(devices)), columns_(columns) {}

  std::unique_ptr<AppendOnlyFile> file_;
  std::vector<std::string> devices_;  // GPUs first.
  WindowColumns columns_;
};

}  // namespace zeus
