// Measures how accurate measured energies are and whether their intervals contain the truth:
// simulated sensors over scripted loads are compared with the exact energy. Prints the tables of
// docs/accuracy.md.
//   accuracy [CASES]   cases per sensor, window and load (20)
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "zeus/base/text.h"
#include "zeus/monitor/testing/accuracy_case.h"

namespace {

using namespace zeus::testing;

// Sums up the errors and intervals of one kind of result over many cases, relative to the truth.
struct Column {
  double squares = 0, worst = 0, width_squares = 0;
  int cases = 0, contained = 0, flagged = 0, previews = 0;

  void Add(const Outcome& outcome, const Stated& stated) {
    const double error = stated.energy / outcome.truth - 1;
    const double half_width = 1.96 * stated.sigma / outcome.truth;
    squares += error * error;
    worst = std::max(worst, std::abs(error));
    width_squares += half_width * half_width;
    // A result that is marked as a preview promises no interval.
    contained += !stated.preview && outcome.Contains(stated);
    previews += stated.preview;
    ++cases;
    flagged += stated.flagged;
  }
  double Inside() const {
    return previews == cases ? 100.0 : 100.0 * contained / (cases - previews);
  }
  std::string InsideText() const {
    return previews == cases ? "–" : fmt::format("{:.0f}", Inside());
  }
  double Width() const { return std::sqrt(width_squares / std::max(squares, 1e-30)); }
};

struct Summary {
  double naive = 0;
  Column immediate, refined;
  int cases = 0;

  void Add(const Outcome& outcome) {
    naive += std::pow(outcome.naive / outcome.truth - 1, 2);
    immediate.Add(outcome, outcome.immediate);
    refined.Add(outcome, outcome.refined);
    ++cases;
  }
  void Add(const std::vector<Outcome>& outcomes) {
    for (const Outcome& outcome : outcomes) Add(outcome);
  }
  double Percent(double squares) const { return 100 * std::sqrt(squares / cases); }
  double Share(int count) const { return 100.0 * count / cases; }
};

// The lowest share over all cells of the tables, and the number of cells.
struct Worst {
  double immediate = 100, refined = 100;
  int cells = 0, below = 0;
} worst;

void PrintRow(const std::string& first, const std::string& second, const Summary& s) {
  fmt::print(
      "| {} | {} | {:.3g} | {:.3g} | {} | {:.1f} | {:.0f} | {:.3g} | {:.3g} | {} | {:.1f} | {:.0f} "
      "|\n",
      first, second, s.Percent(s.naive), s.Percent(s.immediate.squares), s.immediate.InsideText(),
      s.immediate.Width(), s.Share(s.immediate.previews), s.Percent(s.refined.squares),
      100 * s.refined.worst, s.refined.InsideText(), s.refined.Width(), s.Share(s.refined.flagged));
  worst.immediate = std::min(worst.immediate, s.immediate.Inside());
  worst.refined = std::min(worst.refined, s.refined.Inside());
  for (const Column& column : {s.immediate, s.refined}) {
    ++worst.cells;
    worst.below += column.Inside() < 90;
  }
}

void PrintHeader(const char* title, const char* first, const char* second) {
  fmt::print(
      "\n### {}\n\n| {} | {} | naive % | immediate % | inside % | width | preview % | refined % | "
      "worst % | "
      "inside % | width | flagged % |\n|---|---|---|---|---|---|---|---|---|---|---|---|\n",
      title, first, second);
}

std::string Length(double window) { return fmt::format("{} s", window); }

void PlainTables(int cases) {
  std::map<std::pair<std::string, std::string>, Summary> by_load;
  PrintHeader("Calibrated boards, all loads together", "sensor", "window");
  for (const SensorKind& sensor : SensorKinds()) {
    for (const double window : {0.1, 0.3, 1.0, 3.0, 10.0, 100.0}) {
      Summary summary;
      for (const Load& load : PlainLoads()) {
        for (int i = 0; i < cases; ++i) {
          const auto outcomes =
              RunCase(sensor, load, {.length = window, .seed = 1000 + static_cast<unsigned>(i)});
          summary.Add(outcomes);
          if (window >= 1) by_load[{sensor.name, load.name}].Add(outcomes);
        }
      }
      PrintRow(sensor.name, Length(window), summary);
    }
  }
  PrintHeader("By load, windows of 1 s and more", "sensor", "load");
  for (const SensorKind& sensor : SensorKinds())
    for (const Load& load : PlainLoads())
      PrintRow(sensor.name, load.name, by_load[{sensor.name, load.name}]);
}

void WorkTable(int cases, const char* title, Load (*make)(Place)) {
  PrintHeader(title, "sensor", "work, window");
  for (const SensorKind& sensor : SensorKinds()) {
    for (const Place place : {Place::kStart, Place::kMiddle, Place::kEnd, Place::kEndAwaited}) {
      const Load load = make(place);
      for (const double window : {0.2, 0.5, 1.0}) {
        Summary summary;
        for (int i = 0; summary.cases < 10 * cases; ++i)
          summary.Add(
              RunCase(sensor, load, {.length = window, .seed = 7000 + static_cast<unsigned>(i)}));
        PrintRow(sensor.name, load.name + ", " + Length(window), summary);
      }
    }
  }
}

void RandomTable(int cases) {
  PrintHeader("Random windows of 0.05 to 3 s", "sensor", "windows");
  for (const SensorKind& sensor : SensorKinds()) {
    Summary summary;
    for (int i = 0; i < 4 * cases; ++i)
      summary.Add(RunCase(sensor, RandomWindows(), {.seed = 3000 + static_cast<unsigned>(i)}));
    PrintRow(sensor.name, std::to_string(summary.cases), summary);
  }
}

void ReferenceTable(int cases) {
  PrintHeader("The reference's case: 60 W idle, 300 W burst filling the window", "sensor",
              "window");
  const SensorKind& counter = SensorKinds().back();
  for (const double window : {0.2, 1.0, 10.0}) {
    Summary summary;
    for (int i = 0; i < 10 * cases; ++i)
      summary.Add(RunCase(counter, PlainLoads()[1],
                          {.length = window, .seed = 5000 + static_cast<unsigned>(i)}));
    PrintRow(counter.name, Length(window), summary);
  }
}

void UncalibratedTable(int cases) {
  PrintHeader("Boards nobody calibrated: gain anywhere within ±5 %", "sensor", "window");
  for (const SensorKind& sensor : SensorKinds()) {
    for (const double window : {1.0, 10.0}) {
      Summary summary;
      for (const Load& load : PlainLoads())
        for (int i = 0; i < cases; ++i)
          summary.Add(RunCase(
              sensor, load,
              {.length = window, .seed = 9000 + static_cast<unsigned>(i), .gain_spread = 0.05}));
      PrintRow(sensor.name, Length(window), summary);
    }
  }
}

}  // namespace

// The number of boards for each row; nothing if it is no whole number above 0.
static std::optional<int> ParseCases(int argc, char** argv) {
  if (argc == 1) return 20;
  const auto number = zeus::ParseUnsigned(argv[1]);
  if (argc > 2 || !number.ok() || number.value() == 0 || number.value() > 100'000)
    return std::nullopt;
  return static_cast<int>(number.value());
}

int main(int argc, char** argv) {
  const auto cases = ParseCases(argc, argv);
  if (!cases) {
    fmt::print(
        "usage: accuracy [CASES]\nScores windows against the simulation's truth, CASES (20) "
        "boards for each row of its tables.\n");
    return argc == 2 && std::string_view(argv[1]) == "--help" ? 0 : 2;
  }
  PlainTables(*cases);
  WorkTable(*cases, "0.02 to 0.05 s of work in one window on an idle device", WorkAlone);
  WorkTable(*cases, "0.02 to 0.05 s of work in each window of a loop", WorkInALoop);
  RandomTable(*cases);
  ReferenceTable(*cases);
  UncalibratedTable(*cases);
  fmt::print(
      "\nCells with less than 90 % inside: {} of {}; least: immediate {:.0f}, refined {:.0f}\n",
      worst.below, worst.cells, worst.immediate, worst.refined);
}
