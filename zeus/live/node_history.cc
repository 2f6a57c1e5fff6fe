#include "zeus/live/node_history.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <string_view>

#include "zeus/base/json.h"
#include "zeus/base/wall_time_text.h"

namespace zeus::live {
namespace {

std::int64_t SecondOf(TimePoint time) {
  return static_cast<std::int64_t>(std::floor(time.time_since_epoch().count()));
}
TimePoint StartOf(std::int64_t second) { return TimePoint(Seconds(static_cast<double>(second))); }

// Appends `"name":[12.5,null,…]`; a tenth of a watt is less than any sensor knows.
template <class Value>
void AppendSeries(std::string_view name, const std::vector<PowerBin>& bins, Value value,
                  std::string& text) {
  auto out = std::back_inserter(text);
  fmt::format_to(out, R"(,"{}":[)", name);
  for (const PowerBin& bin : bins) {
    if (bin.seconds == 0)
      text += "null,";
    else
      fmt::format_to(out, "{:.1f},", value(bin));
  }
  if (!bins.empty()) text.pop_back();
  text += ']';
}

}  // namespace

NodeHistory::NodeHistory(NodeMonitor& recorder)
    : recorder_(recorder),
      start_(recorder.monitor().clock().Now()),
      archive_(recorder.monitor().device_count()),
      next_(recorder.monitor().device_count(), SecondOf(start_) + 1) {}

bool NodeHistory::WasIdle(std::size_t device, TimePoint begin, TimePoint end) const {
  const auto samples =
      recorder_.monitor().History(device, EnergyMonitor::Quantity::kUtilization, begin, end);
  return !samples.empty() && std::ranges::all_of(samples, [](const Timeline::Sample& sample) {
    return sample.value < kIdleBelow;
  });
}

void NodeHistory::UpdateDevice(std::size_t device) {
  const EnergyMonitor& monitor = recorder_.monitor();
  const TimePoint now = recorder_.monitor().clock().Now();
  const TimePoint settled = std::min(monitor.SettledUntil(device), now);
  if (!(settled > start_)) return;  // Nothing is known yet: it is settled up to the distant past.
  const std::int64_t end = SecondOf(settled);
  std::int64_t& next = next_[device];
  // A device that was away for long: what lies further back is not known by the second.
  next = std::max(next, end - static_cast<std::int64_t>(PowerArchive::kLevels.front().bins));
  for (; next < end; ++next) {
    const TimePoint begin = StartOf(next);
    const auto energy = monitor.EnergyBetween(device, begin, StartOf(next + 1));
    if (!energy.ok() || energy.value().flags.Has(MeasurementFlag::kPartial)) continue;
    archive_.Add(device, next, energy.value().energy / Seconds(1),
                 WasIdle(device, begin, StartOf(next + 1)));
  }
}

void NodeHistory::Update() {
  const std::lock_guard lock(mutex_);
  for (std::size_t device = 0; device < next_.size(); ++device) UpdateDevice(device);
}

Result<std::string> NodeHistory::Document(const HistoryRequest& request) {
  const auto level = PowerArchive::LevelOf(request.step);
  if (!level) return Error{ErrorCode::kInvalidArgument, "step: must be 1, 10 or 60 seconds"};
  Update();
  Clock& clock = recorder_.monitor().clock();
  const TimePoint now = clock.Now();
  const auto [step, bins] = PowerArchive::kLevels[*level];
  const std::int64_t last = SecondOf(now) / step + 1;
  const std::int64_t oldest =
      std::max(last - static_cast<std::int64_t>(bins), SecondOf(start_) / step);
  std::int64_t first = oldest;
  if (request.since) {
    const double since = std::clamp(*request.since / static_cast<double>(step), -1e15, 1e15);
    first = std::clamp(static_cast<std::int64_t>(std::floor(since)), oldest, last);
  }
  std::string text = fmt::format(
      R"({{"at_seconds":{:.6f},"time":"{}","recorded_since_seconds":{:.6f},"step_seconds":{},)"
      R"("since_seconds":{},"devices":[)",
      now.time_since_epoch().count(), ToExactText(clock.WallNow()),
      start_.time_since_epoch().count(), step, first * step);
  const std::lock_guard lock(mutex_);
  for (const NodeDevice* device : request.devices) {
    fmt::format_to(std::back_inserter(text), R"({{"device":{},"name":{})",
                   JsonText(Json(device->id)), JsonText(Json(device->name)));
    if (device->recorded) {
      const auto series = archive_.Read(*device->recorded, *level, first, last);
      AppendSeries(
          "mean_watts", series, [](const PowerBin& bin) { return bin.mean; }, text);
      if (device->gpu != nullptr)
        AppendSeries(
            "idle_watts", series, [](const PowerBin& bin) { return bin.idle; }, text);
      if (step > 1) {
        AppendSeries(
            "lowest_watts", series, [](const PowerBin& bin) { return bin.lowest; }, text);
        AppendSeries(
            "highest_watts", series, [](const PowerBin& bin) { return bin.highest; }, text);
      }
    }
    text += "},";
  }
  if (!request.devices.empty()) text.pop_back();
  text += "]}";
  return text;
}

}  // namespace zeus::live
