#include "zeus/plan/session_repository.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>

#include "zeus/base/field_reader.h"
#include "zeus/base/text.h"
#include "zeus/optimizer/pipeline/profile_csv.h"

namespace zeus {

Result<MemorySessionRepository::Entry*> MemorySessionRepository::FindEntry(const std::string& id) {
  const auto found = entries_.find(id);
  if (found == entries_.end())
    return Error{ErrorCode::kNotFound, "job_id: there is no pipeline " + Quote(id)};
  return &found->second;
}

Status MemorySessionRepository::Insert(const PipelineSession& session) {
  const std::lock_guard lock(mutex_);
  if (!entries_.try_emplace(session.id, Entry{.session = session}).second)
    return Error{ErrorCode::kConflict, "job_id: there is a pipeline " + Quote(session.id)};
  return Ok();
}

Result<PipelineSession> MemorySessionRepository::Find(const std::string& id) {
  const std::lock_guard lock(mutex_);
  ZEUS_TRY(const Entry* const entry, FindEntry(id));
  return entry->session;
}

Status MemorySessionRepository::MarkUsed(const std::string& id, WallTime at) {
  const std::lock_guard lock(mutex_);
  ZEUS_TRY(Entry* const entry, FindEntry(id));
  entry->session.used_at = at;
  return Ok();
}

Status MemorySessionRepository::AddRank(const std::string& id, const SessionRank& rank) {
  const std::lock_guard lock(mutex_);
  ZEUS_TRY(Entry* const entry, FindEntry(id));
  for (const auto& [number, known] : entry->ranks) ZEUS_RETURN_IF_ERROR(CheckBeside(rank, known));
  entry->ranks.try_emplace(rank.rank, rank);
  return Ok();
}

Result<std::vector<SessionRank>> MemorySessionRepository::Ranks(const std::string& id) {
  const std::lock_guard lock(mutex_);
  ZEUS_TRY(const Entry* const entry, FindEntry(id));
  std::vector<SessionRank> ranks;
  for (const auto& [number, rank] : entry->ranks) ranks.push_back(rank);
  return ranks;
}

Status MemorySessionRepository::PutMeasurement(const std::string& id,
                                               const SessionMeasurement& measurement) {
  const std::lock_guard lock(mutex_);
  ZEUS_TRY(Entry* const entry, FindEntry(id));
  entry->measurements[{measurement.round, measurement.rank}] = measurement;
  return Ok();
}

Result<std::vector<SessionMeasurement>> MemorySessionRepository::Measurements(
    const std::string& id) {
  const std::lock_guard lock(mutex_);
  ZEUS_TRY(const Entry* const entry, FindEntry(id));
  std::vector<SessionMeasurement> measurements;
  for (const auto& [key, measurement] : entry->measurements) measurements.push_back(measurement);
  return measurements;
}

Status MemorySessionRepository::EndRound(const PipelineSession& session) {
  const std::lock_guard lock(mutex_);
  ZEUS_TRY(Entry* const entry, FindEntry(session.id));
  if (entry->session.round != session.round) return Ok();
  ++entry->session.round;
  entry->session.plan_id = session.plan_id;
  return Ok();
}

Status MemorySessionRepository::StartOver(const PipelineSession& session) {
  const std::lock_guard lock(mutex_);
  ZEUS_TRY(Entry* const entry, FindEntry(session.id));
  if (entry->session.round != session.round) return Ok();
  entry->session.round = 0;
  entry->measurements.clear();
  return Ok();
}

Result<int> MemorySessionRepository::DeleteUnused(WallTime before, int limit) {
  const std::lock_guard lock(mutex_);
  int deleted = 0;
  for (auto next = entries_.begin(); next != entries_.end() && deleted < limit;) {
    const auto entry = next++;
    if (entry->second.session.used_at >= before) continue;
    entries_.erase(entry);
    ++deleted;
  }
  return deleted;
}

Status CheckBeside(const SessionRank& rank, const SessionRank& known) {
  if (rank.rank == known.rank) {
    if (rank == known) return Ok();
    return Error{ErrorCode::kConflict,
                 fmt::format("rank: {} has registered as somebody else", rank.rank)};
  }
  if (rank.data_rank != known.data_rank || rank.pipeline_rank != known.pipeline_rank ||
      rank.tensor_rank != known.tensor_rank)
    return Ok();
  return Error{
      ErrorCode::kConflict,
      fmt::format("rank: {} cannot be dp_rank {}, pp_rank {}, tp_rank {}: rank {} is", rank.rank,
                  rank.data_rank, rank.pipeline_rank, rank.tensor_rank, known.rank)};
}

namespace {

constexpr std::size_t kMostClocks = 8;
constexpr double kLowestShare = 0.4;
constexpr std::string_view kSeparators = " \t\n,;";

Error BadWord(std::string_view word) {
  return FieldError("job_metadata",
                    fmt::format("{} makes no sense: use plan=ID, schedule=1f1b, microbatches=8, "
                                "slowdown=1.05 or blocking_power_watts=70",
                                Quote(word)));
}

Result<double> Positive(std::string_view word, std::string_view value) {
  const auto number = ParseDouble(value);
  if (number.ok() && std::isfinite(number.value()) && number.value() > 0) return number.value();
  return BadWord(word);
}

Status ReadWord(std::string_view word, SessionSettings& settings) {
  const auto equals = word.find('=');
  if (equals == std::string_view::npos) return Ok();
  const std::string_view name = word.substr(0, equals);
  const std::string_view value = word.substr(equals + 1);
  if (name == "plan") settings.plan = value;
  if (name == "schedule") settings.schedule = value;
  if ((name == "plan" || name == "schedule") && value.empty()) return BadWord(word);
  if (name == "slowdown") {
    ZEUS_TRY(settings.slowdown, Positive(word, value));
  }
  if (name == "blocking_power_watts") {
    ZEUS_TRY(const double power, Positive(word, value));
    settings.blocking_power = Watts(power);
  }
  if (name == "microbatches") {
    const auto count = ParseInteger(value);
    if (!count.ok() || count.value() < 1 || count.value() > 1'000'000) return BadWord(word);
    settings.microbatches = static_cast<int>(count.value());
  }
  return Ok();
}

}  // namespace

Result<SessionSettings> SettingsFrom(std::string_view metadata) {
  SessionSettings settings;
  while (!metadata.empty()) {
    const auto end = std::min(metadata.find_first_of(kSeparators), metadata.size());
    ZEUS_RETURN_IF_ERROR(ReadWord(metadata.substr(0, end), settings));
    metadata.remove_prefix(std::min(end + 1, metadata.size()));
  }
  return settings;
}

std::vector<int> ClocksToMeasure(const std::vector<SessionRank>& ranks) {
  std::vector<int> common;
  for (const SessionRank& rank : ranks) {
    std::vector<int> clocks = rank.clocks_mhz;
    std::ranges::sort(clocks, std::greater());
    if (&rank == &ranks.front()) {
      common = std::move(clocks);
      continue;
    }
    std::vector<int> both;
    std::ranges::set_intersection(common, clocks, std::back_inserter(both), std::greater());
    common = std::move(both);
  }
  common.erase(std::ranges::unique(common).begin(), common.end());
  if (common.empty()) return common;
  std::erase_if(common,
                [lowest = kLowestShare * common.front()](int clock) { return clock < lowest; });
  if (common.size() <= kMostClocks) return common;
  std::vector<int> spread;
  for (std::size_t i = 0; i < kMostClocks; ++i)
    spread.push_back(common[i * (common.size() - 1) / (kMostClocks - 1)]);
  return spread;
}

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
