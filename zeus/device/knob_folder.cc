// Where the journal of knobs is kept.
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <system_error>

#include "zeus/base/file.h"
#include "zeus/base/text.h"
#include "zeus/device/knob_journal.h"

namespace zeus {
namespace {

namespace fs = std::filesystem;

// In a folder that others may write, an entry could be somebody's wish instead of our memory.
Status CheckFolder(const fs::path& folder) {
  struct stat status {};
  if (::lstat(folder.c_str(), &status) != 0) return FileError(folder, errno);
  const bool ours = status.st_uid == ::geteuid() && (status.st_mode & (S_IWGRP | S_IWOTH)) == 0;
  if (S_ISDIR(status.st_mode) && ours) return Ok();
  return Error{ErrorCode::kPermissionDenied,
               fmt::format("{} is not a folder that this user alone may write: have it removed, or "
                           "set ZEUS_KNOB_DIR to a folder of yours",
                           Printable(folder.string()))};
}

Result<fs::path> Make(const fs::path& folder) {
  std::error_code failure;
  fs::create_directories(folder.parent_path(), failure);
  constexpr mode_t kOwnerOnly = 0700;
  if (::mkdir(folder.c_str(), kOwnerOnly) != 0 && errno != EEXIST) return FileError(folder, errno);
  ZEUS_RETURN_IF_ERROR(CheckFolder(folder));
  if (::access(folder.c_str(), W_OK | X_OK) != 0) return FileError(folder, errno);
  return folder;
}

fs::path FromVariable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? fs::path() : fs::path(value);
}

}  // namespace

Result<fs::path> KnobFolder() {
  if (const fs::path chosen = FromVariable("ZEUS_KNOB_DIR"); !chosen.empty()) {
    auto made = Make(chosen);
    return made.ok() ? made : std::move(made).error().While("ZEUS_KNOB_DIR");
  }
  if (auto made = Make("/run/zeus/knobs"); made.ok()) return made;
  if (const fs::path runtime = FromVariable("XDG_RUNTIME_DIR"); !runtime.empty())
    if (auto made = Make(runtime / "zeus/knobs"); made.ok()) return made;
  return Make(fs::temp_directory_path() / fmt::format("zeus-knobs-{}", ::geteuid()));
}

}  // namespace zeus
