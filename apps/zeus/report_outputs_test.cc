#include "apps/zeus/report_outputs.h"

#include <gmock/gmock.h>

#include "zeus/base/file.h"
#include "zeus/base/json.h"
#include "zeus/base/testing/temporary_directory.h"

namespace zeus::cli {
namespace report_outputs_test {

using ::testing::HasSubstr;
using ::testing::StartsWith;

report::Report AReport() {
  return {.title = "A replay",
          .sections = {{.tables = {{.id = "totals",
                                    .columns = {"policy", "energy"},
                                    .rows = {{{"zeus"}, {"1 J", 1.0}}}}},
                        .figures = {{.id = "figure-1", .title = "A figure"}}}}};
}

class ReportOutputsTest : public ::testing::Test {
 protected:
  zeus::testing::TemporaryDirectory directory_;
};

TEST_F(ReportOutputsTest, FlagsSayWhereResultsGo) {
  CommandLine line("zeus", "");
  OutputFlags flags;
  AddOutputFlags(line.program(), flags);
  ASSERT_TRUE(line.Parse({"--json", "--html", "a.html", "--csv", "b.csv", "--figures", "c"}).ok());
  EXPECT_TRUE(flags.json);
  EXPECT_EQ(flags.html, "a.html");
  EXPECT_EQ(flags.csv, "b.csv");
  EXPECT_EQ(flags.figures, "c");
}

TEST_F(ReportOutputsTest, WhatCannotBeWrittenIsFoundOutBeforeTheWork) {
  const auto file = directory_.AddFile("file", "");
  EXPECT_TRUE(CheckOutputs({}).ok());
  EXPECT_FALSE(CheckOutputs({.csv = directory_.path() / "missing" / "b.csv"}).ok());
  EXPECT_FALSE(CheckOutputs({.figures = file}).ok());
  EXPECT_TRUE(CheckOutputs({.figures = directory_.path() / "new"}).ok());
  EXPECT_TRUE(CheckOutputs({.figures = directory_.path() / "new" / "below"}).ok());
  EXPECT_FALSE(std::filesystem::exists(directory_.path() / "new"));
  EXPECT_FALSE(CheckOutputs({.figures = file / "below"}).ok());
  EXPECT_FALSE(CheckOutputs({.figures = "/proc/nothing/can/be/made/here"}).ok());
  EXPECT_FALSE(CheckOutputs({.figures = "/proc"}).ok());
}

TEST_F(ReportOutputsTest, OneFileIsNotWrittenTwice) {
  const auto file = directory_.path() / "file";
  if (const Status html = CheckOutputs({.html = file}); !html.ok())
    GTEST_SKIP() << html.error().message;
  EXPECT_FALSE(CheckOutputs({.html = file, .csv = directory_.path() / "." / "file"}).ok());
  EXPECT_TRUE(CheckOutputs({.html = file, .csv = directory_.path() / "other"}).ok());
}

TEST_F(ReportOutputsTest, TextGoesToTheTerminalAndTheMainTableToItsFile) {
  const auto csv = directory_.path() / "b.csv";
  ::testing::internal::CaptureStdout();
  const Status written = WriteOutputs({.csv = csv, .figures = directory_.path() / "figures"},
                                      Json::object(), AReport());
  const std::string printed = ::testing::internal::GetCapturedStdout();
  ASSERT_TRUE(written.ok()) << written.error().message;
  EXPECT_THAT(printed, StartsWith("A replay\n"));
  EXPECT_EQ(ReadSmallFile(csv).value(), "policy,energy\nzeus,1\n");
  EXPECT_TRUE(std::filesystem::exists(directory_.path() / "figures" / "figure-1.svg"));
}

TEST_F(ReportOutputsTest, JsonIsTheResultAlone) {
  ::testing::internal::CaptureStdout();
  const Status written = WriteOutputs({.json = true}, Json{{"recurrences", 3}}, AReport());
  EXPECT_EQ(::testing::internal::GetCapturedStdout(), "{\n  \"recurrences\": 3\n}\n");
  EXPECT_TRUE(written.ok());
}

TEST_F(ReportOutputsTest, APageHoldsTheReportOrOneSentenceSaysWhyThereIsNone) {
  const auto html = directory_.path() / "a.html";
  const Status possible = CheckOutputs({.html = html});
  if (!possible.ok()) {
    EXPECT_THAT(possible.error().message, HasSubstr("install nodejs and npm"));
    GTEST_SKIP() << possible.error().message;
  }
  ::testing::internal::CaptureStdout();
  const Status written = WriteOutputs({.json = true, .html = html}, Json::object(), AReport());
  (void)::testing::internal::GetCapturedStdout();
  ASSERT_TRUE(written.ok()) << written.error().message;
  EXPECT_THAT(ReadSmallFile(html, 1 << 20).value(), HasSubstr("<title>A replay</title>"));
}

}  // namespace report_outputs_test
}  // namespace zeus::cli
