#include "zeus/device/nvml/nvml_readers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

namespace zeus::nvml {
namespace nvml_readers_test {

FieldValue Field(int type) {
  FieldValue field{};
  field.field_id = kFieldPowerInstant;
  field.value_type = type;
  return field;
}

TEST(DecodeValueTest, ReadsEveryTypeOfNvml) {
  FieldValue field = Field(kValueDouble);
  field.value.as_double = 41.7;
  EXPECT_EQ(DecodeValue(field).value(), 42U);
  field = Field(kValueUnsigned);
  field.value.as_unsigned = 4'000'000'000U;
  EXPECT_EQ(DecodeValue(field).value(), 4'000'000'000U);
  field = Field(kValueUnsignedLong);
  field.value.as_unsigned_long = 1UL << 40U;
  EXPECT_EQ(DecodeValue(field).value(), 1ULL << 40U);
  field = Field(kValueUnsignedLongLong);
  field.value.as_unsigned_long_long = std::numeric_limits<unsigned long long>::max();
  EXPECT_EQ(DecodeValue(field).value(), std::numeric_limits<std::uint64_t>::max());
  field = Field(kValueSignedLongLong);
  field.value.as_long_long = 7;
  EXPECT_EQ(DecodeValue(field).value(), 7U);
  field = Field(kValueSignedInt);
  field.value.as_int = 8;
  EXPECT_EQ(DecodeValue(field).value(), 8U);
  field = Field(kValueUnsignedShort);
  field.value.as_unsigned_short = 9;
  EXPECT_EQ(DecodeValue(field).value(), 9U);
}

TEST(DecodeValueTest, ANarrowTypeIgnoresTheOtherBytes) {
  FieldValue field = Field(kValueUnsigned);
  field.value.as_unsigned_long_long = 0xdeadbeef00000005ULL;
  EXPECT_EQ(DecodeValue(field).value(), 5U);
}

TEST(DecodeValueTest, WhatCannotBeAnAmountIsAnError) {
  FieldValue field = Field(kValueSignedInt);
  field.value.as_int = -1;
  EXPECT_EQ(DecodeValue(field).error().code, ErrorCode::kInternal);
  field = Field(kValueDouble);
  field.value.as_double = std::numeric_limits<double>::quiet_NaN();
  EXPECT_FALSE(DecodeValue(field).ok());
  field.value.as_double = 1e300;
  EXPECT_FALSE(DecodeValue(field).ok());
  EXPECT_THAT(DecodeValue(Field(99)).error().message, ::testing::HasSubstr("unknown type 99"));
}

}  // namespace nvml_readers_test
}  // namespace zeus::nvml
