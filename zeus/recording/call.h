#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

#include "zeus/recording/signature.h"

// One call of a driver and its answer, as bytes: a header, then for each argument what went in,
// then for each what came out, each with its length in front.
namespace zeus::recording {

struct CallHeader {
  std::uint32_t size;  // Size of the whole call. Zero where nothing is written yet.
  std::uint16_t function;
  std::uint16_t thread;    // Threads are counted in the order of their first calls.
  std::int32_t code;       // The answer of the driver.
  std::uint32_t duration;  // In nanoseconds; the greatest number for longer calls.
  std::uint64_t begin;     // In nanoseconds, of the monotonic clock or since the recording began.
};
static_assert(sizeof(CallHeader) == 24);

inline constexpr std::size_t kMaxCallSize = 48 * 1024;
inline constexpr std::size_t kMaxPartSize = 0xffff;
inline constexpr std::uint32_t kNoHandle = 0xffffffff;       // A null pointer.
inline constexpr std::uint32_t kUnknownHandle = 0xfffffffe;  // A pointer that no call has given.

// Numbers in the byte order of the machines that NVML exists for.

template <class Value>
Value Load(const void* from) {
  Value value{};
  std::memcpy(&value, from, sizeof value);
  return value;
}

template <class Value>
void Append(std::string& to, Value value) {
  to.append(reinterpret_cast<const char*>(&value), sizeof value);
}

// The inputs and outputs of a call, by argument. The parts belong to the bytes that were given.
struct Call {
  CallHeader header{};
  std::string_view question{};  // All that went in, with the lengths: equal for equal questions.
  std::array<std::string_view, kMaxArguments> inputs{};
  std::array<std::string_view, kMaxArguments> outputs{};
};

// Returns nullopt when the bytes are no call of a known function.
std::optional<Call> ReadCall(std::string_view bytes);

// Appends a call with these parts; the size in the header is set here.
void AppendCall(CallHeader header, const std::array<std::string, kMaxArguments>& inputs,
                const std::array<std::string, kMaxArguments>& outputs, std::string& to);

}  // namespace zeus::recording
