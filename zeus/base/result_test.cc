#include "zeus/base/result.h"

#include <gtest/gtest.h>

#include <memory>

namespace zeus {
namespace result_test {

Result<int> Half(int value) {
  if (value % 2 != 0) return Error{ErrorCode::kInvalidArgument, "odd number"};
  return value / 2;
}

Result<int> Quarter(int value) {
  ZEUS_TRY(const int half, Half(value));
  return Half(half);
}

Status CheckEven(int value) {
  ZEUS_RETURN_IF_ERROR(Half(value));
  return Ok();
}

TEST(ResultTest, TryBindsTheValue) { EXPECT_EQ(Quarter(12).value(), 3); }

TEST(ResultTest, TryReturnsTheFirstError) {
  const auto result = Quarter(6);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, ErrorCode::kInvalidArgument);
}

TEST(ResultTest, StatusPropagates) {
  EXPECT_TRUE(CheckEven(2).ok());
  EXPECT_FALSE(CheckEven(3).ok());
}

TEST(ResultTest, WhileSaysWhatTheCallerWasDoing) {
  const Error error = Half(1).error().While("halve 1");
  EXPECT_EQ(error.message, "halve 1: odd number");
}

TEST(ResultTest, HoldsMoveOnlyValues) {
  Result<std::unique_ptr<int>> result = std::make_unique<int>(7);
  const std::unique_ptr<int> taken = std::move(result).value();
  EXPECT_EQ(*taken, 7);
}

TEST(ResultTest, OnlyUnavailableIsRetryable) {
  EXPECT_TRUE((Error{ErrorCode::kUnavailable, ""}).retryable());
  EXPECT_FALSE((Error{ErrorCode::kPermissionDenied, ""}).retryable());
}

}  // namespace result_test
}  // namespace zeus
