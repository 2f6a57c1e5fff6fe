#include "zeus/kubernetes/protobuf_reader.h"

#include <fmt/format.h>

namespace zeus::kubernetes {
namespace {

constexpr std::uint64_t kMostFieldNumber = (1U << 29U) - 1;

Error Malformed(std::string_view why) {
  return InvalidArgument(fmt::format("malformed protobuf: {}", why));
}

}  // namespace

Result<std::uint64_t> ProtobufReader::Varint() {
  std::uint64_t value = 0;
  for (unsigned shift = 0; shift < 64; shift += 7) {
    if (rest_.empty()) return Malformed("a number ends too early");
    const auto byte = static_cast<std::uint8_t>(rest_.front());
    rest_.remove_prefix(1);
    // The tenth byte has room for one bit.
    if (shift == 63 && byte > 1) break;
    value |= static_cast<std::uint64_t>(byte & 0x7fU) << shift;
    if ((byte & 0x80U) == 0) return value;
  }
  return Malformed("a number has more than 64 bits");
}

Result<std::uint64_t> ProtobufReader::Fixed(std::size_t size) {
  if (rest_.size() < size) return Malformed("a number ends too early");
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < size; ++i)
    value |= static_cast<std::uint64_t>(static_cast<std::uint8_t>(rest_[i])) << (8 * i);
  rest_.remove_prefix(size);
  return value;
}

Result<std::string_view> ProtobufReader::Bytes() {
  ZEUS_TRY(const std::uint64_t size, Varint());
  if (size > rest_.size())
    return Malformed(
        fmt::format("a field of {} bytes stands where {} are left", size, rest_.size()));
  const std::string_view bytes = rest_.substr(0, size);
  rest_.remove_prefix(size);
  return bytes;
}

Result<ProtobufReader::Field> ProtobufReader::ReadField() {
  ZEUS_TRY(const std::uint64_t tag, Varint());
  const std::uint64_t number = tag >> 3U;
  if (number == 0 || number > kMostFieldNumber)
    return Malformed(fmt::format("{} is no field number", number));
  Field field{.number = static_cast<std::uint32_t>(number)};
  switch (tag & 7U) {
    case 0: {
      ZEUS_TRY(field.value, Varint());
      return field;
    }
    case 1: {
      field.type = Type::kFixed64;
      ZEUS_TRY(field.value, Fixed(8));
      return field;
    }
    case 2: {
      field.type = Type::kBytes;
      ZEUS_TRY(field.bytes, Bytes());
      return field;
    }
    case 5: {
      field.type = Type::kFixed32;
      ZEUS_TRY(field.value, Fixed(4));
      return field;
    }
    default:
      return Malformed(fmt::format("{} is no wire type in use", tag & 7U));
  }
}

Result<std::optional<ProtobufReader::Field>> ProtobufReader::Next() {
  if (broken_) return Malformed("an earlier field could not be read");
  if (rest_.empty()) return std::optional<Field>();
  auto field = ReadField();
  broken_ = !field.ok();
  if (broken_) return std::move(field).error();
  return std::optional<Field>(field.value());
}

}  // namespace zeus::kubernetes
