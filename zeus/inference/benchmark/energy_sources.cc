#include "zeus/inference/benchmark/energy_sources.h"

#include <fmt/format.h>

#include <algorithm>

#include "zeus/base/json.h"
#include "zeus/base/text.h"
#include "zeus/http/url.h"

namespace zeus::inference {
namespace {

constexpr const char* kWindow = "benchmark";
constexpr Seconds kSensorTimeout{2};
// Between two looks at requests whose energy is not final yet: a sensor updates every 20 to 100 ms.
constexpr Seconds kFinalInterval{0.05};
// Requests in a row that a server may not know before it counts as one without a gateway.
constexpr int kMostUnknown = 3;

}  // namespace

void GpuMeter::Begin() {
  // The only error is a window that is open already, which is restarted.
  (void)monitor_.BeginWindow(kWindow, {.if_open = IfOpen::kRestart});
}

Measurement GpuMeter::End() {
  auto ended = monitor_.EndWindow(kWindow);
  if (!ended.ok()) return {};
  auto refined = monitor_.Refine(ended.value().id, kSensorTimeout);
  return refined.ok() ? std::move(refined).value() : std::move(ended).value();
}

Measurement GpuMeter::Between(const SteadyWindow& part) const {
  Measurement measurement{.window = kWindow, .begin = part.begin, .time = part.time()};
  for (std::size_t device = 0; device < monitor_.device_count(); ++device) {
    measurement.devices.push_back({.device = monitor_.device_name(device),
                                   .energy = monitor_.EnergyBetween(device, part.begin, part.end),
                                   .in_total = monitor_.device_in_total(device)});
  }
  return measurement;
}

std::optional<Hertz> GpuMeter::MeanClock(const SteadyWindow& part) const {
  double sum = 0;
  double time = 0;
  for (std::size_t device = 0; device < monitor_.device_count(); ++device) {
    for (const Timeline::Sample& sample :
         monitor_.History(device, EnergyMonitor::Quantity::kGraphicsClock, part.begin, part.end)) {
      const double span =
          (std::min(sample.end, part.end) - std::max(sample.time, part.begin)).count();
      if (span <= 0) continue;
      sum += sample.value * span;
      time += span;
    }
  }
  if (time <= 0) return std::nullopt;
  return Hertz(sum / time);
}

std::vector<PowerCurve> GpuMeter::Power(const SteadyWindow& part) const {
  std::vector<PowerCurve> curves;
  for (std::size_t device = 0; device < monitor_.device_count(); ++device) {
    PowerCurve& curve = curves.emplace_back();
    curve.device = monitor_.device_name(device);
    for (const Timeline::Sample& sample :
         monitor_.History(device, EnergyMonitor::Quantity::kPower, part.begin, part.end))
      curve.points.emplace_back(sample.time - part.begin, Watts(sample.value));
  }
  return curves;
}

Result<std::optional<RequestEnergy>> GatewayRequests::Find(const std::string& request) {
  ZEUS_TRY(const http::Reply reply,
           client_.Send({.path = "/zeus/requests/" + http::PercentEncoded(request)}));
  if (reply.status != 200) return std::optional<RequestEnergy>();
  ZEUS_TRY(const Json json, ParseJson(reply.body));
  return ReadRequestEnergy(json);
}

namespace {

// Asks once for the energy of each request. Returns those whose energy is not final yet; nothing
// when it is no use to ask on.
std::vector<RequestRecord*> FetchOnce(const std::vector<RequestRecord*>& open,
                                      RequestEnergySource& source, const Clock& clock,
                                      TimePoint deadline) {
  std::vector<RequestRecord*> provisional;
  int unknown = 0;
  for (RequestRecord* const request : open) {
    if (clock.Now() >= deadline) return {};
    const auto found = source.Find(request->id);
    if (!found.ok()) return {};
    if (!found.value()) {
      if (++unknown >= kMostUnknown) return {};
      continue;
    }
    unknown = 0;
    request->energy = *found.value();
    if (!request->energy->final) provisional.push_back(request);
  }
  return provisional;
}

}  // namespace

void FetchFinalEnergies(LoadRecord& record, RequestEnergySource& source, Clock& clock,
                        Seconds timeout) {
  const TimePoint deadline = clock.Now() + timeout;
  std::vector<RequestRecord*> open;
  for (RequestRecord& request : record.requests)
    if (!request.id.empty() && !(request.energy && request.energy->final)) open.push_back(&request);
  while (!open.empty() && clock.Now() < deadline) {
    open = FetchOnce(open, source, clock, deadline);
    if (!open.empty()) clock.SleepFor(kFinalInterval);
  }
}

Result<std::string> FindOnlyModel(http::Client& client) {
  ZEUS_TRY(const http::Reply reply, client.Send({.path = "/v1/models"}));
  const auto unknown = [](const std::string& why) {
    return Error{
        ErrorCode::kUnavailable,
        fmt::format("the server does not say which model it has ({}): name it with --model", why)};
  };
  if (reply.status != 200) return unknown(fmt::format("/v1/models: status {}", reply.status));
  const auto json = ParseJson(reply.body);
  if (!json.ok() || !json.value().is_object()) return unknown("/v1/models: no JSON");
  const auto data = json.value().find("data");
  std::vector<std::string> models;
  if (data != json.value().end() && data->is_array())
    for (const Json& model : *data)
      if (auto id = GetField<std::string>(model, "id"); id.ok())
        models.push_back(std::move(id).value());
  if (models.size() == 1) return models.front();
  if (models.empty()) return unknown("/v1/models: an empty list");
  return InvalidArgument(fmt::format("the server has {} models, choose one with --model: {}",
                                     models.size(),
                                     Printable(fmt::format("{}", fmt::join(models, ", ")))));
}

}  // namespace zeus::inference
