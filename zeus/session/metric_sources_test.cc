#include "zeus/session/metric_sources.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <fstream>

#include "zeus/base/json.h"
#include "zeus/base/testing/temporary_directory.h"

namespace zeus {
namespace metric_sources_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(MetricPatternTest, EveryMatchOnALineIsAnEpoch) {
  const auto pattern = MetricPattern::Compile("acc=([0-9.]+)");
  ASSERT_TRUE(pattern.ok());
  EXPECT_THAT(pattern.value().Metrics("acc=0.5 then acc=0.75"), ElementsAre(0.5, 0.75));
  EXPECT_THAT(pattern.value().Metrics("nothing"), IsEmpty());
}

TEST(MetricPatternTest, WhatIsNoNumberIsNotANumber) {
  const auto pattern = MetricPattern::Compile(R"(loss=(\S+))");
  ASSERT_TRUE(pattern.ok());
  const auto metrics = pattern.value().Metrics("loss=nan");
  ASSERT_EQ(metrics.size(), 1U);
  EXPECT_TRUE(std::isnan(metrics.front()));
}

TEST(MetricPatternTest, WhatMatchesNothingIsNoEpoch) {
  const auto pattern = MetricPattern::Compile("([0-9.]*)");
  ASSERT_TRUE(pattern.ok());
  EXPECT_THAT(pattern.value().Metrics("a 0.5 b 0.75 c"), ElementsAre(0.5, 0.75));
  EXPECT_THAT(pattern.value().Metrics("0.5"), ElementsAre(0.5));
  EXPECT_THAT(pattern.value().Metrics(""), IsEmpty());
  EXPECT_THAT(MetricPattern::Compile("acc=([0-9.]*)").value().Metrics("acc= acc=1"),
              ElementsAre(1.0));
}

TEST(MetricFileTest, LinesAreGivenOnceAndWhole) {
  const zeus::testing::TemporaryDirectory folder;
  MetricFile file(folder.path() / "m");
  EXPECT_THAT(file.NewLines(), IsEmpty());
  std::ofstream(folder.path() / "m") << "one\ntw" << std::flush;
  EXPECT_THAT(file.NewLines(), ElementsAre("one"));
  std::ofstream(folder.path() / "m", std::ios::app) << "o\n\nthree" << std::flush;
  EXPECT_THAT(file.NewLines(), ElementsAre("two"));
  EXPECT_THAT(file.LastLines(), ElementsAre("three"));
}

TEST(MetricFileTest, OfALineWithoutEndOnlyTheEndIsKept) {
  const zeus::testing::TemporaryDirectory folder;
  MetricFile file(folder.path() / "m");
  constexpr std::size_t kEndless = 4 << 20;
  std::ofstream(folder.path() / "m") << "one\n" << std::string(kEndless, 'x') << std::flush;
  EXPECT_THAT(file.NewLines(), ElementsAre("one"));
  std::ofstream(folder.path() / "m", std::ios::app) << "\ntwo\n" << std::flush;
  const auto lines = file.NewLines();
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_EQ(lines[0].size(), 64U * 1024);
  EXPECT_EQ(lines[1], "two");
}

TEST(MetricFileTest, AFileThatBeginsAnewIsReadFromItsStart) {
  const zeus::testing::TemporaryDirectory folder;
  const auto path = folder.path() / "m";
  MetricFile file(path);
  std::ofstream(path) << "one\ntwo\n";
  EXPECT_THAT(file.NewLines(), ElementsAre("one", "two"));
  std::ofstream(path) << "a\n";  // The file got smaller.
  EXPECT_THAT(file.NewLines(), ElementsAre("a"));
  std::ofstream(folder.path() / "new") << "another file\n";
  std::filesystem::rename(folder.path() / "new", path);
  EXPECT_THAT(file.NewLines(), ElementsAre("another file"));
}

TEST(MetricFileTest, APipeIsNoFile) {
  const zeus::testing::TemporaryDirectory folder;
  const auto path = folder.path() / "m";
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  MetricFile file(path);
  EXPECT_THAT(file.NewLines(), IsEmpty());
  EXPECT_FALSE(file.BeginAnew().ok());
}

TEST(MetricFileTest, WhatAnEarlierRunLeftIsGone) {
  const zeus::testing::TemporaryDirectory folder;
  std::ofstream(folder.path() / "m") << "old\n";
  MetricFile file(folder.path() / "m");
  ASSERT_TRUE(file.BeginAnew().ok());
  EXPECT_THAT(file.NewLines(), IsEmpty());
  EXPECT_FALSE(MetricFile(folder.path()).BeginAnew().ok());
}

TEST(MetricFileTest, TwoRunsDoNotShareOne) {
  const zeus::testing::TemporaryDirectory folder;
  MetricFile second(folder.path() / "m");
  {
    MetricFile first(folder.path() / "m");
    ASSERT_TRUE(first.BeginAnew().ok());
    std::ofstream(folder.path() / "m") << "of the first\n";
    EXPECT_EQ(second.BeginAnew().error().code, ErrorCode::kConflict);
    EXPECT_THAT(first.NewLines(), ElementsAre("of the first"));
  }
  EXPECT_TRUE(second.BeginAnew().ok());
}

class ReportSocketTest : public ::testing::Test {
 protected:
  // Sends, lets the socket serve, and receives what it answered.
  std::string Exchange(const std::string& sent) {
    const int connection = ::socket(AF_UNIX, SOCK_STREAM, 0);
    ::sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, socket_->path().c_str(), sizeof address.sun_path - 1);
    EXPECT_EQ(::connect(connection, reinterpret_cast<::sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(::send(connection, sent.data(), sent.size(), 0), static_cast<ssize_t>(sent.size()));
    socket_->Serve([this](const std::string& report) -> Json {
      reports_.push_back(report);
      return report == "bad" ? Json{{"error", "bad"}} : Json{{"stop", false}};
    });
    std::string answer(4096, '\0');
    const ssize_t got = ::recv(connection, answer.data(), answer.size(), MSG_DONTWAIT);
    answer.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
    ::close(connection);
    return answer;
  }

  std::unique_ptr<ReportSocket> socket_ = ReportSocket::Open().value();
  std::vector<std::string> reports_;
};

TEST_F(ReportSocketTest, LinesAndPostsAreAnswered) {
  EXPECT_EQ(Exchange("one\ntwo\n"), "{\"stop\":false}\n{\"stop\":false}\n");
  EXPECT_THAT(Exchange("POST / HTTP/1.1\r\ncontent-length: 5\r\n\r\nthree"),
              HasSubstr("200 OK\r\n"));
  EXPECT_THAT(Exchange("POST / HTTP/1.1\r\nContent-Length: 3\r\n\r\nbad"), HasSubstr("400 Bad"));
  EXPECT_THAT(reports_, ElementsAre("one", "two", "three", "bad"));
}

TEST_F(ReportSocketTest, WhatIsUnderWayIsWaitedForAndWhatIsEndlessIsNot) {
  EXPECT_EQ(Exchange("POST / HTTP/1.1\r\nContent-Length: 50\r\n\r\nsome"), "");
  EXPECT_EQ(Exchange(std::string(100'000, 'x')), "");
  EXPECT_THAT(reports_, IsEmpty());
}

TEST_F(ReportSocketTest, TheSocketGoesWithTheObject) {
  const auto path = socket_->path();
  EXPECT_TRUE(std::filesystem::exists(path));
  socket_.reset();
  EXPECT_FALSE(std::filesystem::exists(path.parent_path()));
}

}  // namespace metric_sources_test
}  // namespace zeus
