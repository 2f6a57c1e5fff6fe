#include "zeus/recording/call.h"

namespace zeus::recording {
namespace {

bool TakePart(std::string_view& rest, std::string_view& part) {
  if (rest.size() < sizeof(std::uint16_t)) return false;
  const auto size = Load<std::uint16_t>(rest.data());
  rest.remove_prefix(sizeof(std::uint16_t));
  if (rest.size() < size) return false;
  part = rest.substr(0, size);
  rest.remove_prefix(size);
  return true;
}

}  // namespace

std::optional<Call> ReadCall(std::string_view bytes) {
  if (bytes.size() < sizeof(CallHeader)) return std::nullopt;
  Call call;
  call.header = Load<CallHeader>(bytes.data());
  if (call.header.size != bytes.size() || call.header.function >= Functions().size())
    return std::nullopt;
  const std::size_t count = Functions()[call.header.function].arguments.size();
  std::string_view rest = bytes.substr(sizeof(CallHeader));
  const char* const begin = rest.data();
  for (std::size_t i = 0; i < count; ++i)
    if (!TakePart(rest, call.inputs[i])) return std::nullopt;
  call.question = {begin, static_cast<std::size_t>(rest.data() - begin)};
  for (std::size_t i = 0; i < count; ++i)
    if (!TakePart(rest, call.outputs[i])) return std::nullopt;
  if (!rest.empty()) return std::nullopt;
  return call;
}

void AppendCall(CallHeader header, const std::array<std::string, kMaxArguments>& inputs,
                const std::array<std::string, kMaxArguments>& outputs, std::string& to) {
  const std::size_t count = Functions()[header.function].arguments.size();
  const std::size_t begin = to.size();
  Append(to, header);
  for (const auto* parts : {&inputs, &outputs})
    for (std::size_t i = 0; i < count; ++i) {
      Append(to, static_cast<std::uint16_t>((*parts)[i].size()));
      to += (*parts)[i];
    }
  header.size = static_cast<std::uint32_t>(to.size() - begin);
  std::memcpy(to.data() + begin, &header.size, sizeof header.size);
}

}  // namespace zeus::recording
