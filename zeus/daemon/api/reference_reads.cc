#include <fmt/format.h>

#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "zeus/base/json.h"
#include "zeus/daemon/api/reference_routes.h"

// The reference's requests that read something.
namespace zeus::daemon {
namespace {

constexpr Seconds kLongestSilence{1.0};  // A stream sends even what does not change.

std::int64_t Rounded(double value) { return std::llround(value); }

// An object with one value for each GPU.
template <class Read>
http::Answer ByGpu(Daemon& daemon, const Call& call, const Read& read) {
  const auto devices = NumberedDevices(call, "gpu_ids", daemon.devices().gpus());
  if (!devices.ok()) return ToAnswer(devices.error());
  AnswersByDevice answers;
  Json values = Json::object();
  for (const NodeDevice* device : devices.value()) {
    Result<Json> value = read(*device->gpu);
    if (value.ok())
      values[std::to_string(device->index)] = std::move(value).value();
    else
      answers.Fail(device->index, value.error());
  }
  return answers.failed() ? answers.Failure() : http::JsonAnswer(200, values);
}

Result<Json> EnergyOf(Gpu& gpu) {
  ZEUS_TRY(const Joules energy, gpu.TotalEnergy());
  return Json{{"energy_mj", Rounded(energy.ToMilli())}};
}

Result<Json> LimitOf(Gpu& gpu) {
  ZEUS_TRY(const PowerLimit limit, gpu.CurrentPowerLimit());
  return Json{{"power_limit_mw", Rounded(limit.requested.ToMilli())}};
}

Result<Json> ConstraintsOf(Gpu& gpu) {
  ZEUS_TRY(const PowerLimit limit, gpu.CurrentPowerLimit());
  return Json{{"min_power_limit_mw", Rounded(limit.range.min.ToMilli())},
              {"max_power_limit_mw", Rounded(limit.range.max.ToMilli())}};
}

Result<Json> PersistenceOf(Gpu& gpu) {
  ZEUS_TRY(const Persistence mode, gpu.CurrentPersistence());
  return Json{{"enabled", mode == Persistence::kOn}};
}

http::Answer GpuPower(Daemon& daemon, const Call& call) {
  http::Answer answer = ByGpu(daemon, call, [](Gpu& gpu) -> Result<Json> {
    ZEUS_TRY(const Watts power, gpu.Power());
    return Json(Rounded(power.ToMilli()));
  });
  if (answer.status == 200)
    answer.body = fmt::format(R"({{"timestamp_ms":{},"power_mw":{}}})",
                              Milliseconds(daemon.clock().WallNow()), answer.body);
  return answer;
}

http::Answer CpuEnergy(Daemon& daemon, const Call& call) {
  const auto devices = NumberedDevices(call, "cpu_ids", daemon.devices().cpus());
  if (!devices.ok()) return ToAnswer(devices.error());
  const auto cpu = BoolParameter(call, "cpu");
  if (!cpu.ok()) return ToAnswer(cpu.error());
  const auto dram = BoolParameter(call, "dram");
  if (!dram.ok()) return ToAnswer(dram.error());
  if (!cpu.value() || !dram.value())
    return ToAnswer(InvalidArgument("cpu, dram: both are needed: true or false"));
  AnswersByDevice answers;
  Json values = Json::object();
  for (const NodeDevice* device : devices.value()) {
    Json& value = values[std::to_string(device->index)];
    value = {{"cpu_energy_uj", nullptr}, {"dram_energy_uj", nullptr}};
    const auto read = [&](EnergyMeter* meter, const char* name) {
      if (meter == nullptr) return;
      const auto energy = meter->TotalEnergy();
      if (energy.ok())
        value[name] = Rounded(energy.value().ToMicro());
      else
        answers.Fail(device->index, energy.error());
    };
    if (*cpu.value()) read(device->cpu, "cpu_energy_uj");
    if (*dram.value()) read(device->cpu->dram(), "dram_energy_uj");
  }
  return answers.failed() ? answers.Failure() : http::JsonAnswer(200, values);
}

// Milliwatts over the recorder's last interval; null where there are none.
Json RecordedPower(Daemon& daemon, const std::optional<std::size_t>& recorded) {
  if (!recorded) return {};
  const auto present = daemon.recorder().monitor().Now(*recorded);
  if (!present.power.ok()) return {};
  return Rounded(present.power.value().ToMilli());
}

Json CpuPowerOf(Daemon& daemon, const NodeDevice& device) {
  return {{"cpu_mw", RecordedPower(daemon, device.recorded)},
          {"dram_mw", RecordedPower(daemon, device.dram_recorded)}};
}

http::Answer CpuPower(Daemon& daemon, const Call& call) {
  const auto devices = NumberedDevices(call, "cpu_ids", daemon.devices().cpus());
  if (!devices.ok()) return ToAnswer(devices.error());
  daemon.ReadingsWanted();
  AnswersByDevice answers;
  Json power = Json::object();
  for (const NodeDevice* device : devices.value()) {
    Json value = CpuPowerOf(daemon, *device);
    if (value["cpu_mw"].is_null())
      answers.Fail(device->index, 500, "its power is not known yet: ask again");
    power[std::to_string(device->index)] = std::move(value);
  }
  if (answers.failed()) return answers.Failure();
  return http::JsonAnswer(200, {{"timestamp_ms", Milliseconds(daemon.clock().WallNow())},
                                {"power_mw", std::move(power)}});
}

http::Answer Follow(Daemon& daemon, PolledStreams::Source source) {
  http::Answer answer = daemon.streams().Follow(std::move(source));
  daemon.RecorderWanted();
  return answer;
}

// Sends the power of each device at once, when it changes, and at least every second.
class PowerStream {
 public:
  using Read = std::function<Json(const NodeDevice&)>;

  PowerStream(Daemon& daemon, std::string id_name, std::vector<const NodeDevice*> devices,
              Read read)
      : daemon_(daemon),
        id_name_(std::move(id_name)),
        devices_(std::move(devices)),
        read_(std::move(read)),
        sent_(devices_.size()) {}

  std::string operator()(TimePoint now) {
    std::string text;
    for (std::size_t i = 0; i < devices_.size(); ++i) {
      const Json power = read_(*devices_[i]);
      if (power.is_null()) continue;
      Sent& sent = sent_[i];
      if (sent.power == power && now - sent.at < kLongestSilence) continue;
      sent = {.power = power, .at = now};
      Json event = {{"timestamp_ms", Milliseconds(daemon_.clock().WallNow())},
                    {id_name_, devices_[i]->index}};
      event.update(power);
      text += "data: " + JsonText(event) + "\n\n";
    }
    return text;
  }

 private:
  struct Sent {
    Json power{};
    TimePoint at{};
  };
  Daemon& daemon_;
  std::string id_name_;
  std::vector<const NodeDevice*> devices_;
  Read read_;
  std::vector<Sent> sent_;
};

http::Answer StreamGpuPower(Daemon& daemon, const Call& call) {
  auto devices = NumberedDevices(call, "gpu_ids", daemon.devices().gpus());
  if (!devices.ok()) return ToAnswer(devices.error());
  const auto read = [&daemon](const NodeDevice& device) -> Json {
    const Json power = RecordedPower(daemon, device.recorded);
    if (power.is_null()) return {};
    return {{"power_mw", power}};
  };
  return Follow(daemon, PowerStream(daemon, "gpu_id", std::move(devices).value(), read));
}

http::Answer StreamCpuPower(Daemon& daemon, const Call& call) {
  auto devices = NumberedDevices(call, "cpu_ids", daemon.devices().cpus());
  if (!devices.ok()) return ToAnswer(devices.error());
  const auto read = [&daemon](const NodeDevice& device) -> Json {
    const Json power = CpuPowerOf(daemon, device);
    return power["cpu_mw"].is_null() ? Json() : power;
  };
  return Follow(daemon, PowerStream(daemon, "cpu_id", std::move(devices).value(), read));
}

}  // namespace

void AddReferenceReads(Daemon& daemon, RouteTable& table) {
  const auto add = [&](std::string_view pattern, std::string_view summary, auto handler,
                       http::Work work = http::Work::kRead) {
    const bool gpu = pattern.starts_with("/gpu/");
    std::vector<std::string_view> query = {gpu ? "gpu_ids" : "cpu_ids"};
    if (pattern == "/cpu/get_cumulative_energy") query.insert(query.end(), {"cpu", "dram"});
    table.Add({.method = "GET",
               .pattern = pattern,
               .handler = std::move(handler),
               .summary = summary,
               .query = std::move(query),
               .statuses = {200, 400, 500},
               .scope = gpu ? Scope::kGpuRead : Scope::kCpuRead,
               .group = gpu ? ApiGroup::kGpuRead : ApiGroup::kCpuRead,
               .work = work});
  };
  const auto by_gpu = [&daemon](Result<Json> (*read)(Gpu&)) {
    return [&daemon, read](const Call& call) { return ByGpu(daemon, call, read); };
  };
  add("/gpu/get_cumulative_energy", "Energy of GPUs", by_gpu(EnergyOf));
  add("/gpu/get_power", "Power of GPUs",
      [&daemon](const Call& call) { return GpuPower(daemon, call); });
  add("/gpu/get_power_limit", "Power limits", by_gpu(LimitOf));
  add("/gpu/get_power_limit_constraints", "Lowest and highest power limits", by_gpu(ConstraintsOf));
  add("/gpu/get_persistence_mode", "Whether drivers stay loaded", by_gpu(PersistenceOf));
  add(
      "/gpu/stream_power", "Power of GPUs as server-sent events",
      [&daemon](const Call& call) { return StreamGpuPower(daemon, call); }, http::Work::kImmediate);
  add("/cpu/get_cumulative_energy", "Energy of CPU packages and their memory",
      [&daemon](const Call& call) { return CpuEnergy(daemon, call); });
  add("/cpu/get_power", "Power of CPU packages and their memory",
      [&daemon](const Call& call) { return CpuPower(daemon, call); });
  add(
      "/cpu/stream_power", "Power of CPU packages as server-sent events",
      [&daemon](const Call& call) { return StreamCpuPower(daemon, call); }, http::Work::kImmediate);
}

}  // namespace zeus::daemon
