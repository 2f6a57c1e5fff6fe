#include "zeus/device/nvml/partitions.h"

#include <utility>

namespace zeus::nvml {

std::vector<std::string> ReadPartitions(const Target& board) {
  std::vector<std::string> partitions;
  unsigned count = 0;
  if (Call(board.api.get_max_mig_count, board.device, &count) != kSuccess) return partitions;
  for (unsigned i = 0; i < count; ++i) {
    Device instance = nullptr;
    // Slots without an instance answer NOT_FOUND.
    if (Call(board.api.get_mig_handle, board.device, i, &instance) != kSuccess) continue;
    auto uuid = ReadUuid({.api = board.api, .device = instance});
    if (uuid.ok()) partitions.push_back(std::move(uuid).value());
  }
  return partitions;
}

}  // namespace zeus::nvml
