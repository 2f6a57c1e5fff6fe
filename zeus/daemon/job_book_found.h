#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "zeus/base/process.h"
#include "zeus/daemon/job_book.h"

namespace zeus::daemon {

struct JobBook::Found {
  std::string cgroup{};
  std::vector<ProcessIdentity> ancestry{};  // Itself first; empty where it has ended.

  bool Has(const ProcessIdentity& process) const {
    return std::ranges::find(ancestry, process) != ancestry.end();
  }
};

}  // namespace zeus::daemon
