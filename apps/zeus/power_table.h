#pragma once

#include <string>
#include <vector>

#include "zeus/base/units.h"
#include "zeus/device/node.h"

namespace zeus::cli {

// The live view of a node: one row per device. Remembers where each energy counter stood when it
// was made, so that the energy column starts at zero. One owner.
class PowerTable {
 public:
  // The node must outlive the table.
  explicit PowerTable(Node& node);

  // Reads every device once and returns the table, header included, one line per row.
  std::vector<std::string> Rows(Seconds since_start);

 private:
  Node& node_;
  std::vector<Result<EnergyReading>> start_;  // GPUs, then CPUs, then rails.
};

}  // namespace zeus::cli
