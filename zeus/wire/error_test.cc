#include "zeus/wire/error.h"

#include <gtest/gtest.h>

#include "zeus/base/json.h"
#include "zeus/wire/answers.h"

namespace zeus::wire {
namespace error_test {

TEST(WireErrorTest, EveryCodeHasAStatusOfItsOwnThatLeadsBack) {
  for (const ErrorCode code :
       {ErrorCode::kInvalidArgument, ErrorCode::kNotFound, ErrorCode::kConflict,
        ErrorCode::kNotSupported, ErrorCode::kPermissionDenied, ErrorCode::kUnavailable,
        ErrorCode::kInternal})
    EXPECT_EQ(ErrorCodeFor(StatusOf(code)), code);
}

TEST(WireErrorTest, OtherStatusesMeanWhatOneWouldDoAboutThem) {
  EXPECT_EQ(ErrorCodeFor(401), ErrorCode::kPermissionDenied);
  EXPECT_EQ(ErrorCodeFor(413), ErrorCode::kInvalidArgument);
  EXPECT_EQ(ErrorCodeFor(429), ErrorCode::kUnavailable);
  EXPECT_EQ(ErrorCodeFor(502), ErrorCode::kUnavailable);
  EXPECT_EQ(ErrorCodeFor(599), ErrorCode::kInternal);
}

TEST(WireErrorTest, AnErrorNamesItsField) {
  const Json json = ToJson(Error{ErrorCode::kInvalidArgument, "eta: must be between 0 and 1"});
  EXPECT_EQ(json.at("error").at("code"), "invalid_argument");
  EXPECT_EQ(json.at("error").at("field"), "eta");
  EXPECT_TRUE(
      ToJson(Error{ErrorCode::kInternal, "disk: broken"}).at("error").at("field").is_null());
  EXPECT_EQ(FieldOf(Error{ErrorCode::kInvalidArgument, "the body is no object: x"}), "");
}

TEST(WireErrorTest, AnAnswerBecomesTheErrorItStandsFor) {
  const Error sent{ErrorCode::kConflict, "epoch: trial 3 has already reported epoch 5"};
  const Error received = ErrorFromAnswer(409, JsonText(ToJson(sent)));
  EXPECT_EQ(received.code, sent.code);
  EXPECT_EQ(received.message, sent.message);
}

TEST(WireErrorTest, AnswersOfOtherServersAreUnderstoodAsFarAsPossible) {
  const Error proxy = ErrorFromAnswer(502, "<html>Bad Gateway</html>");
  EXPECT_EQ(proxy.code, ErrorCode::kUnavailable);
  EXPECT_NE(proxy.message.find("502"), std::string::npos);
  EXPECT_EQ(ErrorFromAnswer(404, R"({"error": 3})").code, ErrorCode::kNotFound);
}

}  // namespace error_test
}  // namespace zeus::wire
