#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "zeus/base/process.h"
#include "zeus/base/result.h"

namespace zeus {

// A trial that a process of this machine runs.
struct RunningTrial {
  std::string where{};  // The database or server that knows it.
  std::string job{};
  std::string request{};   // By which the trial was asked for.
  std::int64_t trial = 0;  // 0: asked for, and no answer yet.
  ProcessIdentity runner{};
};

// Trials that are run here, a file for each: what a process that was killed leaves behind, its
// successor finds. Processes may share it. One owner.
class TrialRecords {
 public:
  explicit TrialRecords(std::filesystem::path folder) : folder_(std::move(folder)) {}

  // Adds a record, or replaces the one of the same request.
  Status Add(const RunningTrial& trial) const;
  void Remove(const RunningTrial& trial) const;

  // Returns the trials of this job whose runners have died. Files that cannot be read are skipped.
  std::vector<RunningTrial> Orphans(const std::string& where, const std::string& job) const;

 private:
  std::filesystem::path FileOf(const RunningTrial& trial) const;

  std::filesystem::path folder_;
};

}  // namespace zeus
