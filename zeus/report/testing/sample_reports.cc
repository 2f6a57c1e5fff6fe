#include "zeus/report/testing/sample_reports.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

namespace zeus::report::testing {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

const std::vector<std::string> kWorkloads = {"DeepSpeech2", "BERT (QA)",  "BERT (SA)",
                                             "ResNet-50",   "ShuffleNet", "NeuMF"};

// A number between 0 and 1 that looks like noise and is the same everywhere.
double Noise(double seed) {
  const double wave = std::sin(seed * 12.9898) * 43758.5453;
  return wave - std::floor(wave);
}

Series Bars(const std::string& name, const std::string& role, double level) {
  Series bars{.name = name, .role = role, .mark = Mark::kBars};
  for (std::size_t i = 0; i < kWorkloads.size(); ++i) {
    const double y = level + 0.2 * Noise(level * 10 + static_cast<double>(i));
    bars.x.push_back(static_cast<double>(i));
    bars.y.push_back(y);
    bars.low.push_back(y - 0.03);
    bars.high.push_back(y + 0.04);
  }
  return bars;
}

Figure SavingsFigure() {
  const auto panel = [](const std::string& title, double shift) {
    return Panel{
        .title = title,
        .x = {.title = "", .categories = kWorkloads},
        .y = {.title = "relative to default", .from_zero = true},
        .series = {Bars("Default", "default", 0.9), Bars("Grid search", "grid", 0.75 + shift),
                   Bars("Zeus", "zeus", 0.5 + shift),
                   Bars("Knowledge gradient", "knowledge_gradient", 0.45 + shift)}};
  };
  return {.id = "figure-6",
          .title = "Energy and time to reach the target",
          .caption =
              "Zeus uses less energy than the default for every workload, and the knowledge "
              "gradient less still; whiskers span the seeds.",
          .panels = {panel("Energy", 0), panel("Time", 0.2)}};
}

Series Growth(const std::string& name, const std::string& role, double factor, Mark mark) {
  Series series{.name = name, .role = role, .mark = mark};
  for (int i = 1; i <= 120; ++i) {
    const double y = factor * std::sqrt(i) * (1 + 0.1 * Noise(i));
    series.x.push_back(i);
    series.y.push_back(y);
    series.low.push_back(y * 0.85);
    series.high.push_back(y * 1.15);
  }
  return series;
}

Figure RegretFigure() {
  Series bound{.name = "Bound", .role = "paper", .mark = Mark::kRule, .x = {1, 120}, .y = {20, 20}};
  Series oracle{.name = "Oracle", .role = "oracle", .x = {1, 60, 120}, .y = {0.5, 0.5, 0.5}};
  Series steps = Growth("Default", "default", 3, Mark::kSteps);
  steps.low.clear();
  steps.high.clear();
  Series gap = Growth("Grid search", "grid", 2.4, Mark::kLine);
  gap.y[40] = kNone;
  gap.low[40] = kNone;
  gap.high[40] = kNone;
  return {.id = "figure-7",
          .title = "Cumulative regret",
          .caption = "Regret grows more slowly with every recurrence.",
          .panels = {{.title = "",
                      .x = {.title = "recurrence"},
                      .y = {.title = "regret (oracle costs)", .from_zero = true},
                      .series = {steps, gap, Growth("Zeus", "zeus", 1.4, Mark::kLine),
                                 Growth("Knowledge gradient", "knowledge_gradient", 1, Mark::kLine),
                                 oracle, bound}}}};
}

Figure FrontFigure() {
  Series all{.name = "Configurations", .mark = Mark::kPoints};
  Series front{.name = "Pareto front", .role = "front", .mark = Mark::kLine};
  for (int i = 0; i < 80; ++i) {
    all.x.push_back(800 + 9000 * Noise(i));
    all.y.push_back(4e4 + 4e7 / all.x.back() + 1e5 * Noise(i + 0.5));
    all.labels.push_back(fmt::format("batch size {}, {} W", 8 << (i % 5), 100 + 25 * (i % 7)));
  }
  for (int i = 0; i < 6; ++i) {
    front.x.push_back(900 * std::pow(1.6, i));
    front.y.push_back(3.8e4 + 4e7 / front.x.back());
  }
  Series area{.name = "Within 5 %",
              .role = "zeus",
              .mark = Mark::kArea,
              .x = {900, 3000, 9000},
              .y = {},
              .low = {8e4, 5e4, 4e4},
              .high = {1e5, 6e4, 4.6e4}};
  Series eta{
      .name = "η = 0.5", .role = "paper", .mark = Mark::kRule, .x = {900, 9500}, .y = {9e4, 4e4}};
  return {.id = "figure-2",
          .title = "Energy against time, both logarithmic",
          .caption = "The front of what neither knob can better.",
          .panels = {{.title = "",
                      .x = {.title = "time (s)", .logarithmic = true},
                      .y = {.title = "energy (J)", .logarithmic = true},
                      .series = {all, area, front, eta}}}};
}

Panel SearchPanel(const std::string& title, const std::string& role, double seed) {
  Panel panel{.title = title,
              .x = {.title = "batch size", .categories = {"8", "16", "32", "64", "128", "256"}},
              .y = {.title = "power limit (W)",
                    .categories = {"100", "125", "150", "175", "200", "225", "250"}},
              .heat_map = HeatMap{.title = "regret"}};
  for (int row = 0; row < 7; ++row)
    for (int column = 0; column < 6; ++column)
      panel.heat_map->values.push_back(
          row == 6 && column == 0 ? kNone : std::hypot(row - 2.0, column - 3.0) + 0.2 * Noise(row));
  Series path{.name = title, .role = role, .mark = Mark::kPath};
  for (int i = 0; i < 9; ++i) {
    path.x.push_back(std::round(3 + (5 - i * 0.6) * (Noise(seed + i) - 0.5)));
    path.y.push_back(std::round(2 + (8 - i * 0.9) * (Noise(seed * 3 + i) - 0.4) * 0.8));
    path.labels.push_back(fmt::format("recurrence {}", i + 1));
  }
  panel.series.push_back(path);
  return panel;
}

Figure SearchFigure() {
  Panel bare = SearchPanel("Cost alone", "", 3);
  bare.series.clear();
  return {.id = "figure-8",
          .title = "Paths of the search",
          .caption = "Both policies settle beside the optimum; later steps are darker.",
          .panels = {SearchPanel("Zeus", "zeus", 1),
                     SearchPanel("Knowledge gradient", "knowledge_gradient", 2), bare}};
}

Panel TimelinePanel(const std::string& title, double slowest) {
  Panel panel{.title = title,
              .x = {.title = "time (s)", .from_zero = true},
              .y = {.title = "", .categories = {"stage 3", "stage 2", "stage 1", "stage 0"}},
              .colour_scale = ColourScale{.title = "power (W)", .low = 70, .high = 300}};
  Series work{.name = "Computations", .mark = Mark::kSpans};
  for (int stage = 0; stage < 4; ++stage) {
    for (int microbatch = 0; microbatch < 24; ++microbatch) {
      const double start = stage + microbatch * 1.5;
      work.x.push_back(start);
      work.until.push_back(start + 1 + 0.4 * slowest * Noise(microbatch));
      work.y.push_back(3 - stage);
      work.heat.push_back(300 - 200 * slowest * Noise(microbatch));
      work.span_names.push_back(fmt::format("F{}", microbatch));
      work.labels.push_back(fmt::format("forward {} of stage {}", microbatch, stage));
    }
  }
  panel.series = {
      work,
      {.name = "Deadline", .role = "paper", .mark = Mark::kRule, .x = {40, 40}, .y = {-0.5, 3.5}}};
  return panel;
}

Figure TimelineFigure() {
  return {.id = "timeline",
          .title = "One iteration, drawn to scale",
          .caption = "Computations that nobody waits for run slower and take less power.",
          .panels = {TimelinePanel("Before", 0), TimelinePanel("After", 1)}};
}

Table Claims() {
  Table table{.id = "claims",
              .title = "Claims",
              .caption = "Ours are means over 50 seeds.",
              .columns = {"claim", "paper", "ours", "verdict"}};
  table.rows = {{{"energy saved at least"}, {"15.3 %", 0.153}, {"15.1 %", 0.151}, {"reproduced"}},
                {{"energy saved at most"}, {"75.8 %", 0.758}, {"74.0 %", 0.74}, {"within spread"}},
                {{"β = 2 is best"}, {"2", 2}, {"2.5", 2.5}, {"differs: 2.5 costs 0.4 % less"}}};
  return table;
}

Figure Named(int number) {
  Series series{.name = "s", .x = {1, 2, 3}, .y = {1.0 * number, 2, 3}};
  return {.id = fmt::format("many-{}", number),
          .title = fmt::format("Figure {} of many", number),
          .caption = "",
          .panels = {{.series = {series}}}};
}

Figure LongFigure() {
  Series line{.name = "line"};
  Series cloud{.name = "points", .mark = Mark::kPoints};
  for (int i = 0; i < 100'000; ++i) {
    line.x.push_back(i);
    line.y.push_back(std::sin(i / 5000.0) + 0.3 * Noise(i));
    cloud.x.push_back(1e5 * Noise(i));
    cloud.y.push_back(Noise(i + 0.3) + Noise(i + 0.6) - 3);
  }
  return {.id = "long", .title = "100,000 points twice", .panels = {{.series = {line, cloud}}}};
}

Figure OddFigure() {
  const double huge = std::numeric_limits<double>::infinity();
  const std::string hostile = "</script><script>alert(\"x\")</script>'\"&<!--";
  return {.id = "\"><img src=x>",
          .title = hostile,
          .caption = hostile,
          .panels = {{.title = "one point", .series = {{.name = hostile, .x = {5}, .y = {5}}}},
                     {.title = "no point", .series = {{.name = "empty"}}},
                     {.title = "no numbers",
                      .series = {{.name = "none", .x = {1, 2}, .y = {kNone, huge}}}},
                     {.title = "some numbers",
                      .y = {.title = hostile, .logarithmic = true},
                      .series = {{.name = "some",
                                  .role = hostile,
                                  .x = {1, 2, 3, 4},
                                  .y = {kNone, -1, 1e-9, 1e12},
                                  .labels = {hostile, hostile, hostile, hostile}}}},
                     {.title = "bars of one, none and less",
                      .x = {.title = "", .categories = {hostile, "b", "c"}},
                      .series = {{.name = "bars",
                                  .mark = Mark::kBars,
                                  .x = {0, 1, 2},
                                  .y = {3, kNone, -2},
                                  .low = {2, kNone, -3},
                                  .high = {huge, kNone, -1}}}},
                     {.title = "spans of one, none and less",
                      .y = {.title = "", .categories = {"a", "b"}},
                      .series = {{.name = hostile,
                                  .mark = Mark::kSpans,
                                  .x = {1, 2, kNone, 9},
                                  .y = {0, 1, 1, 7},
                                  .labels = {hostile},
                                  .until = {3, 2, 4, 8},
                                  .heat = {kNone, huge},
                                  .span_names = {hostile, hostile}}},
                      .colour_scale = ColourScale{.title = hostile, .low = 1, .high = 1}},
                     {.title = "an empty map", .heat_map = HeatMap{.title = "nothing"}}}};
}

}  // namespace

Report SampleReport() {
  return {.title = "The paper, replayed",
          .subtitle = "Six workloads on a V100 with 50 seeds, from recorded traces",
          .findings = {"Zeus saves 15 to 74 % of the energy of every workload.",
                       "The knowledge gradient has a third less regret than Zeus.",
                       "Both choose a power limit below the maximum everywhere."},
          .remarks = {"Made from traces with seeds 0 to 49.",
                      "Spread is one standard deviation over seeds."},
          .sections = {{.title = "Claims", .text = "", .tables = {Claims()}},
                       {.title = "End to end",
                        .text = "What a recurring job costs until it reaches its target.",
                        .tables = {},
                        .figures = {SavingsFigure(), RegretFigure()}},
                       {.title = "Inside the search",
                        .text = "",
                        .tables = {},
                        .figures = {FrontFigure(), SearchFigure(), TimelineFigure()}}}};
}

Report AdverseReport() {
  Section many{.title = "Many"};
  for (int i = 0; i < 60; ++i) many.figures.push_back(Named(i));
  Table ragged{.id = "",
               .title = "",
               .caption = "",
               .columns = {"</td>", ""},
               .rows = {{{"only one"}}, {}, {{"\xff\xfe"}, {"nan", kNone}, {"too many"}}}};
  return {.title = "</title><script>alert(1)</script>",
          .subtitle = "",
          .findings = {std::string(400, 'w')},
          .sections = {
              {.title = ""},
              {.title = "Odd", .tables = {ragged, {}}, .figures = {OddFigure(), {}, LongFigure()}},
              many}};
}

}  // namespace zeus::report::testing
