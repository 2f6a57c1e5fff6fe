#include "zeus/wire/body.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

#include "zeus/base/json.h"
#include "zeus/wire/error.h"

namespace zeus::wire {
namespace body_test {

TEST(WireBodyTest, AnObjectIsRead) {
  const auto json = ParseBody(R"({"metric": 0.5, "text": "[[["})");
  ASSERT_TRUE(json.ok());
  EXPECT_EQ(json.value().at("metric"), 0.5);
}

TEST(WireBodyTest, WhatIsNoNumberNamesItsField) {
  for (const std::string value : {"NaN", "Infinity", "-Infinity", "1e999", "nan", "+1"}) {
    const auto json = ParseBody(R"({"epoch": 1, "energy_joules": )" + value + R"(, "metric": 1})");
    ASSERT_FALSE(json.ok()) << value;
    EXPECT_EQ(json.error().code, ErrorCode::kInvalidArgument);
    EXPECT_EQ(FieldOf(json.error()), "energy_joules") << json.error().message;
  }
}

TEST(WireBodyTest, WhatIsNoObjectIsRefused) {
  for (const std::string text :
       {"", "[]", "3", "null", "\"x\"", "{", "{]", "\xff", "{} {}", R"({"epoch": 1} x)"}) {
    const auto json = ParseBody(text);
    ASSERT_FALSE(json.ok()) << text;
    EXPECT_EQ(FieldOf(json.error()), "") << json.error().message;
  }
}

TEST(WireBodyTest, AFieldThatIsThereTwiceIsRefusedByName) {
  const auto json = ParseBody(R"({"id": "x", "labels": {"id": "y"}, "id": "z"})");
  ASSERT_FALSE(json.ok());
  EXPECT_EQ(FieldOf(json.error()), "id");
  EXPECT_FALSE(ParseBody(R"({"labels": {"a": "1", "a": "2"}})").ok());
  EXPECT_TRUE(ParseBody(R"({"a": {"b": 1}, "b": {"a": 1}})").ok());
}

TEST(WireBodyTest, DepthIsBounded) {
  const std::string deep(100'000, '[');
  EXPECT_FALSE(ParseBody(R"({"a": )" + deep).ok());
  EXPECT_FALSE(ParseBody(R"({"a": )" + std::string(16, '[') + std::string(16, ']') + "}").ok());
  EXPECT_TRUE(ParseBody(R"({"a": )" + std::string(15, '[') + std::string(15, ']') + "}").ok());
}

TEST(WireBodyTest, TheNumberOfValuesIsBounded) {
  std::string many = R"({"a": [1)";
  for (std::size_t i = 0; i < kMostValues; ++i) many += ",1";
  EXPECT_FALSE(ParseBody(many + "]}").ok());
  std::string wide = R"({"0": 0)";
  for (std::size_t i = 1; i < kMostFields; ++i) wide += fmt::format(R"(,"{}":0)", i);
  EXPECT_TRUE(ParseBody(wide + "}").ok());
  EXPECT_FALSE(ParseBody(wide + R"(,"x":0})").ok());
}

TEST(WireBodyTest, ALongArrayOfObjectsTakesALinearTime) {
  std::string text = R"({"points": [{"a":1})";
  for (int i = 0; i < 400'000; ++i) text += R"(,{"a":1})";
  const auto json = ParseBody(text + "]}");  // Would take many minutes.
  ASSERT_TRUE(json.ok()) << json.error().message;
  EXPECT_EQ(json.value().at("points").size(), 400'001U);
}

}  // namespace body_test
}  // namespace zeus::wire
