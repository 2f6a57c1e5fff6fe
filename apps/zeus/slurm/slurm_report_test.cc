#include "apps/zeus/slurm/slurm_report.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "zeus/base/json.h"

namespace zeus::cli {
namespace slurm_report_test {

using ::testing::HasSubstr;

NodeShare Share(const std::string& node, double joules, double sigma) {
  return {.node = node, .energy = Joules(joules), .sigma = Joules(sigma)};
}

TEST(ParseAccountingTest, LinesOfSacctAreRead) {
  const auto lines = ParseAccounting(
      "12|my job|ada|gpu|COMPLETED|n[1-2]|60||{\"a\": \"x|y\"}\n"
      "12.0|python|||COMPLETED|n[1-2]|55|12345|\n");
  ASSERT_TRUE(lines.ok()) << lines.error().message;
  ASSERT_EQ(lines.value().size(), 2U);
  EXPECT_EQ(lines.value()[0].comment, R"({"a": "x|y"})");
  EXPECT_FALSE(lines.value()[0].energy);
  EXPECT_EQ(lines.value()[1].energy, Joules(12345));
  EXPECT_FALSE(ParseAccounting("12|my job\n").ok());
}

TEST(JobCommentTest, NodesAddUpAndReplaceThemselves) {
  std::string comment = CommentWith("", Share("n1", 100, 3), Watts(150));
  comment = CommentWith(comment, Share("n2", 200, 4), Watts(150));
  comment = CommentWith(comment, Share("n2", 200, 4), Watts(150));  // A repeated epilog.
  const Json json = ParseJson(comment).value();
  EXPECT_EQ(json["zeus"]["joules"], 300.0);
  EXPECT_EQ(json["zeus"]["sigma"], 5.0);
  EXPECT_EQ(json["zeus"]["limit_watts"], 150.0);
  EXPECT_EQ(SharesOfComment(comment).size(), 2U);
}

TEST(JobCommentTest, WhatOthersWroteStaysUnlessItIsNoJson) {
  const Json json =
      ParseJson(CommentWith(R"({"site": {"ticket": 7}})", Share("n1", 1, 0), std::nullopt)).value();
  EXPECT_EQ(json["site"]["ticket"], 7);
  EXPECT_EQ(SharesOfComment("a comment").size(), 0U);
  EXPECT_EQ(SharesOfComment(R"({"zeus": {"nodes": {"n1": "x", "n2": [1]}, "others": [1]}})").size(),
            0U);
}

TEST(JobCommentTest, ManyNodesFitAndTheirSumIsRight) {
  std::string comment;
  for (int i = 1; i <= 300; ++i)
    comment = CommentWith(comment, Share(fmt::format("node{}", i), 10, 2), std::nullopt);
  EXPECT_LE(comment.size(), 1024U);
  const Json json = ParseJson(comment).value();
  EXPECT_NEAR(json["zeus"]["joules"].get<double>(), 3000, 1e-6);
  EXPECT_NEAR(json["zeus"]["sigma"].get<double>(), std::sqrt(300.0) * 2, 1);
}

TEST(SlurmReportTest, ThePartsOfAJobAreShown) {
  const auto lines =
      ParseAccounting("12|bert|ada|gpu|COMPLETED|n1|60||\n12.0|x|||COMPLETED|n1|55|1234|\n");
  const std::string text = ReportText(lines.value(), {Share("n1", 1230, 20), Share("", 5, 1)});
  EXPECT_THAT(text, HasSubstr("job 12 \"bert\" of ada in gpu: COMPLETED"));
  EXPECT_THAT(text, HasSubstr("1.23 kJ"));
  EXPECT_THAT(text, HasSubstr("1230 ± 20 J"));
  EXPECT_THAT(text, HasSubstr("others"));
  EXPECT_THAT(ReportText({}, {}), HasSubstr("no record"));
  EXPECT_EQ(ReportJson(lines.value(), {})["energy_joules"], Json());
}

TEST(ShareOfRecordTest, GpusAndCpusCount) {
  const Json record = {
      {"energy_joules", 100}, {"sigma_joules", 2}, {"cpu", {{"energy_joules", 11}}}};
  EXPECT_EQ(ShareOfRecord(record, "n1").value().energy, Joules(111));
  EXPECT_FALSE(ShareOfRecord(Json::object(), "n1").ok());
}

}  // namespace slurm_report_test
}  // namespace zeus::cli
