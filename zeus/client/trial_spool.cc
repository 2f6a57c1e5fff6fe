#include "zeus/client/trial_spool.h"

#include <fmt/format.h>

#include <algorithm>
#include <system_error>

#include "zeus/base/file.h"
#include "zeus/base/json.h"
#include "zeus/base/user_files.h"
#include "zeus/wire/requests.h"

namespace zeus {
namespace {

constexpr const char* kSchema = "zeus.kept_trial/1";
constexpr const char* kExtension = ".trial";

Json KeptJson(const KeptTrial& kept) {
  Json json{{"schema", kSchema},
            {"where", kept.where},
            {"spec", ToJson(kept.spec)},
            {"request", wire::ToJson(kept.request)},
            {"trial", kept.trial},
            {"pid", kept.runner.pid},
            {"start_ticks", kept.runner.start_ticks},
            {"pid_namespace", kept.runner.pid_namespace}};
  if (kept.report) json["report"] = wire::ToJson(*kept.report);
  if (kept.end) json["end"] = wire::ToJson(*kept.end);
  return json;
}

Result<KeptTrial> ReadKept(const std::filesystem::path& file) {
  ZEUS_TRY(const std::string text, ReadSmallFile(file));
  ZEUS_TRY(const Json json, ParseJson(text));
  ZEUS_TRY(const std::string schema, GetField<std::string>(json, "schema"));
  if (schema != kSchema) return Error{ErrorCode::kInvalidArgument, "no kept trial"};
  KeptTrial kept;
  ZEUS_TRY(kept.where, GetField<std::string>(json, "where"));
  ZEUS_TRY(kept.spec, JobSpecFromJson(json.value("spec", Json())));
  const std::string& id = kept.spec.id;
  ZEUS_TRY(kept.request, wire::TrialRequestFromJson(id, json.value("request", Json())));
  ZEUS_TRY(kept.trial, GetField<std::int64_t>(json, "trial"));
  ZEUS_TRY(kept.runner.pid, GetField<std::int64_t>(json, "pid"));
  ZEUS_TRY(kept.runner.start_ticks, GetField<std::uint64_t>(json, "start_ticks"));
  ZEUS_TRY(kept.runner.pid_namespace, GetField<std::string>(json, "pid_namespace"));
  if (json.contains("report")) {
    ZEUS_TRY(kept.report, wire::TrialReportFromJson(id, kept.trial, json["report"]));
  }
  if (json.contains("end")) {
    ZEUS_TRY(kept.end, wire::TrialEndFromJson(id, kept.trial, json["end"]));
  }
  return kept;
}

Status Write(const std::filesystem::path& file, const Json& json) {
  std::error_code error;
  std::filesystem::create_directories(file.parent_path(), error);
  if (error) return FileError(file.parent_path(), error.value());
  return ReplaceFile(file, json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n",
                     Readers::kOwnerOnly);
}

}  // namespace

std::filesystem::path TrialSpool::FileOf(const KeptTrial& trial) const {
  return folder_ / fmt::format("{}-{}{}", FileNamePart(trial.spec.id),
                               FileNamePart(trial.request.request_id), kExtension);
}

std::filesystem::path TrialSpool::BatchSizeFile(const std::string& where,
                                                const std::string& job) const {
  return folder_ / fmt::format("{}-{}.json", FileNamePart(job), FileNamePart(where));
}

Status TrialSpool::Save(const KeptTrial& trial) const {
  if (folder_.empty())
    return Error{ErrorCode::kUnavailable, "there is no folder to keep it in (set HOME)"};
  return Write(FileOf(trial), KeptJson(trial));
}

void TrialSpool::Remove(const KeptTrial& trial) const {
  std::error_code ignored;
  if (!folder_.empty()) std::filesystem::remove(FileOf(trial), ignored);
}

std::vector<KeptTrial> TrialSpool::Waiting(const std::string& where, const std::string& job) const {
  struct Found {
    std::filesystem::file_time_type written;
    KeptTrial trial;
  };
  std::vector<Found> found;
  std::error_code error;
  if (folder_.empty()) return {};
  for (const auto& file : std::filesystem::directory_iterator(folder_, error)) {
    if (file.path().extension() != kExtension) continue;
    const auto kept = ReadKept(file.path());
    if (kept.ok() && kept.value().where == where && kept.value().spec.id == job &&
        (kept.value().end || !IsRunning(kept.value().runner)))
      found.push_back({file.last_write_time(error), kept.value()});
  }
  std::ranges::sort(found, {}, &Found::written);
  std::vector<KeptTrial> trials;
  for (Found& one : found) trials.push_back(std::move(one.trial));
  return trials;
}

void TrialSpool::RememberBatchSize(const std::string& where, const std::string& job,
                                   int batch_size) const {
  // A run that cannot be remembered is not worth a word: the default stands in for it.
  if (!folder_.empty())
    (void)Write(BatchSizeFile(where, job), {{"where", where}, {"batch_size", batch_size}});
}

std::optional<int> TrialSpool::LastBatchSize(const std::string& where,
                                             const std::string& job) const {
  if (folder_.empty()) return std::nullopt;
  const auto text = ReadSmallFile(BatchSizeFile(where, job));
  const auto json = text.ok() ? ParseJson(text.value()) : Result<Json>(Error(text.error()));
  if (!json.ok()) return std::nullopt;
  const auto stored = GetField<std::string>(json.value(), "where");
  const auto size = GetField<int>(json.value(), "batch_size");
  if (!stored.ok() || stored.value() != where || !size.ok()) return std::nullopt;
  return size.value();
}

}  // namespace zeus
