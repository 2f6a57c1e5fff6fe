#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "zeus/base/file.h"
#include "zeus/base/process.h"
#include "zeus/base/result.h"
#include "zeus/base/units.h"
#include "zeus/daemon/lease_record.h"

// The files in which leases outlast the daemon: "zeus.leases/1", for leases that end with this boot
// and for standing ones alike. The format is private to the daemon.
namespace zeus::daemon {

// Replaces the file, readable by its owner only. It has reached the kernel when this returns.
Status WriteLeases(const std::filesystem::path& file, const std::string& boot,
                   const std::vector<LeaseRecord>& leases, Durability durability);

struct KeptLeases {
  std::string boot{};
  std::vector<LeaseRecord> leases{};
};
// Nothing without a file, or in an empty one. kInvalidArgument names the file and what is wrong
// with it.
Result<KeptLeases> ReadLeases(const std::filesystem::path& file);

// The caps of budgets in the file, by device: what each falls back to, since the daemon that would
// get a new grant is gone.
std::map<std::string, Watts> BudgetCapsOf(const KeptLeases& kept);

}  // namespace zeus::daemon
