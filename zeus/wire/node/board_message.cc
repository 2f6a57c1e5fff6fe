#include "zeus/wire/node/board_message.h"

#include <utility>

#include "zeus/base/field_reader.h"
#include "zeus/base/json.h"
#include "zeus/base/text.h"
#include "zeus/wire/node/board_layout.h"

namespace zeus::wire {
namespace {

constexpr const char* kSchema = "zeus.board/1";

Json DeviceJson(const BoardDevice& device) {
  Json json{{"name", device.name}};
  if (!device.uuid.empty()) json["uuid"] = device.uuid;
  if (!device.pci_address.empty()) json["pci_address"] = device.pci_address;
  return json;
}

Result<BoardDevice> ParseDevice(const Json& json) {
  BoardDevice device;
  FieldReader reader("a device of a board", json);
  reader.Require("name", device.name);
  reader.ReadUnlessNull("uuid", device.uuid);
  reader.ReadUnlessNull("pci_address", device.pci_address);
  ZEUS_RETURN_IF_ERROR(reader.FinishAllowingOthers());
  return device;
}

Result<BoardDescription> ParseBoard(const Json& json) {
  BoardDescription board;
  std::string kind;
  std::vector<Json> devices;
  FieldReader reader("a board", json);
  reader.Require("kind", kind);
  reader.Require("size", board.size);
  reader.Require("devices", devices);
  ZEUS_RETURN_IF_ERROR(reader.FinishAllowingOthers());
  if (kind != Name(BoardKind::kGpu) && kind != Name(BoardKind::kCpu))
    return FieldError("kind", Quote(kind) + " is no kind of board");
  if (devices.size() > board::kMostDevices) return FieldError("devices", "are too many");
  board.kind = kind == Name(BoardKind::kGpu) ? BoardKind::kGpu : BoardKind::kCpu;
  for (const Json& device : devices) {
    ZEUS_TRY(BoardDevice parsed, ParseDevice(device));
    board.devices.push_back(std::move(parsed));
  }
  return board;
}

}  // namespace

std::string_view Name(BoardKind kind) { return kind == BoardKind::kGpu ? "gpu" : "cpu"; }

Json ToJson(const BoardMessage& message) {
  Json boards = Json::array();
  for (const BoardDescription& board : message.boards) {
    Json devices = Json::array();
    for (const BoardDevice& device : board.devices) devices.push_back(DeviceJson(device));
    boards.push_back(
        {{"kind", Name(board.kind)}, {"size", board.size}, {"devices", std::move(devices)}});
  }
  return {{"schema", kSchema},
          {"clock", "CLOCK_MONOTONIC"},
          {"generation", message.generation},
          {"boards", std::move(boards)}};
}

Result<BoardMessage> ParseBoardMessage(std::string_view text) {
  ZEUS_TRY(const Json json, ParseJson(text));
  BoardMessage message;
  std::string schema;
  std::vector<Json> boards;
  FieldReader reader("the message of the board", json);
  reader.Require("schema", schema);
  reader.Require("generation", message.generation);
  reader.Require("boards", boards);
  ZEUS_RETURN_IF_ERROR(reader.FinishAllowingOthers());
  if (schema != kSchema)
    return Error{ErrorCode::kNotSupported,
                 "the node daemon has boards of another version, " + Quote(schema)};
  if (boards.size() > kMostBoards) return FieldError("boards", "are too many");
  for (const Json& board : boards) {
    ZEUS_TRY(BoardDescription parsed, ParseBoard(board));
    message.boards.push_back(std::move(parsed));
  }
  return message;
}

}  // namespace zeus::wire
