#include <gmock/gmock.h>

#include <cmath>
#include <cstddef>

#include "zeus/report/palette.h"
#include "zeus/report/report.h"
#include "zeus/report/svg_panel.h"

namespace zeus::report {
namespace svg_test {

using ::testing::HasSubstr;
using ::testing::Not;

std::size_t Count(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
    ++count;
  return count;
}

Figure WithSeries(Series series) {
  return {
      .id = "f", .title = "A figure", .caption = "", .panels = {{.series = {std::move(series)}}}};
}

TEST(SvgTest, EveryMarkIsDrawn) {
  for (const Mark mark : {Mark::kLine, Mark::kSteps, Mark::kPoints, Mark::kBars, Mark::kArea,
                          Mark::kPath, Mark::kRule}) {
    const std::string svg = ToSvg(WithSeries({.name = "s",
                                              .role = "zeus",
                                              .mark = mark,
                                              .x = {1, 2, 3},
                                              .y = {4, 5, 6},
                                              .low = {3, 4, 5},
                                              .high = {5, 6, 7}}));
    EXPECT_EQ(Count(svg, "<g class=\"role-zeus\">\n</g>"), 0U) << static_cast<int>(mark);
    EXPECT_EQ(Count(svg, "nan"), 0U);
  }
}

TEST(SvgTest, GapsSplitALineAndALonelyPointIsSeen) {
  const std::string svg =
      ToSvg(WithSeries({.name = "s", .x = {1, 2, 3, 4}, .y = {1, 2, std::nan(""), 4}}));
  EXPECT_EQ(Count(svg, "class=\"stroke\" d"), 1U);
  EXPECT_EQ(Count(svg, "<circle"), 3U);
  EXPECT_THAT(svg, Not(HasSubstr("nan ")));
}

TEST(SvgTest, LongLinesAreThinned) {
  Series series{.name = "s"};
  for (int i = 0; i < 100'000; ++i) {
    series.x.push_back(i);
    series.y.push_back(i % 7);
  }
  EXPECT_LT(ToSvg(WithSeries(series)).size(), 60'000U);
}

TEST(SvgTest, TextFromOutsideCannotLeaveItsPlace) {
  const std::string svg =
      ToSvg({.id = "a\"><script>",
             .title = "</title><script>",
             .caption = "\"&",
             .panels = {{.title = "<b>", .series = {{.name = "<i>", .x = {1}, .y = {1}}}}}});
  EXPECT_THAT(svg, Not(HasSubstr("<script>")));
  EXPECT_THAT(svg, Not(HasSubstr("<b>")));
  EXPECT_THAT(svg, Not(HasSubstr("<i>")));
}

TEST(SvgTest, ASeriesOfARoleHasItsColourAndOthersGetThemInOrder) {
  const std::string svg = ToSvg(
      {.id = "f",
       .title = "",
       .caption = "",
       .panels = {{.series = {{.name = "first", .x = {1}, .y = {1}},
                              {.name = "kg", .role = "knowledge_gradient", .x = {1}, .y = {1}},
                              {.name = "second", .x = {1}, .y = {1}}}}}});
  EXPECT_THAT(svg, HasSubstr("<g class=\"other-0\">"));
  EXPECT_THAT(svg, HasSubstr("<g class=\"role-knowledge_gradient\">"));
  EXPECT_THAT(svg, HasSubstr("<g class=\"other-1\">"));
}

TEST(SvgTest, BarsThatShareNoPlaceStandInTheMiddleOfTheirs) {
  Panel panel{.x = {.title = "", .categories = {"zeus", "grid"}},
              .series = {{.name = "zeus", .mark = Mark::kBars, .x = {0}, .y = {1}},
                         {.name = "grid", .mark = Mark::kBars, .x = {1}, .y = {2}}}};
  EXPECT_EQ(BarSlotFor(panel, 0).offset, 0);
  EXPECT_EQ(BarSlotFor(panel, 1).offset, 0);
  EXPECT_GT(BarSlotFor(panel, 1).width, 0.7);
  panel.series[1].x = {0};
  EXPECT_LT(BarSlotFor(panel, 0).offset, 0);
  EXPECT_GT(BarSlotFor(panel, 1).offset, 0);
}

TEST(SvgTest, HeatMapsShowWhatIsMissing) {
  const std::string svg =
      ToSvg({.id = "f",
             .title = "",
             .caption = "",
             .panels = {{.x = {.title = "", .categories = {"8", "16"}},
                         .y = {.title = "", .categories = {"100 W"}},
                         .heat_map = HeatMap{.title = "regret", .values = {1, std::nan("")}}}}});
  EXPECT_EQ(Count(svg, "class=\"absent\""), 1U);
  EXPECT_THAT(svg, HasSubstr("<title>16, 100 W: none</title>"));
}

TEST(SvgTest, NamesThatLieTooCloseAreLeftOut) {
  Panel panel{.x = {.title = "", .categories = {}}};
  for (int i = 0; i < 100; ++i) panel.x.categories.push_back("n" + std::to_string(i));
  const std::string svg = ToSvg({.id = "f", .title = "", .caption = "", .panels = {panel}});
  EXPECT_THAT(svg, HasSubstr(">n0<"));
  EXPECT_THAT(svg, Not(HasSubstr(">n1<")));
}

Panel Timeline(std::size_t spans) {
  Series work{.name = "work", .mark = Mark::kSpans};
  for (std::size_t i = 0; i < spans; ++i) {
    const auto at = static_cast<double>(i);
    work.x.push_back(at);
    work.until.push_back(at + 0.9);
    work.y.push_back(i % 2 == 0 ? 0 : 1);
    work.heat.push_back(i % 2 == 0 ? 100 : 300);
    work.span_names.push_back("F" + std::to_string(i));
    work.labels.push_back("forward " + std::to_string(i));
  }
  return {.x = {.title = "time (s)"},
          .y = {.title = "", .categories = {"stage 1", "stage 0"}},
          .series = {work},
          .colour_scale = ColourScale{.title = "power (W)", .low = 100, .high = 300}};
}

TEST(SvgTest, SpansAreBoxesFromStartToEndInTheColourOfTheirValue) {
  Panel panel = Timeline(4);
  panel.series[0].until[3] = std::nan("");
  const std::string svg = ToSvg({.id = "f", .title = "", .caption = "", .panels = {panel}});
  EXPECT_EQ(Count(svg, "<title>forward "), 3U);
  EXPECT_THAT(svg, HasSubstr(">F0</text>"));
  EXPECT_THAT(svg, HasSubstr("power (W)"));
  EXPECT_EQ(Count(svg, "nan"), 0U);
  // 100 and 300 W, as far apart as the scale of colours allows.
  EXPECT_THAT(svg, HasSubstr("fill=\"" + SpanColour(1.0 / 27) + "\""));
  EXPECT_THAT(svg, HasSubstr("fill=\"" + SpanColour(26.0 / 27) + "\""));
}

TEST(SvgTest, SpansTooNarrowToBeToldApartAreDrawnAsOne) {
  const std::string svg =
      ToSvg({.id = "f", .title = "", .caption = "", .panels = {Timeline(100'000)}});
  EXPECT_LT(Count(svg, "<rect"), 5000U);
  EXPECT_GT(Count(svg, "<rect"), 500U);
}

TEST(SvgTest, AFigureWithoutPanelsSaysSo) { EXPECT_THAT(ToSvg({.id = "f"}), HasSubstr("no data")); }

}  // namespace svg_test
}  // namespace zeus::report
