#include "zeus/http/regular_file.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "zeus/base/file.h"
#include "zeus/base/text.h"

namespace zeus::http {

Status CheckRegularFile(const std::filesystem::path& path) {
  struct stat state {};
  if (::stat(path.c_str(), &state) != 0) return FileError(path, errno);
  if (!S_ISREG(state.st_mode))
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("{} is no regular file", Printable(path.string()))};
  if (::access(path.c_str(), R_OK) != 0) return FileError(path, errno);
  return Ok();
}

FileStamp FileStamp::Of(const std::filesystem::path& path) {
  struct stat state {};
  if (::stat(path.c_str(), &state) != 0) return {};
  const auto nanoseconds = [](const timespec& time) {
    return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
  };
  return {.device = static_cast<std::int64_t>(state.st_dev),
          .number = static_cast<std::int64_t>(state.st_ino),
          .size = state.st_size,
          .modified = nanoseconds(state.st_mtim),
          .changed = nanoseconds(state.st_ctim)};
}

}  // namespace zeus::http
