#include "zeus/server/regular_file.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "zeus/base/file.h"
#include "zeus/base/text.h"

namespace zeus::server {

Status CheckRegularFile(const std::filesystem::path& path) {
  struct stat state {};
  if (::stat(path.c_str(), &state) != 0) return FileError(path, errno);
  if (!S_ISREG(state.st_mode))
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("{} is no regular file", Printable(path.string()))};
  if (::access(path.c_str(), R_OK) != 0) return FileError(path, errno);
  return Ok();
}

}  // namespace zeus::server
