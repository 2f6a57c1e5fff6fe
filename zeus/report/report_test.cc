#include "zeus/report/report.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "zeus/base/file.h"
#include "zeus/base/json.h"
#include "zeus/base/testing/temporary_directory.h"

namespace zeus::report {
namespace report_test {

using ::testing::HasSubstr;
using ::testing::Not;

Table ATable() {
  return {.id = "claims",
          .title = "Claims",
          .caption = "",
          .columns = {"claim", "ours", "verdict"},
          .rows = {{{"saves energy, \"much\""}, {"12 %", 0.12}, {"reproduced"}},
                   {{"is fast"}, {"1,000", 1000}, {"differs since the traces lack it"}}}};
}

TEST(ReportJsonTest, WhatIsNotFiniteBecomesNull) {
  const Json json = ToJson(
      {.sections = {{.figures = {{.panels = {{.series = {{.x = {1, 2},
                                                          .y = {std::nan(""), INFINITY}}}}}}}}}});
  EXPECT_EQ(json["sections"][0]["figures"][0]["panels"][0]["series"][0]["y"].dump(), "[null,null]");
}

TEST(ReportJsonTest, ACellIsItsTextOrTextAndValue) {
  const Json json = ToJson({.sections = {{.tables = {ATable()}}}});
  EXPECT_EQ(json["sections"][0]["tables"][0]["rows"][1].dump(),
            R"(["is fast",{"text":"1,000","value":1000.0},"differs since the traces lack it"])");
}

TEST(ReportCsvTest, TablesGiveValuesWhereThereAreAny) {
  EXPECT_EQ(ToCsv(ATable()),
            "claim,ours,verdict\n\"saves energy, \"\"much\"\"\",0.12,reproduced\n"
            "is fast,1000,differs since the traces lack it\n");
}

TEST(ReportCsvTest, FiguresGiveARowForEachPointAndNameCategories) {
  const Figure figure{
      .id = "f",
      .panels = {
          {.title = "p",
           .x = {.categories = {"bert", "neumf"}},
           .series = {{.name = "zeus", .x = {1, 0}, .y = {2.5, std::nan("")}, .low = {2, 1}}}}}};
  EXPECT_EQ(ToCsv(figure),
            "panel,series,x,y,low,high,label\np,zeus,neumf,2.5,2,,\np,zeus,bert,,1,,\n");
}

TEST(ReportCsvTest, SpansHaveTheirEndAndTheirValue) {
  const Series spans{.name = "work",
                     .mark = Mark::kSpans,
                     .x = {1, 2},
                     .y = {0, 0},
                     .until = {1.5, 3},
                     .heat = {250, 300}};
  const Panel panel{.y = {.title = "", .categories = {"stage 0"}}, .series = {spans}};
  EXPECT_EQ(ToCsv(Figure{.id = "f", .title = "", .caption = "", .panels = {panel}}),
            "panel,series,x,y,low,high,label,until,heat\n"
            ",work,1,stage 0,,,,1.5,250\n"
            ",work,2,stage 0,,,,3,300\n");
}

TEST(ReportCsvTest, HeatMapsGiveARowForEachCell) {
  const Figure figure{.id = "f",
                      .panels = {{.title = "p",
                                  .x = {.categories = {"8", "16"}},
                                  .y = {.categories = {"100"}},
                                  .heat_map = HeatMap{.title = "regret", .values = {1, 2}}}}};
  EXPECT_EQ(ToCsv(figure),
            "panel,series,x,y,low,high,label\np,regret,8,100,,,1\np,regret,16,100,,,2\n");
}

TEST(ReportTextTest, NumbersAreAlignedRightAndWordsFoldWhereTheyDoNotFit) {
  EXPECT_EQ(ToText(ATable(), 48),
            "Claims\n"
            "claim           ours  verdict\n"
            "saves energy,   12 %  reproduced\n"
            "\"much\"\n"
            "is fast        1,000  differs since the\n"
            "                      traces lack it\n");
}

TEST(ReportFilesTest, EachFigureAndTableHasItsFilesAlsoWhenTwoShareAnId) {
  const zeus::testing::TemporaryDirectory directory;
  const Figure figure{
      .id = "figure-1", .title = "t", .panels = {{.series = {{.x = {1}, .y = {1}}}}}};
  const auto written =
      WriteFiles({.sections = {{.tables = {ATable()}, .figures = {figure, figure}}}},
                 directory.path() / "new");
  ASSERT_TRUE(written.ok()) << written.error().message;
  for (const char* name : {"claims.csv", "figure-1.svg", "figure-1.csv", "figure-1-2.svg"})
    EXPECT_TRUE(std::filesystem::exists(directory.path() / "new" / name)) << name;
  EXPECT_EQ(std::filesystem::exists(directory.path() / "new" / "figure-1.png"),
            written.value().empty());
}

TEST(ReportHtmlTest, DataCannotEndItsElement) {
  const auto html = ToHtml({.title = "</title><script>alert(1)</script>"});
  ASSERT_TRUE(html.ok()) << html.error().message;
  EXPECT_THAT(html.value(), Not(HasSubstr("<script>alert")));
}

TEST(ReportHtmlTest, APlainPageHasEverythingAndLoadsNothing) {
  const Figure figure{.id = "figure-1",
                      .title = "t",
                      .caption = "Caption.",
                      .panels = {{.series = {{.x = {1}, .y = {1}}}}}};
  const std::string html =
      ToPlainHtml({.title = "<b>",
                   .subtitle = "./train & rest",
                   .findings = {"It saves energy."},
                   .remarks = {"One run only."},
                   .sections = {{.title = "Numbers", .tables = {ATable()}, .figures = {figure}}}});
  for (const char* part :
       {"<title>&lt;b&gt;</title>", "./train &amp; rest", "<li>It saves energy.</li>",
        "<li>One run only.</li>", "<h2>Numbers</h2>", "<td class=\"number\">12 %</td>", "<svg",
        "<figcaption>Caption.</figcaption>", "prefers-color-scheme: dark"})
    EXPECT_THAT(html, HasSubstr(part));
  for (const char* part : {"<b>", "<script", "src=", "href=", "url(http"})
    EXPECT_THAT(html, Not(HasSubstr(part)));
}

Panel APanel() {
  return {.x = {.title = "limit (W)"},
          .y = {.title = "%"},
          .series = {{.name = "energy",
                      .x = {100, 175, 250},
                      .y = {80, 85, 100},
                      .low = {70, 85, 100},
                      .high = {90, 85, 100}},
                     {.name = "time", .x = {100, 175, 250}, .y = {130, 105, 100}}}};
}

TEST(ReportTextPlotTest, ShowsCurvesAxesAndWhereTheyMeet) {
  const std::string plot = ToTextPlot(APanel(), Glyphs::kUnicode);
  for (const char* part : {"● energy", "○ time", "◉ both   (%)", "│", "└──", "╎", "limit (W)\n"})
    EXPECT_THAT(plot, HasSubstr(part));
  EXPECT_EQ(std::ranges::count(plot, '\n'), 1 + 1 + 15 + 2 + 1) << plot;
  const std::string plain = ToTextPlot(APanel(), Glyphs::kAscii);
  EXPECT_TRUE(std::ranges::all_of(plain, [](char c) { return static_cast<signed char>(c) > 0; }));
}

TEST(ReportTextPlotTest, IsEmptyForFewerThanTwoPoints) {
  EXPECT_EQ(ToTextPlot({}, Glyphs::kAscii), "");
  EXPECT_EQ(ToTextPlot({.series = {{.x = {1}, .y = {1}}}}, Glyphs::kAscii), "");
}

}  // namespace report_test
}  // namespace zeus::report
