#include "zeus/plan/session_profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "zeus/base/field_reader.h"
#include "zeus/base/text.h"
#include "zeus/optimizer/pipeline/profile_csv.h"

namespace zeus {
namespace {

constexpr std::string_view kHeader =
    "rank,dp_rank,pp_rank,tp_rank,stage,instruction,frequency,time,energy\n";

// Returns the first line of `rest` and removes it from there.
std::string_view NextLine(std::string_view& rest) {
  const std::string_view line = rest.substr(0, rest.find('\n'));
  rest.remove_prefix(std::min(line.size() + 1, rest.size()));
  return line;
}

}  // namespace

Status KeepInstructions(const std::map<std::string, int>& runs, RankReport& report) {
  std::erase_if(report.points,
                [&](const RankReport::Point& point) { return !runs.contains(point.instruction); });
  for (const auto& [name, count] : runs)
    if (std::ranges::find(report.points, name, &RankReport::Point::instruction) ==
        report.points.end())
      return FieldError("time_breakdown", fmt::format("of rank {} lacks {}, which its stage runs",
                                                      report.rank, Quote(name)));
  for (const RankReport::Point& point : report.points)
    if (const int count = runs.at(point.instruction);
        point.times_in_iteration != 0 && point.times_in_iteration != count)
      return FieldError(
          "time_breakdown",
          fmt::format("of rank {} has {} times of {} in an iteration: its schedule "
                      "runs it {} times",
                      report.rank, point.times_in_iteration, Quote(point.instruction), count));
  return Ok();
}

// Each point becomes a line "instruction,MHz,seconds,joules".
Result<std::string> PointLines(const RankReport& report, std::optional<Hertz> given) {
  std::string lines;
  for (const RankReport::Point& point : report.points) {
    const std::optional<Hertz> clock = point.clock ? point.clock : given;
    if (!clock)
      return Error{ErrorCode::kConflict,
                   "rank: it has reported, but was not told any clocks: ask for a schedule first"};
    if (point.instruction.empty() ||
        point.instruction.find_first_of(",\"\n\r") != std::string::npos)
      return FieldError("time_breakdown",
                        Quote(point.instruction) + " is no name of an instruction");
    lines += fmt::format("{},{},{},{}\n", point.instruction, clock->ToMega(), point.time.count(),
                         point.energy.value());
  }
  return lines;
}

bool IsWholeProfile(std::string_view points) {
  std::set<std::string_view> instructions;
  while (!points.empty()) {
    const std::string_view line = NextLine(points);
    if (!instructions.insert(line.substr(0, line.find(','))).second) return true;
  }
  return false;
}

Result<pipeline::PipelineProfile> ProfileFrom(const std::vector<SessionRank>& ranks,
                                              const std::vector<SessionMeasurement>& measurements) {
  std::string csv(kHeader);
  for (const SessionMeasurement& measurement : measurements) {
    const auto rank = std::ranges::find(ranks, measurement.rank, &SessionRank::rank);
    if (rank == ranks.end()) continue;
    std::string_view points = measurement.points;
    while (!points.empty())
      csv += fmt::format("{},{},{},{},{},{}\n", rank->rank, rank->data_rank, rank->pipeline_rank,
                         rank->tensor_rank, rank->pipeline_rank, NextLine(points));
  }
  return pipeline::ParseProfileCsv(csv);
}

}  // namespace zeus
