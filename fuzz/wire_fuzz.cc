#include <cstddef>
#include <cstdint>
#include <string_view>

#include "zeus/base/json.h"
#include "zeus/http/router.h"
#include "zeus/http/url.h"
#include "zeus/wire/answers.h"
#include "zeus/wire/error.h"
#include "zeus/wire/reference.h"
#include "zeus/wire/requests.h"

namespace {

using zeus::Json;

// A message that was accepted is written and read again, and must then be the same.
template <class Read, class Write>
void RoundTrip(const Json& json, Read read, Write write) {
  const auto first = read(json);
  if (!first.ok()) {
    (void)zeus::wire::FieldOf(first.error());
    return;
  }
  const Json written = write(first.value());
  const auto second = read(written);
  if (!second.ok() || write(second.value()) != written) __builtin_trap();
}

void Requests(const Json& json) {
  using namespace zeus::wire;
  RoundTrip(
      json, [](const Json& j) { return TrialRequestFromJson("job", j); },
      [](const auto& request) { return ToJson(request); });
  RoundTrip(
      json, [](const Json& j) { return TrialReportFromJson("job", 1, j); },
      [](const auto& report) { return ToJson(report); });
  RoundTrip(
      json, [](const Json& j) { return TrialEndFromJson("job", 1, j); },
      [](const auto& end) { return ToJson(end); });
  RoundTrip(
      json, [](const Json& j) { return EpochCostReportFromJson("job", j); },
      [](const auto& report) { return ToJson(report); });
  RoundTrip(json, zeus::JobSpecFromJson, [](const auto& spec) { return zeus::ToJson(spec); });
}

void Answers(const Json& json) {
  using namespace zeus::wire;
  RoundTrip(json, TrialFromJson, [](const auto& trial) { return ToJson(trial); });
  RoundTrip(json, JobFromJson, [](const auto& job) { return ToJson(job, std::nullopt); });
  RoundTrip(json, StartedTrialFromJson, [](const auto& started) { return ToJson(started); });
  RoundTrip(json, ReportAnswerFromJson, [](const auto& answer) { return ToJson(answer); });
  RoundTrip(json, JobArmsFromJson, [](const auto& arms) { return ToJson(arms); });
  RoundTrip(json, JobEventFromJson, [](const auto& event) { return ToJson(event); });
  (void)JobsFromJson(json);
  (void)TrialsFromJson(json);
  (void)EventsFromJson(json);
}

void Reference(const Json& json) {
  namespace reference = zeus::wire::reference;
  RoundTrip(json, reference::JobSpecFromJson,
            [](const auto& spec) { return reference::ToJson(spec); });
  RoundTrip(json, reference::TrialIdFromJson,
            [](const auto& trial) { return reference::ToJson(trial); });
  RoundTrip(json, reference::TrainingResultFromJson,
            [](const auto& result) { return reference::ToJson(result); });
}

}  // namespace

// Parses every body that a server or a client may receive, and the targets of requests.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  (void)zeus::http::ParseTarget(text);
  (void)zeus::http::ParseUrl(text);
  (void)zeus::http::ParseListenAddress(text);
  (void)zeus::wire::ErrorFromAnswer(422, text);
  const auto body = zeus::wire::ParseBody(text);
  if (!body.ok()) return 0;
  Requests(body.value());
  Answers(body.value());
  Reference(body.value());
  return 0;
}
