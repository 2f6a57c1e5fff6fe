#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "zeus/base/file_descriptor.h"
#include "zeus/base/result.h"

namespace zeus::daemon {

// A file that keeps a state over the end of the process: the whole state in its first line, and a
// line for each change since. A change costs a line however large the state is; once the changes
// are larger than the state, the owner is asked for the whole of it again. One owner.
class StateLog {
 public:
  // An empty path keeps nothing.
  explicit StateLog(std::filesystem::path path) : path_(std::move(path)) {}

  bool keeps() const { return !path_.empty(); }

  // The lines of the file, which another process may have left: the state and its changes. A last
  // line that was not finished is left out. Errors as ReadStateFile().
  Result<std::vector<std::string>> Read() const;

  // Writes the file anew, whole or not at all. `state` is one line.
  Status Replace(std::string_view state);

  // Adds a line, whole or not at all. Returns false where the whole state must be written instead:
  // nothing was written by this object yet, the file is gone, cannot take the line, or has grown.
  bool Append(std::string_view change);

 private:
  bool IsStillThere() const;

  const std::filesystem::path path_;
  std::unique_ptr<FileDescriptor> file_{};  // Null until Replace().
  std::size_t whole_ = 0;                   // Bytes of the first line,
  std::size_t size_ = 0;                    // and of all.
};

}  // namespace zeus::daemon
