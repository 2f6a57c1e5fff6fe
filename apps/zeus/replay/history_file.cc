#include "apps/zeus/replay/history_file.h"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "zeus/base/file.h"
#include "zeus/base/json.h"
#include "zeus/base/text.h"
#include "zeus/replay/history/history_builder.h"
#include "zeus/wire/answers.h"

namespace zeus::cli {
namespace {

constexpr const char* kSchema = "zeus.job_export/1";

Status TakeRecord(const Json& line, bool first, replay::HistoryBuilder& history) {
  ZEUS_TRY(const std::string record, GetField<std::string>(line, "record"));
  if (first != (record == "job"))
    return Error{ErrorCode::kInvalidArgument,
                 first ? "the first record is not the job: give what zeus job export writes"
                       : "a second job: give one job at a time"};
  if (record == "job") {
    ZEUS_TRY(const std::string schema, GetField<std::string>(line, "schema"));
    if (schema != kSchema)
      return Error{ErrorCode::kInvalidArgument,
                   fmt::format("schema {} is not {}", Quote(schema), kSchema)};
    ZEUS_TRY(Job job, wire::JobFromJson(line));
    history.SetJob(std::move(job.spec));
  } else if (record == "trial") {
    ZEUS_TRY(Trial trial, wire::TrialFromJson(line));
    return history.Add(std::move(trial));
  } else if (record == "event") {
    ZEUS_TRY(JobEvent event, wire::JobEventFromJson(line));
    return history.Add(std::move(event));
  }
  return Ok();  // What a newer version adds is not ours.
}

}  // namespace

Result<replay::RunHistory> ParseHistory(std::string_view text) {
  replay::HistoryBuilder history;
  std::int64_t number = 0;
  bool first = true;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = Trim(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    ++number;
    if (line.empty()) continue;
    const auto take = [&]() -> Status {
      ZEUS_TRY(const Json json, ParseJson(line));
      return TakeRecord(json, first, history);
    };
    Status taken = take();
    if (!taken.ok()) return std::move(taken).error().While(fmt::format("line {}", number));
    first = false;
  }
  if (first) return Error{ErrorCode::kInvalidArgument, "empty: give what zeus job export writes"};
  return std::move(history).Finish();
}

Result<replay::RunHistory> ReadHistory(const std::filesystem::path& path) {
  constexpr std::size_t kLargest = std::size_t{1} << 30;
  ZEUS_TRY(const std::string text, ReadSmallFile(path == "-" ? "/dev/stdin" : path, kLargest));
  Result<replay::RunHistory> history = ParseHistory(text);
  if (!history.ok()) return std::move(history).error().While(Printable(path.string()));
  return history;
}

}  // namespace zeus::cli
