#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "zeus/base/process.h"
#include "zeus/base/result.h"
#include "zeus/job/job_service.h"

namespace zeus {

// A report about a run that a service has yet to get.
struct KeptTrial {
  std::string where{};
  JobSpec spec{};
  TrialRequest request{};  // With the request id that makes it one trial however often it is told.
  std::int64_t trial = 0;  // The number that the service gave it; 0: none yet.
  std::optional<TrialReport> report{};  // The last one, which contains all before it.
  std::optional<TrialEnd> end{};        // nullopt: it was running when this was written.
  ProcessIdentity runner{};
};

// Trials that wait to be told, a file for each ("zeus.kept_trial/1", docs/formats.md), and the
// batch size that each job last used. Processes may share the folder; everything is replaced as a
// whole. Without a folder nothing is kept.
class TrialSpool {
 public:
  explicit TrialSpool(std::filesystem::path folder) : folder_(std::move(folder)) {}

  // Or replaces the one of the same request.
  Status Save(const KeptTrial& trial) const;
  void Remove(const KeptTrial& trial) const;
  // Returns the trials of this job that have ended or whose runner has died, oldest first. Files
  // that cannot be read are skipped.
  std::vector<KeptTrial> Waiting(const std::string& where, const std::string& job) const;

  void RememberBatchSize(const std::string& where, const std::string& job, int batch_size) const;
  std::optional<int> LastBatchSize(const std::string& where, const std::string& job) const;

 private:
  std::filesystem::path FileOf(const KeptTrial& trial) const;
  std::filesystem::path BatchSizeFile(const std::string& where, const std::string& job) const;

  std::filesystem::path folder_;
};

}  // namespace zeus
