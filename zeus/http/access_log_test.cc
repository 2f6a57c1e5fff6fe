#include "zeus/http/access_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "zeus/base/json.h"
#include "zeus/base/testing/temporary_directory.h"

namespace zeus::http {
namespace access_log_test {

class AccessLogTest : public ::testing::Test {
 protected:
  std::string Content() const {
    std::ostringstream text;
    text << std::ifstream(path_).rdbuf();
    return text.str();
  }

  zeus::testing::TemporaryDirectory directory_;
  const std::string path_ = (directory_.path() / "access.log").string();
  SystemClock clock_;
};

TEST_F(AccessLogTest, ALineIsJsonWhateverTheClientSent) {
  {
    const auto log = AccessLog::Open(path_, clock_).value();
    log->Add({.id = "1", .remote = "unix", .method = "G\"ET", .target = "/\xff\n", .status = 200});
    log->Add({.id = "2", .remote = "unix", .method = "GET", .target = "/a", .bytes = 5});
    EXPECT_EQ(log->dropped_lines(), 0U);
  }
  std::istringstream lines(Content());
  std::string line;
  ASSERT_TRUE(std::getline(lines, line));
  const Json first = ParseJson(line).value();
  EXPECT_EQ(first["method"], "G\"ET");
  EXPECT_EQ(first["path"], "/\xEF\xBF\xBD\n");
  EXPECT_EQ(first["status"], 200);
  ASSERT_TRUE(std::getline(lines, line));
  EXPECT_EQ(ParseJson(line).value()["bytes"], 5);
  EXPECT_FALSE(std::getline(lines, line));
}

TEST_F(AccessLogTest, LinesAreAppended) {
  for (int i = 0; i < 2; ++i) AccessLog::Open(path_, clock_).value()->Add({.id = "1"});
  const std::string content = Content();
  EXPECT_EQ(std::ranges::count(content, '\n'), 2);
}

TEST_F(AccessLogTest, AFolderIsNoLog) {
  EXPECT_EQ(AccessLog::Open(directory_.path().string(), clock_).error().code,
            ErrorCode::kInvalidArgument);
}

}  // namespace access_log_test
}  // namespace zeus::http
