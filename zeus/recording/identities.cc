#include "zeus/recording/identities.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstring>

#include "zeus/base/random.h"

namespace zeus::recording {
namespace {

constexpr std::uint32_t kFirstProcess = 1001;
constexpr std::string_view kHexadecimal = "0123456789abcdef";
constexpr std::size_t kDecimals = 10;

Random Source(std::uint64_t secret, std::string_view text) { return Random(secret).Fork(text); }

bool IsHexadecimal(char c) { return std::isxdigit(static_cast<unsigned char>(c)) != 0; }

// The part of a UUID that says of what it is.
std::size_t Prefix(std::string_view text) {
  const std::size_t hyphen = text.find('-');
  constexpr std::size_t kLongest = 3;
  return hyphen != std::string_view::npos && hyphen <= kLongest ? hyphen + 1 : 0;
}

}  // namespace

std::string IdentityMask::Text(std::string_view text) const {
  std::string hidden(text);
  if (!hides()) return hidden;
  const std::size_t begin = Prefix(text);
  Random random = Source(secret_, text.substr(begin));
  for (std::size_t i = begin; i < hidden.size(); ++i) {
    char& c = hidden[i];
    if (std::isdigit(static_cast<unsigned char>(c)) != 0 && begin == 0)
      c = kHexadecimal[random.Below(kDecimals)];
    else if (IsHexadecimal(c))
      c = kHexadecimal[random.Below(kHexadecimal.size())];
    else if (std::isalpha(static_cast<unsigned char>(c)) != 0)
      c = static_cast<char>('a' + random.Below('z' - 'a' + 1));
  }
  return hidden;
}

std::string IdentityMask::Bytes(std::string_view bytes) const {
  std::string hidden(bytes);
  // Zeros mean that there is no identity.
  if (!hides() || bytes.find_first_not_of('\0') == std::string_view::npos) return hidden;
  Random random = Source(secret_, bytes);
  for (char& c : hidden) c = static_cast<char>(random.Below(256));
  return hidden;
}

std::uint32_t IdentityMask::Process(std::uint32_t pid) {
  if (!hides() || pid == 0) return pid;
  const auto next = kFirstProcess + static_cast<std::uint32_t>(processes_.size());
  return processes_.try_emplace(pid, next).first->second;
}

std::string IdentityMask::ProcessName(std::string_view name) {
  if (!hides() || name.empty()) return std::string(name);
  const std::string next = fmt::format("program-{}", names_.size() + 1);
  return names_.try_emplace(std::string(name), next).first->second;
}

std::uint32_t CallConverter::Device(std::uint32_t raw) {
  if (raw == kNoHandle || raw == kUnknownHandle) return raw;
  const auto next = static_cast<std::uint32_t>(devices_.size());
  return devices_.try_emplace(raw, std::min(next, kMaxHandles - 1)).first->second;
}

void CallConverter::Convert(std::string_view calls, std::string& to) {
  std::array<std::string, kMaxArguments> inputs;
  std::array<std::string, kMaxArguments> outputs;
  while (calls.size() >= sizeof(CallHeader)) {
    const auto size = Load<CallHeader>(calls.data()).size;
    if (size < sizeof(CallHeader) || size > calls.size()) return;
    auto call = ReadCall(calls.substr(0, size));
    if (!call) return;
    call->header.begin -= std::min(begin_, call->header.begin);
    const Function& function = Functions()[call->header.function];
    for (std::size_t i = 0; i < function.arguments.size(); ++i) {
      ConvertPart(function.arguments[i], call->inputs[i], false, inputs[i]);
      ConvertPart(function.arguments[i], call->outputs[i], true, outputs[i]);
    }
    AppendCall(call->header, inputs, outputs, to);
    calls.remove_prefix(size);
  }
}

void CallConverter::ConvertPart(const Argument& argument, std::string_view text, bool is_output,
                                std::string& part) {
  part = text;
  switch (argument.kind) {
    case Kind::kDevice:
    case Kind::kOutDevice:
    case Kind::kEvent:
    case Kind::kDevices: {
      // The input of those that come out is only whether there is a place for them.
      if (!is_output && argument.kind != Kind::kDevice) return;
      const std::size_t count =
          argument.kind == Kind::kDevices ? part.size() / sizeof(std::uint32_t) : 1;
      for (std::size_t i = 0; i < count && part.size() >= (i + 1) * sizeof(std::uint32_t); ++i) {
        const std::uint32_t number = Device(Load<std::uint32_t>(part.data() + i * 4));
        std::memcpy(part.data() + i * 4, &number, sizeof number);
      }
      return;
    }
    case Kind::kInUuid:
    case Kind::kInSerial:
      part = mask_.Text(text);
      return;
    case Kind::kPid:
      if (part.size() == sizeof(std::uint32_t)) {
        part.clear();
        Append(part, mask_.Process(Load<std::uint32_t>(text.data())));
      }
      return;
    default:
      break;
  }
  if (!is_output) return;
  if (argument.kind == Kind::kUuid || argument.kind == Kind::kSerial) part = mask_.Text(text);
  if (argument.kind == Kind::kName) part = mask_.ProcessName(text);
  HideElements(argument, part);
}

void CallConverter::HideElements(const Argument& argument, std::string& part) {
  if (argument.kind == Kind::kPids && argument.size >= sizeof(std::uint32_t))
    for (std::size_t at = 0; at + argument.size <= part.size(); at += argument.size) {
      const std::uint32_t pid = mask_.Process(Load<std::uint32_t>(part.data() + at));
      std::memcpy(part.data() + at, &pid, sizeof pid);
    }
  for (const Identity& identity : argument.identities) {
    if (std::size_t{identity.offset} + identity.size > part.size()) continue;
    const std::string_view place = std::string_view(part).substr(identity.offset, identity.size);
    std::string hidden =
        identity.is_text ? mask_.Text(place.substr(0, place.find('\0'))) : mask_.Bytes(place);
    if (mask_.hides()) hidden.resize(identity.size, '\0');
    if (mask_.hides()) part.replace(identity.offset, identity.size, hidden);
  }
}

}  // namespace zeus::recording
