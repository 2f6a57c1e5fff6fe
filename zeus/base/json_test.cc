#include "zeus/base/json.h"

#include <gtest/gtest.h>

namespace zeus {
namespace json_test {

TEST(JsonTest, ReportsWhereTextIsNotJson) {
  const auto json = ParseJson("{\"a\": 1,}");
  ASSERT_FALSE(json.ok());
  EXPECT_EQ(json.error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(json.error().message, "not valid JSON at byte 9");
}

TEST(JsonTest, ANumberBeyondAllBoundsIsNotJson) {
  EXPECT_EQ(ParseJson("[1e999]").error().message, "not valid JSON: a number is too large");
}

TEST(JsonTest, ReadsFields) {
  const Json json = ParseJson(R"({"watts": 250.5, "name": "V100"})").value();
  EXPECT_EQ(GetField<double>(json, "watts").value(), 250.5);
  EXPECT_EQ(GetField<std::string>(json, "name").value(), "V100");
}

TEST(JsonTest, NamesTheMissingField) {
  EXPECT_EQ(GetField<int>(Json::object(), "seed").error().message, "field \"seed\" is missing");
}

TEST(JsonTest, NamesTheFieldOfTheWrongType) {
  const Json json = {{"seed", "seven"}};
  EXPECT_EQ(GetField<int>(json, "seed").error().message,
            "field \"seed\" has the wrong type (string)");
}

TEST(JsonTest, TextIsValidUtf8OnOneLineUnlessIndented) {
  EXPECT_EQ(JsonText({{"a", "\xff\n"}}), "{\"a\":\"\xef\xbf\xbd\\n\"}");
  EXPECT_EQ(JsonText({{"a", 1}}, 2), "{\n  \"a\": 1\n}");
}

TEST(JsonTest, OptionalFieldsMayBeMissingOrNullButNotWrong) {
  const Json json = {{"null", nullptr}, {"text", "x"}, {"number", 3}};
  EXPECT_EQ(GetOptionalField<int>(json, "absent").value(), std::nullopt);
  EXPECT_EQ(GetOptionalField<int>(json, "null").value(), std::nullopt);
  EXPECT_EQ(GetOptionalField<int>(json, "number").value(), 3);
  EXPECT_FALSE(GetOptionalField<int>(json, "text").ok());
}

}  // namespace json_test
}  // namespace zeus
