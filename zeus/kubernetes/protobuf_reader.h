#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "zeus/base/result.h"

namespace zeus::kubernetes {

// Reads the fields of one protobuf message in the order in which they stand, without a schema and
// without copies. No input makes it read outside of the message: a length beyond its end, a number
// of more than 64 bits, a field number out of range and the obsolete groups are kInvalidArgument,
// and so is every call after such an error.
//
// The encoding: https://protobuf.dev/programming-guides/encoding/. One owner; the message must
// outlive the reader and the fields.
class ProtobufReader {
 public:
  enum class Type { kVarint, kFixed64, kBytes, kFixed32 };

  struct Field {
    std::uint32_t number = 0;
    Type type = Type::kVarint;
    std::uint64_t value = 0;   // Set for the numeric types.
    std::string_view bytes{};  // Texts, byte strings and messages.
  };

  explicit ProtobufReader(std::string_view message) : rest_(message) {}

  // Returns the next field; nullopt at the end of the message.
  Result<std::optional<Field>> Next();

 private:
  Result<std::uint64_t> Varint();
  Result<std::uint64_t> Fixed(std::size_t size);
  Result<std::string_view> Bytes();
  Result<Field> ReadField();

  std::string_view rest_;
  bool broken_ = false;
};

}  // namespace zeus::kubernetes
