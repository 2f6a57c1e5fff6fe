#pragma once

#include <filesystem>
#include <memory>
#include <string_view>

#include "zeus/base/file_descriptor.h"
#include "zeus/base/result.h"

namespace zeus {

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
