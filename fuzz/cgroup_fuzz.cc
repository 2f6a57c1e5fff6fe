// Reads the control groups of processes, which users may name as they like. Besides not crashing,
// the parser must keep what it promises about jobs, and nothing below a user's manager may be a
// job.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "zeus/daemon/cgroup.h"
#include "zeus/device/sysfs.h"

namespace {

using zeus::daemon::JobKind;
using zeus::daemon::JobOfCgroup;

void Require(bool promise) {
  if (!promise) std::abort();
}

void FuzzPath(std::string_view path) {
  const auto job = JobOfCgroup(path);
  if (!job) return;
  Require(zeus::IsPrintable(job->job) && job->job.find(':') != std::string::npos);
  Require(job->container.empty() || job->container.size() == 64);
  Require(job->step.empty() || job->kind == JobKind::kSlurm);
}

void FuzzBelowUser(std::string_view path) {
  std::string forged = "/user.slice/user-1000.slice/user@1000.service/";
  forged += path;
  const auto job = JobOfCgroup(forged);
  if (forged.size() > 4096) return;
  Require(job && job->uid == uid_t{1000});
  Require(job->kind == JobKind::kUnit || job->kind == JobKind::kContainer);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  FuzzPath(text);
  FuzzBelowUser(text);
  const std::string chosen = zeus::daemon::CgroupOfProcess(text);
  Require(chosen.empty() || (chosen.front() == '/' && text.find(chosen) != std::string_view::npos));
  FuzzPath(chosen);
  Require(!zeus::daemon::IsInCgroup(text, "/"));
  return 0;
}
