#include "zeus/daemon/job_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "zeus/base/file.h"
#include "zeus/base/file_descriptor.h"
#include "zeus/base/text.h"

namespace zeus::daemon {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSlurm = "slurm:";

Status CheckFolder(const fs::path& folder) {
  const FileDescriptor open(
      ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  struct stat state {};
  if (!open.valid() || ::fstat(open.get(), &state) != 0) return FileError(folder, errno);
  if ((state.st_uid == 0 || state.st_uid == ::geteuid()) &&
      (state.st_mode & (S_IWGRP | S_IWOTH)) == 0)
    return Ok();
  return Error{ErrorCode::kPermissionDenied,
               fmt::format("{} may be written by others: chown it to root and chmod go-w it",
                           Printable(folder.string()))};
}

}  // namespace

Result<std::unique_ptr<JobFolder>> JobFolder::Open(fs::path folder, std::size_t gpus) {
  if (::mkdir(folder.c_str(), 0755) != 0 && errno != EEXIST) return FileError(folder, errno);
  ZEUS_RETURN_IF_ERROR(CheckFolder(folder));
  return std::unique_ptr<JobFolder>(new JobFolder(std::move(folder), gpus));
}

Status JobFolder::Show(const Jobs& jobs) {
  const std::lock_guard lock(mutex_);
  Status result = Ok();
  for (std::size_t gpu = 0; gpu < gpus_; ++gpu) {
    std::string text;
    if (const auto found = jobs.find(gpu); found != jobs.end())
      for (const std::string& job : found->second) text += job + "\n";
    const auto before = shown_.find(gpu);
    if (before != shown_.end() && before->second == text) continue;
    const fs::path file = folder_ / std::to_string(gpu);
    std::error_code failure;
    Status written = Ok();
    if (text.empty())
      fs::remove(file, failure);
    else
      written = ReplaceFile(file, text, Readers::kEverybody, Durability::kSurvivesProcess);
    if (failure) written = FileError(file, failure.value());
    if (written.ok())
      shown_[gpu] = std::move(text);
    else if (result.ok())
      result = std::move(written);
  }
  return result;
}

std::string NameForOthers(std::string_view job) {
  if (job.starts_with("k8s:")) return "";
  if (job.starts_with(kSlurm)) {
    job.remove_prefix(kSlurm.size());
    // The name of a cluster comes before the number, which has no dots.
    job.remove_prefix(job.rfind('.') + 1);
  }
  return Printable(std::string(job));
}

}  // namespace zeus::daemon
