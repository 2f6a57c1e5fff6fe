#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "zeus/base/result.h"

namespace zeus::daemon {

// A folder that tells programs which watch GPUs, as dcgm-exporter with --hpc-job-mapping-dir, which
// jobs have them: a file for each GPU with a job, named by the GPU's position, with one job a line.
// Thread-safe.
class JobFolder {
 public:
  using Jobs = std::map<std::size_t, std::set<std::string>>;  // By position of the GPU.

  // Makes the folder where there is none. kPermissionDenied for a folder in which others could put
  // links, and so have files elsewhere replaced. What an earlier run wrote about these GPUs stays
  // until the first Show().
  static Result<std::unique_ptr<JobFolder>> Open(std::filesystem::path folder, std::size_t gpus);

  // Writes what differs from before. A file that cannot be written is tried again the next time;
  // the first such error is returned.
  Status Show(const Jobs& jobs);

 private:
  JobFolder(std::filesystem::path folder, std::size_t gpus)
      : folder_(std::move(folder)), gpus_(gpus) {}

  const std::filesystem::path folder_;
  const std::size_t gpus_;
  std::mutex mutex_;
  std::map<std::size_t, std::string> shown_{};  // Guarded by mutex_; "" where there is no file.
};

// The name of a job for people and other programs: "1234" for "slurm:zeus.1234"; "" for a container
// of Kubernetes, which those programs know by themselves.
std::string NameForOthers(std::string_view job);

}  // namespace zeus::daemon
