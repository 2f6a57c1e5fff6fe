#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string_view>
#include <vector>

// The functions of NVML and what their arguments are, so that a call can be written down and
// answered again without knowing each function. zeus/device/nvml/functions.txt lists them, one a
// line: the name, then a word for each argument.
//
//   device, handle            a handle that goes in; out-device, out-handle: one that comes out
//   u32, u64, code            a number; pid: one that names a process
//   since                     a time of earlier answers, which no two runs share
//   in-text, in-uuid, in-serial   a terminated text that goes in
//   out:N                     N bytes that come out; inout:N: N bytes that go in, too
//   text, uuid, serial, name  a buffer for a text; the next word, size, is its length
//   string:N                  a buffer of at least N bytes for a text, without a length
//   struct                    a structure that begins with its version, which holds its size
//   &count                    the room that an array has, then its length
//   array:N, pids:N           elements of N bytes, those of pids beginning with a process
//   devices, handles          an array of handles that come out
//   bytes                     an array whose size in bytes is the next word, size
//   length words              a number of 64-bit words, and the words
//   count fields              a number of field values, and the field values
//   event                     an event, which begins with the handle of a GPU
//   opaque                    a pointer whose target is not known, or holds pointers: left out
//
// Suffixes: @O+L are L bytes at offset O that identify a machine, #O+L such a text, ~O is a time of
// the driver in microseconds since 1970, and ^N says that N bytes after the version go in.
namespace zeus::recording {

enum class Kind : std::uint8_t {
  kDevice,
  kHandle,
  kOutDevice,
  kOutHandle,
  kU32,
  kU64,
  kPid,
  kSince,
  kInText,
  kInUuid,
  kInSerial,
  kOut,
  kInOut,
  kText,
  kUuid,
  kSerial,
  kName,
  kSize,
  kString,
  kStruct,
  kCount,
  kArray,
  kPids,
  kDevices,
  kHandles,
  kBytes,
  kLength,
  kWords,
  kFieldCount,
  kFields,
  kEvent,
  kOpaque,
};

// A part of an answer that identifies a machine.
struct Identity {
  std::uint32_t offset;
  std::uint32_t size;
  bool is_text;
};

struct Argument {
  Kind kind = Kind::kOpaque;
  std::uint32_t size = 0;               // Bytes that come out, or of an element.
  std::uint32_t key_bytes = 0;          // Bytes of a structure that go in, after its version.
  std::optional<std::uint32_t> time{};  // Offset of a time of the driver.
  std::vector<Identity> identities{};
};

inline constexpr std::size_t kMaxArguments = 6;  // All of them are in registers.

struct Function {
  std::string_view name;
  std::string_view line;  // As in the list.
  std::vector<Argument> arguments{};
  // The first function with the same arguments and the same answers, perhaps itself:
  // nvmlDeviceGetCount and nvmlDeviceGetCount_v2 are one question.
  std::uint16_t canonical = 0;
  bool opaque = false;  // Some of its answer is not written down.
};

// The functions in the order of the list. Thread-safe.
const std::vector<Function>& Functions();
std::optional<std::uint16_t> FindFunction(std::string_view name);

extern const std::string_view kFunctionLines[];
extern const std::size_t kFunctionLineCount;

}  // namespace zeus::recording
