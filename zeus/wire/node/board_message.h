#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "zeus/base/json_fwd.h"
#include "zeus/base/result.h"

// The message that the daemon sends on the board socket to whoever connects: one datagram of JSON,
// with one descriptor for each board in it.
namespace zeus::wire {

enum class BoardKind { kGpu, kCpu };
std::string_view Name(BoardKind kind);  // "gpu", "cpu"

// A device of a board; its position in the list is its position on the board.
struct BoardDevice {
  std::string name{};         // Name at the daemon: "gpu:0", "cpu:1", "dram:1".
  std::string uuid{};         // Empty if it has none.
  std::string pci_address{};  // Empty for CPUs.

  friend bool operator==(const BoardDevice&, const BoardDevice&) = default;
};

struct BoardDescription {
  BoardKind kind = BoardKind::kGpu;
  std::uint64_t size = 0;  // Bytes of the memory file.
  std::vector<BoardDevice> devices{};

  friend bool operator==(const BoardDescription&, const BoardDescription&) = default;
};

struct BoardMessage {
  std::uint64_t generation = 0;  // Differs for every start of the daemon.
  // Those that the caller may read, in the order of their descriptors.
  std::vector<BoardDescription> boards{};

  friend bool operator==(const BoardMessage&, const BoardMessage&) = default;
};

inline constexpr std::size_t kLongestBoardMessage = 64 * 1024;
inline constexpr std::size_t kMostBoards = 2;

Json ToJson(const BoardMessage& message);
// kInvalidArgument begins with the name of the field; kNotSupported for another version. Unknown
// fields are ignored.
Result<BoardMessage> ParseBoardMessage(std::string_view text);

}  // namespace zeus::wire
