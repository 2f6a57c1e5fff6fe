#include "zeus/device/nvml/partitions.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "zeus/base/text.h"
#include "zeus/device/nvml/nvml_session.h"

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

Result<std::string> BoardOfPartition(const NvmlApi& api, const std::string& partition) {
  ZEUS_TRY(const auto session, NvmlSession::Open(api));
  unsigned count = 0;
  ZEUS_RETURN_IF_ERROR(ToStatus(Call(api.get_count, &count), "count the GPUs"));
  for (unsigned i = 0; i < count; ++i) {
    Device board = nullptr;
    if (Call(api.get_handle_by_index, i, &board) != kSuccess) continue;
    const Target target{.api = api, .device = board};
    if (std::ranges::count(ReadPartitions(target), partition) > 0) return ReadUuid(target);
  }
  return Error{ErrorCode::kNotFound, fmt::format("no GPU has the part {}", Quote(partition))};
}

Result<std::string> BoardOfPartition(const std::string& partition) {
  const char* library = std::getenv("ZEUS_NVML_LIBRARY");
  ZEUS_TRY(const NvmlApi api,
           LoadNvml(library == nullptr ? std::nullopt : std::optional<std::string>(library)));
  return BoardOfPartition(api, partition);
}

}  // namespace zeus::nvml
