#include "zeus/recording/signature.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <string>
#include <utility>

namespace zeus::recording {
namespace {

struct Word {
  std::string_view text;
  Kind kind;
};

constexpr std::array kWords = {Word{"device", Kind::kDevice},
                               Word{"handle", Kind::kHandle},
                               Word{"out-device", Kind::kOutDevice},
                               Word{"out-handle", Kind::kOutHandle},
                               Word{"u32", Kind::kU32},
                               Word{"code", Kind::kU32},
                               Word{"u64", Kind::kU64},
                               Word{"pid", Kind::kPid},
                               Word{"since", Kind::kSince},
                               Word{"in-text", Kind::kInText},
                               Word{"in-uuid", Kind::kInUuid},
                               Word{"in-serial", Kind::kInSerial},
                               Word{"out", Kind::kOut},
                               Word{"inout", Kind::kInOut},
                               Word{"text", Kind::kText},
                               Word{"uuid", Kind::kUuid},
                               Word{"serial", Kind::kSerial},
                               Word{"name", Kind::kName},
                               Word{"size", Kind::kSize},
                               Word{"string", Kind::kString},
                               Word{"struct", Kind::kStruct},
                               Word{"&count", Kind::kCount},
                               Word{"array", Kind::kArray},
                               Word{"pids", Kind::kPids},
                               Word{"devices", Kind::kDevices},
                               Word{"handles", Kind::kHandles},
                               Word{"bytes", Kind::kBytes},
                               Word{"length", Kind::kLength},
                               Word{"words", Kind::kWords},
                               Word{"count", Kind::kFieldCount},
                               Word{"fields", Kind::kFields},
                               Word{"event", Kind::kEvent},
                               Word{"opaque", Kind::kOpaque}};

// Functions that ask the same thing as another one, whose arguments have the same layout.
constexpr std::array<std::pair<std::string_view, std::string_view>, 9> kSame = {{
    {"nvmlInit", "nvmlInit_v2"},
    {"nvmlInitWithFlags", "nvmlInit_v2"},
    {"nvmlDeviceGetCount", "nvmlDeviceGetCount_v2"},
    {"nvmlDeviceGetHandleByIndex", "nvmlDeviceGetHandleByIndex_v2"},
    {"nvmlDeviceGetHandleByPciBusId", "nvmlDeviceGetHandleByPciBusId_v2"},
    {"nvmlDeviceGetCurrentClocksThrottleReasons", "nvmlDeviceGetCurrentClocksEventReasons"},
    {"nvmlDeviceGetSupportedClocksThrottleReasons", "nvmlDeviceGetSupportedClocksEventReasons"},
    {"nvmlSystemGetCudaDriverVersion", "nvmlSystemGetCudaDriverVersion_v2"},
    {"nvmlDeviceGetPciInfo_v2", "nvmlDeviceGetPciInfo_v3"},
}};

std::uint32_t TakeNumber(std::string_view& text) {
  std::uint32_t number = 0;
  const auto end = std::from_chars(text.data(), text.data() + text.size(), number).ptr;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return number;
}

void TakeSuffix(std::string_view& text, Argument& argument) {
  const char mark = text.front();
  text.remove_prefix(1);
  const std::uint32_t number = TakeNumber(text);
  if (mark == ':') argument.size = number;
  if (mark == '^') argument.key_bytes = number;
  if (mark == '~') argument.time = number;
  if (mark != '@' && mark != '#') return;
  text.remove_prefix(1);  // The plus sign.
  argument.identities.push_back(
      {.offset = number, .size = TakeNumber(text), .is_text = mark == '#'});
}

Argument ParseArgument(std::string_view text) {
  const std::size_t end = std::min(text.find_first_of(":@#~^"), text.size());
  const auto* const word = std::ranges::find(kWords, text.substr(0, end), &Word::text);
  Argument argument;
  argument.kind = word == kWords.end() ? Kind::kOpaque : word->kind;
  text.remove_prefix(end);
  while (!text.empty()) TakeSuffix(text, argument);
  return argument;
}

Function ParseFunction(std::string_view line, std::uint16_t index) {
  Function function;
  function.line = line;
  function.canonical = index;
  function.name = line.substr(0, line.find(' '));
  std::string_view rest = line.substr(function.name.size());
  while (!rest.empty()) {
    rest.remove_prefix(1);
    const std::string_view word = rest.substr(0, rest.find(' '));
    function.arguments.push_back(ParseArgument(word));
    function.opaque = function.opaque || function.arguments.back().kind == Kind::kOpaque;
    rest.remove_prefix(word.size());
  }
  return function;
}

std::vector<Function> ParseFunctions() {
  std::vector<Function> functions;
  functions.reserve(kFunctionLineCount);
  for (std::size_t i = 0; i < kFunctionLineCount; ++i)
    functions.push_back(ParseFunction(kFunctionLines[i], static_cast<std::uint16_t>(i)));
  for (const auto& [name, other] : kSame) {
    const auto one = std::ranges::find(functions, name, &Function::name);
    const auto same = std::ranges::find(functions, other, &Function::name);
    if (one != functions.end() && same != functions.end()) one->canonical = same->canonical;
  }
  return functions;
}

}  // namespace

const std::vector<Function>& Functions() {
  // Never destroyed, because programs call NVML from exit handlers.
  static const auto* const functions = new std::vector<Function>(ParseFunctions());
  return *functions;
}

std::optional<std::uint16_t> FindFunction(std::string_view name) {
  const auto& functions = Functions();
  const auto found = std::ranges::find(functions, name, &Function::name);
  if (found == functions.end()) return std::nullopt;
  return static_cast<std::uint16_t>(found - functions.begin());
}

}  // namespace zeus::recording
