#include "zeus/wire/requests.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "zeus/base/field_reader.h"
#include "zeus/base/json.h"
#include "zeus/base/text.h"

namespace zeus::wire {
namespace {

// The shape of a text, before it is parsed. The parser accepts any depth, but copying and printing
// its result takes stack in proportion to it.
struct Shape {
  int deepest = 0;         // The deepest nesting of brackets outside of strings.
  std::size_t values = 0;  // An upper bound on the number of values.
};

Shape MeasureShape(std::string_view text) {
  int depth = 0;
  Shape shape;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      ++shape.values;
      shape.deepest = std::max(shape.deepest, ++depth);
    } else if (c == '}' || c == ']') {
      --depth;
    } else if (c == ',') {
      ++shape.values;
    }
  }
  return shape;
}

// Reads a text as the parser does, and notes what error messages need to name a field. (The
// callback of the parser itself would take a time that grows with the square of an array's length.)
class FieldWatch final : public nlohmann::json_sax<Json> {
 public:
  // The field of the outermost object whose value is not JSON; empty when there is none.
  const std::string& open() const { return open_; }
  // A field that an object has twice; empty when there is none. Proxies and servers differ in which
  // of the two values they use, so such a body is refused.
  const std::string& repeated() const { return repeated_; }
  // Whether an object has more than kMostFields.
  bool has_large_object() const { return has_large_object_; }

  bool null() override { return EndValue(); }
  bool boolean(bool) override { return EndValue(); }
  bool number_integer(number_integer_t) override { return EndValue(); }
  bool number_unsigned(number_unsigned_t) override { return EndValue(); }
  bool number_float(number_float_t, const string_t&) override { return EndValue(); }
  bool string(string_t&) override { return EndValue(); }
  bool binary(binary_t&) override { return EndValue(); }
  bool start_object(std::size_t) override {
    seen_.emplace_back();
    return Enter();
  }
  bool key(string_t& name) override {
    if (depth_ == 1) open_ = name;
    std::set<std::string>& names = seen_.back();
    if (!names.insert(name).second) repeated_ = name;
    has_large_object_ = has_large_object_ || names.size() > kMostFields;
    return !has_large_object_;
  }
  bool end_object() override {
    seen_.pop_back();
    return Leave();
  }
  bool start_array(std::size_t) override { return Enter(); }
  bool end_array() override { return Leave(); }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception&) override {
    return false;
  }

 private:
  bool Enter() {
    ++depth_;
    return true;
  }
  bool Leave() {
    --depth_;
    return EndValue();
  }
  bool EndValue() {
    if (depth_ == 1) open_.clear();
    return true;
  }

  int depth_ = 0;
  std::vector<std::set<std::string>> seen_{};  // The field names of each open object.
  std::string open_{};
  std::string repeated_{};
  bool has_large_object_ = false;
};

}  // namespace

Result<Json> ParseBody(std::string_view text, std::size_t most_values) {
  const Shape shape = MeasureShape(text);
  if (shape.deepest > kDeepestNesting)
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("the body is nested more than {} levels deep", kDeepestNesting)};
  if (shape.values > most_values)
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("the body has more than {} values", most_values)};
  FieldWatch watch;
  Json::sax_parse(text, &watch);
  if (watch.has_large_object())
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("an object of the body has more than {} fields", kMostFields)};
  Result<Json> json = ParseJson(text);
  if (!json.ok()) {
    const std::string& field = watch.open();
    if (field.empty()) return json.error().While("the body is no JSON object");
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("{}: is no JSON value (NaN and infinities are none): {}",
                             Printable(field), json.error().message)};
  }
  if (!json.value().is_object())
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("the body must be a JSON object, not {}", json.value().type_name())};
  if (!watch.repeated().empty())
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("{}: is there more than once", Printable(watch.repeated()))};
  return json;
}

namespace {

constexpr std::size_t kLongestText = 1000;
constexpr Seconds kLongestLease = std::chrono::hours(24 * 30);

// Texts are stored, so their length is bounded.
void ReadText(FieldReader& fields, const char* field, std::string& target) {
  fields.ReadUnlessNull(field, target);
  if (target.size() > kLongestText)
    fields.Fail(field, fmt::format("is longer than {} bytes", kLongestText));
}

}  // namespace

Json ToJson(const TrialRequest& request) {
  Json json = Json::object();
  if (!request.gpu_model.empty()) json["gpu_model"] = request.gpu_model;
  if (request.max_power) json["max_power_watts"] = request.max_power->value();
  if (request.recurrence) json["recurrence"] = *request.recurrence;
  if (!request.request_id.empty()) json["request_id"] = request.request_id;
  if (request.lease) json["lease_seconds"] = request.lease->count();
  if (request.batch_size) json["batch_size"] = *request.batch_size;
  if (request.baseline) json["baseline"] = true;
  return json;
}

Result<TrialRequest> TrialRequestFromJson(std::string job_id, const Json& json) {
  TrialRequest request{.job_id = std::move(job_id)};
  FieldReader fields("a request for a trial", json);
  ReadText(fields, "gpu_model", request.gpu_model);
  ReadQuantity(fields, "max_power_watts", request.max_power);
  if (request.max_power == Watts(0)) fields.Fail("max_power_watts", "must be greater than 0");
  fields.Read("recurrence", request.recurrence);
  if (request.recurrence && *request.recurrence < 0)
    fields.Fail("recurrence", "must not be negative");
  ReadText(fields, "request_id", request.request_id);
  ReadQuantity(fields, "lease_seconds", request.lease);
  if (request.lease && !(*request.lease >= Seconds(1) && *request.lease <= kLongestLease))
    fields.Fail("lease_seconds", "must be between a second and 30 days");
  fields.Read("batch_size", request.batch_size);
  fields.ReadUnlessNull("baseline", request.baseline);
  ZEUS_RETURN_IF_ERROR(fields.Finish());
  return request;
}

Json ToJson(const TrialReport& report) {
  Json json = {{"epoch", report.epoch},
               {"time_seconds", report.time.count()},
               {"energy_joules", report.energy.value()},
               {"metric", report.metric}};
  if (report.epoch_energy) json["epoch_energy_joules"] = report.epoch_energy->value();
  if (report.epoch_time) json["epoch_time_seconds"] = report.epoch_time->count();
  if (report.power_limit) json["power_limit_watts"] = report.power_limit->value();
  if (report.undisturbed) json["undisturbed"] = true;
  if (report.shared) json["shared"] = true;
  if (report.unmeasured) json["unmeasured"] = true;
  return json;
}

Result<TrialReport> TrialReportFromJson(std::string job_id, std::int64_t trial, const Json& json) {
  TrialReport report{.job_id = std::move(job_id), .trial = trial};
  FieldReader fields("a report", json);
  RequirePositive(fields, "epoch", report.epoch);
  RequireQuantity(fields, "time_seconds", report.time);
  RequireQuantity(fields, "energy_joules", report.energy);
  fields.Require("metric", report.metric);
  ReadQuantity(fields, "epoch_energy_joules", report.epoch_energy);
  ReadQuantity(fields, "epoch_time_seconds", report.epoch_time);
  ReadQuantity(fields, "power_limit_watts", report.power_limit);
  fields.ReadUnlessNull("undisturbed", report.undisturbed);
  fields.ReadUnlessNull("shared", report.shared);
  fields.ReadUnlessNull("unmeasured", report.unmeasured);
  ZEUS_RETURN_IF_ERROR(fields.Finish());
  return report;
}

Json ToJson(const TrialEnd& end) { return {{"status", Name(end.status)}, {"reason", end.reason}}; }

Result<TrialEnd> TrialEndFromJson(std::string job_id, std::int64_t trial, const Json& json) {
  TrialEnd end{.job_id = std::move(job_id), .trial = trial};
  FieldReader fields("the end of a trial", json);
  std::string name;
  fields.Require("status", name);
  const auto status = TrialStatusNamed(name);
  if (status == TrialStatus::kStopped || status == TrialStatus::kFailed) {
    end.status = *status;
  } else {
    fields.Fail("status", "must be stopped or failed");
  }
  ReadText(fields, "reason", end.reason);
  ZEUS_RETURN_IF_ERROR(fields.Finish());
  return end;
}

Json ToJson(const EpochCostReport& report) {
  Json json = {{"gpu_model", report.gpu_model},
               {"batch_size", report.batch_size},
               {"time_seconds", report.time.count()},
               {"energy_joules", report.energy.value()}};
  if (report.max_power) json["max_power_watts"] = report.max_power->value();
  return json;
}

Result<EpochCostReport> EpochCostReportFromJson(std::string job_id, const Json& json) {
  EpochCostReport report{.job_id = std::move(job_id)};
  FieldReader fields("an epoch cost", json);
  ReadText(fields, "gpu_model", report.gpu_model);
  if (report.gpu_model.empty()) fields.Fail("gpu_model", "must say where it was measured");
  RequirePositive(fields, "batch_size", report.batch_size);
  RequireQuantity(fields, "time_seconds", report.time);
  RequireQuantity(fields, "energy_joules", report.energy);
  ReadQuantity(fields, "max_power_watts", report.max_power);
  if (report.max_power == Watts(0)) fields.Fail("max_power_watts", "must be greater than 0");
  ZEUS_RETURN_IF_ERROR(fields.Finish());
  return report;
}

}  // namespace zeus::wire
