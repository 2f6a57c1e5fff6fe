#include "zeus/daemon/state_log.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "zeus/daemon/trusted_file.h"

namespace zeus::daemon {
namespace {

constexpr std::size_t kLargest = std::size_t{64} * 1024 * 1024;
// A small state is not written again for each of a few changes.
constexpr std::size_t kFewChanges = std::size_t{64} * 1024;

}  // namespace

Result<std::vector<std::string>> StateLog::Read() const {
  ZEUS_TRY(const std::string text, ReadStateFile(path_, kLargest));
  std::vector<std::string> lines;
  std::size_t begin = 0;
  for (std::size_t end; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1)
    lines.push_back(text.substr(begin, end - begin));
  // The state itself is written whole or not at all, so that it needs no end.
  if (lines.empty() && !text.empty()) lines.push_back(text);
  return lines;
}

Status StateLog::Replace(std::string_view state) {
  file_.reset();
  std::string line(state);
  line += '\n';
  ZEUS_RETURN_IF_ERROR(WriteStateFile(path_, line, Durability::kSurvivesProcess));
  auto file = std::make_unique<FileDescriptor>(
      ::open(path_.c_str(), O_WRONLY | O_APPEND | O_NOFOLLOW | O_CLOEXEC));
  if (file->valid()) file_ = std::move(file);
  whole_ = size_ = line.size();
  return Ok();
}

// The file may have been removed, and another may be in its place.
bool StateLog::IsStillThere() const {
  struct stat state {};
  return file_ && ::fstat(file_->get(), &state) == 0 && state.st_nlink > 0 &&
         static_cast<std::size_t>(state.st_size) == size_;
}

bool StateLog::Append(std::string_view change) {
  const std::size_t added = change.size() + 1;
  if (size_ - whole_ + added > std::max(kFewChanges, whole_) || !IsStillThere()) return false;
  std::string line(change);
  line += '\n';
  const ssize_t written = ::write(file_->get(), line.data(), line.size());
  if (written == static_cast<ssize_t>(line.size())) {
    size_ += added;
    return true;
  }
  // The disk is full. What is there of the line is never continued.
  file_.reset();
  return false;
}

}  // namespace zeus::daemon
