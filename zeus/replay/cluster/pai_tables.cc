#include "zeus/replay/cluster/pai_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "zeus/base/file.h"
#include "zeus/base/text.h"
#include "zeus/replay/cluster/runtime_clusters.h"
#include "zeus/replay/input/csv_reader.h"

namespace zeus::replay {
namespace {

constexpr std::array<std::string_view, 2> kGroupColumns{"inst_id", "group"};
constexpr std::array<std::string_view, 4> kJobColumns{"inst_id", "status", "start_time",
                                                      "end_time"};
constexpr double kLatestPaiTime = 1e15;  // In seconds; sums over all jobs stay finite.

struct Table {
  const char* name;
  std::vector<std::string> required;
  std::vector<std::string> published;  // All columns of the published table.
};

Result<std::filesystem::path> FindTable(const std::filesystem::path& folder, const char* name) {
  for (const char* const ending : {".csv", ".csv.xz", ".csv.gz", ".csv.zst"}) {
    std::filesystem::path path = folder / (std::string(name) + ending);
    std::error_code ignored;
    if (std::filesystem::exists(path, ignored)) return path;
  }
  return Error{ErrorCode::kNotFound,
               fmt::format("{}: no {}.csv (or .csv.xz, .csv.gz, .csv.zst) in this folder",
                           Printable(folder.string()), name)};
}

Result<std::vector<std::string>> ReadPaiHeader(const std::filesystem::path& folder,
                                               const Table& table) {
  const std::filesystem::path path = folder / (std::string(table.name) + ".header");
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return table.published;
  ZEUS_TRY(const std::string line, ReadLine(path));
  const std::vector<std::string_view> names = SplitAtCommas(line);
  std::vector<std::string> columns(names.begin(), names.end());
  for (const std::string& column : table.required)
    if (std::ranges::count(columns, column) != 1)
      return Error{ErrorCode::kInvalidArgument,
                   fmt::format("{}: column {} must be there once; the file has {}",
                               Printable(path.string()), column, Quote(line))};
  return columns;
}

Result<CsvReader> OpenTable(const std::filesystem::path& folder, const Table& table,
                            RowProblems& problems) {
  ZEUS_TRY(const std::filesystem::path path, FindTable(folder, table.name));
  ZEUS_TRY(std::vector<std::string> header, ReadPaiHeader(folder, table));
  return CsvReader::Open(path, {.required = table.required, .header = std::move(header)}, problems);
}

// Published tables have no header line, but users may have added one.
bool IsHeader(const CsvReader& reader, std::span<const std::string_view> columns) {
  if (reader.line() != 1) return false;
  for (std::size_t i = 0; i < columns.size(); ++i)
    if (reader.Text(i) != columns[i]) return false;
  return true;
}

struct TextHash : std::hash<std::string_view> {
  using is_transparent = void;
};
using GroupByInstance = std::unordered_map<std::string, std::string, TextHash, std::equal_to<>>;

Result<GroupByInstance> ReadGroups(const std::filesystem::path& folder, RowProblems& problems) {
  ZEUS_TRY(CsvReader reader,
           OpenTable(folder,
                     {.name = "pai_group_tag_table",
                      .required = {kGroupColumns.begin(), kGroupColumns.end()},
                      .published = {"inst_id", "user", "gpu_type_spec", "group", "workload"}},
                     problems));
  GroupByInstance groups;
  while (true) {
    ZEUS_TRY(const bool found, reader.Next());
    if (!found) return groups;
    if (IsHeader(reader, kGroupColumns)) continue;
    if (reader.Text(0).empty() || reader.Text(1).empty()) {
      reader.Report("inst_id or group is empty");
      continue;
    }
    const auto [place, is_new] = groups.try_emplace(std::string(reader.Text(0)), reader.Text(1));
    if (!is_new && place->second != reader.Text(1))
      reader.Report("inst_id has another group already", reader.Text(0));
  }
}

enum JobColumn : std::size_t { kJobInstance, kJobStatus, kJobStart, kJobEnd };

std::optional<ClusterJob> ReadPaiJob(CsvReader& reader) {
  const auto start = reader.Number(kJobStart);
  if (!start) return std::nullopt;
  const auto end = reader.Number(kJobEnd);
  if (!end) return std::nullopt;
  if (*start >= 0 && *end >= *start && *end <= kLatestPaiTime)
    return ClusterJob{.start = Seconds(*start), .end = Seconds(*end)};
  if (*start < 0) {
    reader.Report("start_time is negative", reader.Text(kJobStart));
  } else if (*end > kLatestPaiTime) {
    reader.Report("end_time is above 1e15 seconds", reader.Text(kJobEnd));
  } else {
    reader.Report("end_time is before start_time", reader.Text(kJobEnd));
  }
  return std::nullopt;
}

Result<PaiTrace> Join(CsvReader& jobs, const GroupByInstance& groups) {
  PaiTrace pai;
  ClusterTraceBuilder builder;
  while (true) {
    ZEUS_TRY(const bool found, jobs.Next());
    if (!found) break;
    if (IsHeader(jobs, kJobColumns)) continue;
    if (jobs.Text(kJobStatus) != "Terminated") {
      ++pai.not_terminated;
      continue;
    }
    const auto group = groups.find(jobs.Text(kJobInstance));
    if (group == groups.end()) {
      ++pai.without_group;
      continue;
    }
    // The table is not ordered by time, so the result of Add() is no problem worth a report.
    if (const auto job = ReadPaiJob(jobs)) builder.Add(builder.Group(group->second, {}), *job);
  }
  pai.trace = std::move(builder).Finish();
  return pai;
}

Error NoUsableJob(const std::string& name, const PaiTrace& pai, const RowProblems& problems) {
  std::string text = fmt::format(
      "{}: no usable job: {} did not terminate, {} have no group, {} rows have problems",
      Printable(name), pai.not_terminated, pai.without_group, problems.left_out());
  if (const Status refused = problems.Refuse(); !refused.ok())
    text += ", the first: " + refused.error().message;
  return {ErrorCode::kInvalidArgument, std::move(text)};
}

}  // namespace

Result<PaiTrace> ReadPaiTables(const std::filesystem::path& folder,
                               std::span<const std::string> workloads, RowProblems& problems) {
  ZEUS_TRY(const GroupByInstance groups, ReadGroups(folder, problems));
  ZEUS_TRY(
      CsvReader jobs,
      OpenTable(folder,
                {.name = "pai_job_table",
                 .required = {kJobColumns.begin(), kJobColumns.end()},
                 .published = {"job_name", "inst_id", "user", "status", "start_time", "end_time"}},
                problems));
  ZEUS_TRY(PaiTrace pai, Join(jobs, groups));
  if (pai.trace.jobs.empty()) return NoUsableJob(jobs.name(), pai, problems);
  AssignWorkloads(pai.trace, workloads);
  return pai;
}

}  // namespace zeus::replay
