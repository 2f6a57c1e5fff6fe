#include "zeus/kubernetes/protobuf_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>

namespace zeus::kubernetes {
namespace protobuf_reader_test {

using std::string_literals::operator""s;
using ::testing::HasSubstr;
using Type = ProtobufReader::Type;

// The error of reading the message to its end; empty when there is none.
std::string ErrorIn(std::string_view message) {
  ProtobufReader reader(message);
  for (;;) {
    const auto field = reader.Next();
    if (!field.ok()) {
      EXPECT_FALSE(reader.Next().ok());
      return field.error().message;
    }
    if (!field.value()) return "";
  }
}

ProtobufReader::Field First(std::string_view message) {
  ProtobufReader reader(message);
  const auto field = reader.Next();
  EXPECT_TRUE(field.ok() && field.value());
  return field.ok() && field.value() ? *field.value() : ProtobufReader::Field{};
}

TEST(ProtobufReaderTest, ReadsEachType) {
  EXPECT_EQ(First("\x08\x96\x01"s).value, 150U);
  EXPECT_EQ(First("\x09\1\2\0\0\0\0\0\0"s).value, 0x201U);
  EXPECT_EQ(First("\x15\1\0\0\1"s).value, 0x1000001U);
  const auto text = First(
      "\x12\x03"
      "abc"s);
  EXPECT_EQ(text.number, 2U);
  EXPECT_EQ(text.type, Type::kBytes);
  EXPECT_EQ(text.bytes, "abc");
}

TEST(ProtobufReaderTest, FieldsComeInOrderAndAnEmptyMessageHasNone) {
  const std::string message =
      "\x12\x01"
      "a"
      "\x08\x05"
      "\x12\x00"s;
  ProtobufReader reader(message);
  EXPECT_EQ(reader.Next().value()->bytes, "a");
  EXPECT_EQ(reader.Next().value()->value, 5U);
  EXPECT_EQ(reader.Next().value()->bytes, "");
  EXPECT_EQ(reader.Next().value(), std::nullopt);
  EXPECT_EQ(ErrorIn(""), "");
}

TEST(ProtobufReaderTest, TheLargestNumberAndTheFirstOneBeyond) {
  EXPECT_EQ(First("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"s).value,
            std::numeric_limits<std::uint64_t>::max());
  EXPECT_THAT(ErrorIn("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02"s), HasSubstr("64 bits"));
  EXPECT_THAT(ErrorIn("\x08\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01"s), HasSubstr("64 bits"));
}

TEST(ProtobufReaderTest, NothingIsReadBeyondTheEnd) {
  EXPECT_THAT(ErrorIn("\x12\x04"
                      "abc"s),
              HasSubstr("4 bytes stands where 3"));
  EXPECT_THAT(ErrorIn("\x12\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"s), HasSubstr("are left"));
  EXPECT_THAT(ErrorIn("\x08\x80"s), HasSubstr("too early"));
  EXPECT_THAT(ErrorIn("\x09\1\2\3\4\5\6\7"s), HasSubstr("too early"));
  EXPECT_THAT(ErrorIn("\x15\1\2\3"s), HasSubstr("too early"));
  EXPECT_THAT(ErrorIn("\x12"s), HasSubstr("too early"));
}

TEST(ProtobufReaderTest, GroupsAndFieldNumbersOutOfRangeAreRefused) {
  EXPECT_THAT(ErrorIn("\x0b"s), HasSubstr("wire type"));
  EXPECT_THAT(ErrorIn("\x0c"s), HasSubstr("wire type"));
  EXPECT_THAT(ErrorIn("\x0e\1"s), HasSubstr("wire type"));
  EXPECT_THAT(ErrorIn("\x00\1"s), HasSubstr("field number"));
  EXPECT_THAT(ErrorIn("\x80\x80\x80\x80\x80\x80\1\1"s), HasSubstr("field number"));
}

}  // namespace protobuf_reader_test
}  // namespace zeus::kubernetes
