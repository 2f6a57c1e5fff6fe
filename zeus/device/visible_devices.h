#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "zeus/base/result.h"

// The environment variables with which CUDA and HIP choose and number the GPUs of a process. Pure:
// text and a list of boards in, a selection out.
namespace zeus {

// The devices that a selection can name, in the order in which plain indices count.
struct SelectableBoard {
  std::string uuid;                     // With or without "GPU-"; empty if it has none.
  std::vector<std::string> partitions;  // "MIG-…" ids of its instances, where it is partitioned.
  bool identified = true;               // False for a lost board, which cannot tell its names.
};

enum class BoardShare {
  kWhole,
  kPartition,  // The process owns a part; energy, power and limits are still those of the board.
};

struct VisibleBoard {
  std::size_t board;  // Position in the list of boards.
  BoardShare share;
  std::string guessed_from = {};  // The entry, if this is a guess: see SelectVisibleBoards().

  friend bool operator==(const VisibleBoard&, const VisibleBoard&) = default;
};

// The boards that `value` of the variable called `variable` (CUDA_VISIBLE_DEVICES,
// HIP_VISIBLE_DEVICES, ROCR_VISIBLE_DEVICES) selects, in its order. Entries are indices, "GPU-" and
// the beginning of a UUID, "MIG-<uuid>", or the older "MIG-GPU-<uuid>/<instance>/<instance>".
// No value selects every board. An empty one, "-1" and Slurm's "NoDevFiles" select none.
//
// The vendors' runtimes stop at the first entry that they do not understand and silently drop the
// rest. Here each such entry (also one that is repeated, out of range, unknown or ambiguous) is
// kInvalidArgument, quoting it: energy missing from a report is worse than a refusal.
// Two partitions of one board give the board once.
//
// An identifier that no board has may be that of a board that could not be identified: it selects
// the next such board, and says so in guessed_from. It is an error only when none is left.
Result<std::vector<VisibleBoard>> SelectVisibleBoards(std::string_view variable,
                                                      const std::optional<std::string>& value,
                                                      const std::vector<SelectableBoard>& boards);

// Whether some entry is a plain index, so that the meaning depends on how the runtime counts.
bool SelectsByIndex(const std::optional<std::string>& value);

enum class DeviceOrder {
  kFastestFirst,  // CUDA's default. The heuristic is CUDA's own; equal boards keep the PCI order.
  kPciBusId,
};

// CUDA_DEVICE_ORDER; unset or empty is the default. kInvalidArgument quotes a value that is
// neither of the two.
Result<DeviceOrder> ParseDeviceOrder(const std::optional<std::string>& value);

}  // namespace zeus
