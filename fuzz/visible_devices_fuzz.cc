#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "zeus/device/visible_devices.h"

// Parses any value of the variable: no crash, and every selected board exists and is selected once.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const std::vector<zeus::SelectableBoard> kBoards = {
      {.uuid = "GPU-aa11b2c3-0000", .partitions = {}},
      {.uuid = "GPU-aa12b2c3-0000", .partitions = {"MIG-1111", "MIG-2222"}},
      {.uuid = "", .partitions = {}}};
  const std::string value(reinterpret_cast<const char*>(data), size);
  const auto selected = zeus::SelectVisibleBoards("CUDA_VISIBLE_DEVICES", value, kBoards);
  if (selected.ok()) {
    std::vector<bool> seen(kBoards.size());
    for (const auto& visible : selected.value()) {
      if (visible.board >= kBoards.size() || seen[visible.board]) std::abort();
      seen[visible.board] = true;
    }
  } else if (selected.error().code != zeus::ErrorCode::kInvalidArgument ||
             selected.error().message.empty()) {
    std::abort();
  }
  return 0;
}
