#include "zeus/recording/arguments.h"

#include <algorithm>
#include <cstring>
#include <string_view>

#include "zeus/device/nvml/nvml_abi.h"

namespace zeus::recording {
namespace {

constexpr std::size_t kMaxText = 256;          // Length of texts that go in.
constexpr std::size_t kMaxAnswerPart = 16384;  // Bytes that come out of one argument.
constexpr std::uint32_t kMaxFields = 256;
constexpr std::uint32_t kSizeMask = 0xffffff;  // The size in the version of a structure.
constexpr std::size_t kHandleSize = sizeof(void*);
constexpr std::size_t kWordSize = 8;
constexpr std::size_t kEventSize = sizeof(nvml::EventData);

// Registers hold pointers of the program.
const char* Pointer(std::uintptr_t value) {
  return reinterpret_cast<const char*>(value);  // NOLINT(performance-no-int-to-ptr)
}
char* Place(std::uintptr_t value) {
  return reinterpret_cast<char*>(value);  // NOLINT(performance-no-int-to-ptr)
}
std::uint32_t Number(std::uintptr_t value) { return static_cast<std::uint32_t>(value); }

std::uint32_t LoadNumber(std::uintptr_t pointer) {
  return pointer == 0 ? 0 : Load<std::uint32_t>(Pointer(pointer));
}

// The size of a structure by its version; zero for one that cannot be right.
std::size_t StructSize(std::uintptr_t pointer) {
  const std::size_t size = LoadNumber(pointer) & kSizeMask;
  return size >= sizeof(std::uint32_t) && size <= kMaxAnswerPart ? size : 0;
}

std::uint32_t FieldCount(const Function& function, const Registers& registers) {
  for (std::size_t i = 0; i < function.arguments.size(); ++i)
    if (function.arguments[i].kind == Kind::kFieldCount)
      return std::min(Number(registers[i]), kMaxFields);
  return 0;
}

// Fields are asked for by their identifier and scope, which begin each of them.
void ReadFieldQuestion(std::uintptr_t fields, std::uint32_t count, std::string& part) {
  if (fields == 0) return;
  for (std::uint32_t i = 0; i < count; ++i)
    part.append(Pointer(fields) + i * sizeof(nvml::FieldValue), 2 * sizeof(std::uint32_t));
}

void ReadInput(const Function& function, std::size_t index, const Registers& registers,
               HandleNumbers& handles, Question& question) {
  const Argument& argument = function.arguments[index];
  const std::uintptr_t value = registers[index];
  std::string& part = question.parts[index];
  part.clear();
  switch (argument.kind) {
    case Kind::kDevice:
      return Append(part, handles.DeviceNumber(value));
    case Kind::kHandle:
      return Append(part, handles.OtherNumber(value));
    case Kind::kU32:
    case Kind::kPid:
    case Kind::kFieldCount:
      return Append(part, Number(value));
    case Kind::kU64:
      return Append(part, static_cast<std::uint64_t>(value));
    case Kind::kInText:
    case Kind::kInUuid:
    case Kind::kInSerial:
      if (value != 0) part.assign(Pointer(value), ::strnlen(Pointer(value), kMaxText));
      return;
    case Kind::kFields:
      return ReadFieldQuestion(value, FieldCount(function, registers), part);
    case Kind::kSince:
    case Kind::kSize:
    case Kind::kLength:
      return;
    case Kind::kCount:
      question.room = LoadNumber(value);
      part.push_back(value == 0 ? '\0' : question.room == 0 ? '\1' : '\2');
      return;
    case Kind::kStruct:
      if (value != 0) part.assign(Pointer(value), sizeof(std::uint32_t));
      if (value != 0 && StructSize(value) >= argument.key_bytes + sizeof(std::uint32_t))
        part.append(Pointer(value) + sizeof(std::uint32_t), argument.key_bytes);
      return;
    case Kind::kInOut:
      if (value != 0) part.assign(Pointer(value), argument.size);
      return;
    default:
      part.push_back(value == 0 ? '\0' : '\1');
  }
}

// The number of elements that came out: of the array that &count belongs to.
std::uint32_t Elements(const Function& function, const Registers& registers, std::uint32_t room) {
  for (std::size_t i = 0; i < function.arguments.size(); ++i)
    if (function.arguments[i].kind == Kind::kCount) return std::min(room, LoadNumber(registers[i]));
  return 0;
}

std::size_t Bytes(std::size_t elements, std::size_t size) {
  if (size == 0) return 0;
  return std::min(elements, kMaxAnswerPart / size) * size;
}

void AppendHandles(std::uintptr_t array, std::uint32_t count, bool devices, HandleNumbers& handles,
                   std::string& part) {
  count = std::min(count, kMaxAnswerHandles);
  for (std::uint32_t i = 0; i < count; ++i) {
    const auto handle = Load<std::uintptr_t>(Pointer(array) + i * kHandleSize);
    Append(part, devices ? handles.DeviceNumber(handle) : handles.OtherNumber(handle));
  }
}

// NOLINTNEXTLINE(readability-function-size)
void ReadOutput(const Function& function, std::size_t index, const Registers& registers,
                std::uint32_t room, HandleNumbers& handles, std::string& part) {
  const Argument& argument = function.arguments[index];
  const std::uintptr_t value = registers[index];
  if (value == 0) return;
  const std::size_t next = index + 1 < kMaxArguments ? Number(registers[index + 1]) : 0;
  const std::size_t before = index > 0 ? Number(registers[index - 1]) : 0;
  switch (argument.kind) {
    case Kind::kOut:
    case Kind::kInOut:
      part.assign(Pointer(value), argument.size);
      return;
    case Kind::kText:
    case Kind::kUuid:
    case Kind::kSerial:
    case Kind::kName:
      part.assign(Pointer(value), ::strnlen(Pointer(value), std::min(next, kMaxAnswerPart)));
      return;
    case Kind::kString:
      part.assign(Pointer(value), ::strnlen(Pointer(value), argument.size));
      return;
    case Kind::kStruct:
      part.assign(Pointer(value), StructSize(value));
      return;
    case Kind::kOutDevice:
      return Append(part, handles.DeviceNumber(Load<std::uintptr_t>(Pointer(value))));
    case Kind::kOutHandle:
      return Append(part, handles.OtherNumber(Load<std::uintptr_t>(Pointer(value))));
    case Kind::kCount:
      return Append(part, LoadNumber(value));
    case Kind::kArray:
    case Kind::kPids:
      part.assign(Pointer(value), Bytes(Elements(function, registers, room), argument.size));
      return;
    case Kind::kDevices:
    case Kind::kHandles:
      return AppendHandles(value, Elements(function, registers, room),
                           argument.kind == Kind::kDevices, handles, part);
    case Kind::kBytes:
      part.assign(Pointer(value), Bytes(next, 1));
      return;
    case Kind::kWords:
      part.assign(Pointer(value), Bytes(before, kWordSize));
      return;
    case Kind::kFields:
      part.assign(Pointer(value), FieldCount(function, registers) * sizeof(nvml::FieldValue));
      return;
    case Kind::kEvent:
      Append(part, handles.DeviceNumber(Load<std::uintptr_t>(Pointer(value))));
      part.append(Pointer(value) + kHandleSize, kEventSize - kHandleSize);
      return;
    default:
      return;
  }
}

}  // namespace

void ReadQuestion(const Function& function, const Registers& registers, HandleNumbers& handles,
                  Question& question) {
  question.room = 0;
  for (std::size_t i = 0; i < function.arguments.size(); ++i)
    ReadInput(function, i, registers, handles, question);
}

// NOLINTNEXTLINE(readability-function-size)
void ReadAnswer(const Function& function, const Registers& registers, const Question& question,
                std::int32_t code, HandleNumbers& handles,
                std::array<std::string, kMaxArguments>& answer) {
  for (std::size_t i = 0; i < function.arguments.size(); ++i) {
    answer[i].clear();
    // With other codes nothing is written but, where the room is too small, the room that it takes.
    const bool written = code == nvml::kSuccess || (code == nvml::kInsufficientSize &&
                                                    function.arguments[i].kind == Kind::kCount);
    if (written) ReadOutput(function, i, registers, question.room, handles, answer[i]);
  }
}

namespace {

// Moves the time at `offset` of each element.
void Shift(char* elements, std::size_t size, std::size_t element, std::uint32_t offset,
           std::int64_t later) {
  for (std::size_t at = 0; at + element <= size && element != 0; at += element) {
    if (offset + sizeof(std::int64_t) > element) return;
    const auto time = Load<std::int64_t>(elements + at + offset);
    if (time <= 0) continue;  // The driver gave no time.
    const std::int64_t shifted = time + later;
    std::memcpy(elements + at + offset, &shifted, sizeof shifted);
  }
}

class AnswerWriter {
 public:
  AnswerWriter(const Function& function, const Registers& registers, const Question& question,
               std::int64_t later, HandleNumbers& handles)
      : function_(function), registers_(registers), later_(later), handles_(handles) {
    room_ = question.room;
  }

  // Returns kSuccess, or the code for a place that is too small.
  nvml::Return Write(std::size_t index, std::string_view part) {
    const Argument& argument = function_.arguments[index];
    const std::uintptr_t to = registers_[index];
    if (to == 0 || part.empty()) return nvml::kSuccess;
    const std::size_t next = index + 1 < kMaxArguments ? Number(registers_[index + 1]) : 0;
    const std::size_t before = index > 0 ? Number(registers_[index - 1]) : 0;
    switch (argument.kind) {
      case Kind::kOut:
      case Kind::kInOut:
        return Copy(argument, to, part, argument.size, argument.size);
      case Kind::kText:
      case Kind::kUuid:
      case Kind::kSerial:
      case Kind::kName:
        return WriteText(to, part, next);
      case Kind::kString:
        return WriteText(to, part, argument.size);
      case Kind::kStruct:
        return Copy(argument, to, part, StructSize(to), 0);
      case Kind::kArray:
      case Kind::kPids:
        return Copy(argument, to, part, room_ * std::size_t{argument.size}, argument.size);
      case Kind::kBytes:
        return Copy(argument, to, part, next, 1);
      case Kind::kWords:
        return Copy(argument, to, part, before * kWordSize, kWordSize);
      case Kind::kFields:
        return WriteFields(to, part);
      default:
        return WriteHandles(argument.kind, to, part);
    }
  }

 private:
  nvml::Return Copy(const Argument& argument, std::uintptr_t to, std::string_view part,
                    std::size_t room, std::size_t element) {
    const std::size_t size = std::min(part.size(), room);
    std::memcpy(Place(to), part.data(), size);
    if (argument.time) Shift(Place(to), size, element, *argument.time, later_);
    return nvml::kSuccess;
  }

  static nvml::Return WriteText(std::uintptr_t to, std::string_view text, std::size_t room) {
    if (room < text.size() + 1) return nvml::kInsufficientSize;
    std::memcpy(Place(to), text.data(), text.size());
    Place(to)[text.size()] = '\0';
    return nvml::kSuccess;
  }

  nvml::Return WriteFields(std::uintptr_t to, std::string_view part) {
    const std::size_t room = FieldCount(function_, registers_) * sizeof(nvml::FieldValue);
    const std::size_t size = std::min(part.size(), room);
    std::memcpy(Place(to), part.data(), size);
    Shift(Place(to), size, sizeof(nvml::FieldValue), offsetof(nvml::FieldValue, timestamp), later_);
    return nvml::kSuccess;
  }

  nvml::Return WriteHandles(Kind kind, std::uintptr_t to, std::string_view part) {
    if (part.size() < sizeof(std::uint32_t)) return nvml::kSuccess;
    const auto number = Load<std::uint32_t>(part.data());
    if (kind == Kind::kCount) {
      std::memcpy(Place(to), &number, sizeof number);
      return nvml::kSuccess;
    }
    if (kind == Kind::kOutDevice || kind == Kind::kOutHandle || kind == Kind::kEvent)
      WriteHandle(kind != Kind::kOutHandle, to, number);
    if (kind == Kind::kEvent && part.size() >= sizeof number + kEventSize - kHandleSize)
      std::memcpy(Place(to) + kHandleSize, part.data() + sizeof number, kEventSize - kHandleSize);
    if (kind != Kind::kDevices && kind != Kind::kHandles) return nvml::kSuccess;
    const std::size_t count = std::min<std::size_t>(part.size() / sizeof number, room_);
    for (std::size_t i = 0; i < count; ++i)
      WriteHandle(kind == Kind::kDevices, to + i * kHandleSize,
                  Load<std::uint32_t>(part.data() + i * sizeof number));
    return nvml::kSuccess;
  }

  void WriteHandle(bool device, std::uintptr_t to, std::uint32_t number) {
    const std::uintptr_t handle = device ? handles_.Device(number) : handles_.Other(number);
    std::memcpy(Place(to), &handle, sizeof handle);
  }

  const Function& function_;
  const Registers& registers_;
  std::uint32_t room_ = 0;
  std::int64_t later_;
  HandleNumbers& handles_;
};

// Whether the program's array is smaller than the one that was kept.
bool RoomTooSmall(const Function& function, const Question& question, const Call& answer) {
  for (std::size_t i = 0; i < function.arguments.size(); ++i) {
    if (function.arguments[i].kind != Kind::kCount) continue;
    if (answer.outputs[i].size() < sizeof(std::uint32_t)) return false;
    return Load<std::uint32_t>(answer.outputs[i].data()) > question.room;
  }
  return false;
}

}  // namespace

// NOLINTNEXTLINE(readability-function-size)
std::int32_t WriteAnswer(const Function& function, const Registers& registers,
                         const Question& question, const Call& answer, std::int64_t later,
                         HandleNumbers& handles) {
  // The driver wrote something that was not kept.
  if (function.opaque && answer.header.code == nvml::kSuccess) return nvml::kNotSupported;
  AnswerWriter writer(function, registers, question, later, handles);
  const bool too_small =
      answer.header.code == nvml::kSuccess && RoomTooSmall(function, question, answer);
  nvml::Return code = too_small ? nvml::kInsufficientSize : answer.header.code;
  for (std::size_t i = 0; i < function.arguments.size(); ++i) {
    if (too_small && function.arguments[i].kind != Kind::kCount) continue;
    if (const nvml::Return failure = writer.Write(i, answer.outputs[i]);
        failure != nvml::kSuccess && code == nvml::kSuccess)
      code = failure;
  }
  return code;
}

}  // namespace zeus::recording
