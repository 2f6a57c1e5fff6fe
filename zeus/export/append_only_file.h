#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "zeus/base/file_descriptor.h"
#include "zeus/base/log.h"
#include "zeus/base/result.h"

namespace zeus {

// Logs once that something keeps failing, and once that it works again. One owner.
class FailureNotice {
 public:
  // `doing` names the attempt: "write samples.csv", "push to http://…".
  explicit FailureNotice(std::string doing) : doing_(std::move(doing)) {}

  // Records the outcome of an attempt; returns whether it succeeded.
  bool Note(const Status& attempt) {
    if (!attempt.ok()) ++failures_;
    if (attempt.ok() == working_) return working_;
    working_ = attempt.ok();
    if (working_) {
      log::Warning("{}: works again", doing_);
    } else {
      log::Warning("{}: {}: will be tried again", doing_, attempt.error().message);
    }
    return working_;
  }

  bool working() const { return working_; }
  long failures() const { return failures_; }

 private:
  const std::string doing_;
  bool working_ = true;
  long failures_ = 0;
};

// A file that grows by whole lines. Each record is one write; a record that a full disk cut off is
// removed again, so that the file never ends in the middle of a record and later records follow
// cleanly when there is space. Several processes may append to one file. One owner per object.
class AppendOnlyFile {
 public:
  // A new or empty file gets `header` as its first line, unless that is empty. An existing one must
  // begin with `expected_start` (the header where that is not given) or it is refused with
  // kInvalidArgument, because another program wrote it. A last line without an end, left by a
  // machine that lost power, is removed. Pipes and devices are written as they are.
  static Result<std::unique_ptr<AppendOnlyFile>> Open(const std::filesystem::path& path,
                                                      std::string_view header,
                                                      std::string_view expected_start = {});

  // Appends a record and a newline; the record itself must not contain one. On an error the file is
  // unchanged.
  Status Append(std::string_view record);

  const std::filesystem::path& path() const { return path_; }

 private:
  AppendOnlyFile(std::filesystem::path path, int descriptor)
      : path_(std::move(path)), file_(descriptor) {}

  Status Prepare(std::string_view header, std::string_view expected_start);
  Status WriteWhole(std::string_view line);

  const std::filesystem::path path_;
  const FileDescriptor file_;
  bool regular_ = false;
};

}  // namespace zeus
