#include <zlib.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "zeus/recording/answers.h"
#include "zeus/recording/arguments.h"
#include "zeus/recording/identities.h"
#include "zeus/recording/recording_file.h"
#include "zeus/recording/summary.h"

namespace {

namespace recording = zeus::recording;

// Gives every part the checksum that it should have, so that damage reaches what is behind it.
std::string WithChecksums(std::string bytes) {
  constexpr std::size_t kMagic = 8;
  constexpr std::size_t kHeader = 20;
  for (std::size_t at = kMagic; at + kHeader <= bytes.size();) {
    const auto packed = recording::Load<std::uint32_t>(bytes.data() + at + 8);
    if (packed > bytes.size() - at - kHeader) break;
    const auto sum = static_cast<std::uint32_t>(
        ::crc32(0, reinterpret_cast<const Bytef*>(bytes.data()) + at + kHeader, packed));
    std::memcpy(bytes.data() + at + 16, &sum, sizeof sum);
    at += kHeader + packed;
  }
  return bytes;
}

class NoHandles final : public recording::HandleNumbers {
 public:
  std::uint32_t DeviceNumber(std::uintptr_t /*device*/) override { return 0; }
  std::uint32_t OtherNumber(std::uintptr_t /*handle*/) override { return 0; }
  std::uintptr_t Device(std::uint32_t number) override { return number; }
  std::uintptr_t Other(std::uint32_t number) override { return number; }
};

// Answers a call as a replay does, into memory that is exactly as large as a program must provide.
void AnswerInto(const recording::Call& call) {
  const recording::Function& function = recording::Functions()[call.header.function];
  std::array<std::array<std::uint64_t, 512>, recording::kMaxArguments> places{};
  recording::Registers registers{};
  for (std::size_t i = 0; i < function.arguments.size(); ++i) {
    registers[i] = reinterpret_cast<std::uintptr_t>(places[i].data());
    const recording::Kind kind = function.arguments[i].kind;
    if (kind == recording::Kind::kSize || kind == recording::Kind::kLength ||
        kind == recording::Kind::kFieldCount)
      registers[i] = 16;
    if (kind == recording::Kind::kCount) places[i][0] = 16;
    if (kind == recording::Kind::kStruct) places[i][0] = 64;
  }
  NoHandles handles;
  recording::Question question;
  recording::ReadQuestion(function, registers, handles, question);
  (void)recording::WriteAnswer(function, registers, question, call, 1000, handles);
}

void Use(const recording::Recording& recording) {
  (void)recording::ToText(recording, recording::Summarise(recording));
  const recording::Answers answers(recording.calls);
  recording::IdentityMask mask(recording::Identities::kHidden, 1);
  recording::CallConverter converter(mask, 0);
  for (const auto& recorded : recording.calls) {
    AnswerInto(recorded.call);
    const auto found = answers.Nearest(recorded.call.header.function, recorded.call.question, 7);
    if (found.call == nullptr) __builtin_trap();
  }
  for (const auto& bytes : recording.bytes) {
    std::string converted;
    converter.Convert(*bytes, converted);
  }
}

}  // namespace

// Reads recordings, which strangers send. The first byte chooses what the input is: a file, a file
// whose checksums are right, or calls without a file around them.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (data[0] % 3 < 2) {
    const auto read =
        recording::ParseRecording(data[0] % 3 == 0 ? bytes : WithChecksums(bytes), "input");
    if (read.ok()) Use(read.value());
    return 0;
  }
  for (std::string_view rest(bytes); rest.size() >= sizeof(recording::CallHeader);) {
    const auto length = recording::Load<recording::CallHeader>(rest.data()).size;
    if (length < sizeof(recording::CallHeader) || length > rest.size()) break;
    if (const auto call = recording::ReadCall(rest.substr(0, length))) AnswerInto(*call);
    rest.remove_prefix(length);
  }
  return 0;
}
