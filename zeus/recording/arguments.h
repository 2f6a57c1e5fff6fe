#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>

#include "zeus/recording/call.h"
#include "zeus/recording/signature.h"

// Between the arguments of a call, as a program passes them, and the bytes that are kept of it.
namespace zeus::recording {

// The registers of a call. Every function of NVML has at most six arguments, all of them numbers or
// pointers, so that any of them can be passed on without knowing its types.
using Registers = std::array<std::uintptr_t, kMaxArguments>;

// Numbers for handles, and handles for numbers.
class HandleNumbers {
 public:
  virtual ~HandleNumbers() = default;
  virtual std::uint32_t DeviceNumber(std::uintptr_t device) = 0;
  virtual std::uint32_t OtherNumber(std::uintptr_t handle) = 0;
  virtual std::uintptr_t Device(std::uint32_t number) = 0;
  virtual std::uintptr_t Other(std::uint32_t number) = 0;
};

// The inputs of a call, with the room of its array, which the driver overwrites.
struct Question {
  std::array<std::string, kMaxArguments> parts;
  std::uint32_t room = 0;
};

// So many handles of an array are kept at most.
inline constexpr std::uint32_t kMaxAnswerHandles = 2048;

// Reads the arguments before the driver does. Pointers that are not null are trusted as far as the
// driver trusts them.
void ReadQuestion(const Function& function, const Registers& registers, HandleNumbers& handles,
                  Question& question);

// Reads what the driver has written.
// NOLINTNEXTLINE(readability-function-size)
void ReadAnswer(const Function& function, const Registers& registers, const Question& question,
                std::int32_t code, HandleNumbers& handles,
                std::array<std::string, kMaxArguments>& answer);

// Writes a kept answer to where the program wants it, never more than there is room for. `later`
// is added to times of the driver, in microseconds. Returns the code that the driver would give.
// NOLINTNEXTLINE(readability-function-size)
std::int32_t WriteAnswer(const Function& function, const Registers& registers,
                         const Question& question, const Call& answer, std::int64_t later,
                         HandleNumbers& handles);

}  // namespace zeus::recording
