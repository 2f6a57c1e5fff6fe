#include "apps/zeus/replay/history_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "zeus/base/json.h"
#include "zeus/base/text.h"
#include "zeus/replay/history/history_builder.h"
#include "zeus/replay/input/text_source.h"
#include "zeus/wire/answers.h"

namespace zeus::cli {
namespace {

constexpr const char* kSchema = "zeus.job_export/1";

Status AddRecord(const Json& line, bool first, replay::HistoryBuilder& history) {
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
  return Ok();  // Records of newer versions are ignored.
}

Status AddLine(std::string_view line, bool first, replay::HistoryBuilder& history) {
  ZEUS_TRY(const Json json, ParseJson(line));
  return AddRecord(json, first, history);
}

// Reads line by line: an export may be large, and a wrong file must not fill the memory.
Result<replay::RunHistory> ParseHistory(replay::TextSource source) {
  replay::HistoryBuilder history;
  std::int64_t number = 0;
  bool first = true;
  while (true) {
    ZEUS_TRY(std::string_view text, source.NextLines());
    if (text.empty()) break;
    while (!text.empty()) {
      const std::size_t end = std::min(text.find('\n'), text.size());
      const std::string_view line = Trim(text.substr(0, end));
      text.remove_prefix(std::min(end + 1, text.size()));
      ++number;
      if (line.empty()) continue;
      Status added = AddLine(line, first, history);
      if (!added.ok())
        return std::move(added).error().While(fmt::format("{}: line {}", source.name(), number));
      first = false;
    }
  }
  if (first)
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("{}: empty: give what zeus job export writes", source.name())};
  auto finished = std::move(history).Finish();
  if (!finished.ok()) return std::move(finished).error().While(source.name());
  return finished;
}

}  // namespace

Result<replay::RunHistory> ReadHistory(const std::filesystem::path& path) {
  ZEUS_TRY(auto bytes, replay::OpenFile(path == "-" ? "/dev/stdin" : path));
  return ParseHistory(replay::TextSource(Printable(path.string()), std::move(bytes)));
}

}  // namespace zeus::cli
