#include "zeus/ranks/rank_share.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <utility>

#include "zeus/base/json.h"
#include "zeus/monitor/measurement_json.h"

namespace zeus {
namespace {

Json DeviceJson(const RankDevice& device) {
  return {{"device", device.device},
          {"key", device.key},
          {"model", device.model},
          {"uuid", device.uuid},
          {"calibrated", device.calibrated}};
}

Result<RankDevice> RankDeviceFromJson(const Json& json) {
  if (!json.is_object()) return InvalidArgument("devices must be a list of objects");
  RankDevice device;
  ZEUS_TRY(device.device, GetField<std::string>(json, "device"));
  ZEUS_TRY(device.key, GetField<std::string>(json, "key"));
  ZEUS_TRY(device.model, GetField<std::string>(json, "model"));
  ZEUS_TRY(device.uuid, GetField<std::string>(json, "uuid"));
  ZEUS_TRY(device.calibrated, GetField<bool>(json, "calibrated"));
  return device;
}

// One device of the job, as the ranks measured it.
struct Candidate {
  const RankShare* share;
  const RankDevice* device;
  const DeviceMeasurement* measured;  // Null where the rank was lost.
};

Seconds EndOf(const RankShare& share) {
  return share.begin + (share.measurement ? share.measurement->time : Seconds(0));
}

// Whether `a` says more on the device than `b`.
bool Better(const Candidate& a, const Candidate& b) {
  const bool a_knows = a.measured != nullptr && a.measured->energy.ok();
  const bool b_knows = b.measured != nullptr && b.measured->energy.ok();
  if (a_knows != b_knows) return a_knows;
  if (!a_knows) return a.measured != nullptr && b.measured == nullptr;
  return a.share->measurement->time > b.share->measurement->time;
}

// Part of the time of the users of a device that its measurer did not see.
double Unseen(const std::vector<Candidate>& candidates, const RankShare& by) {
  Seconds begin = by.begin;
  Seconds end = EndOf(by);
  for (const Candidate& candidate : candidates) {
    const RankShare& user = *candidate.share;
    const bool uses = std::ranges::find(user.own, candidate.device->key) != user.own.end();
    if (!uses || !user.measurement) continue;
    begin = std::min(begin, user.begin);
    end = std::max(end, EndOf(user));
  }
  const Seconds all = end - begin;
  return all.count() > 0 ? 1 - by.measurement->time / all : 0;
}

DeviceMeasurement Choose(const std::vector<Candidate>& candidates, const std::string& name) {
  const Candidate& best = *std::ranges::min_element(candidates, Better);
  if (best.measured == nullptr) {
    return {.device = name,
            .energy = Error{ErrorCode::kUnavailable,
                            fmt::format("rank {} was lost, and no other could read the device",
                                        best.share->rank)}};
  }
  DeviceMeasurement chosen = *best.measured;
  chosen.device = name;
  // Ranks start and end some milliseconds apart.
  constexpr double kTolerated = 0.05;
  constexpr Seconds kToleratedTime{0.25};
  if (!chosen.energy.ok()) return chosen;
  const double unseen = Unseen(candidates, *best.share);
  if (unseen > kTolerated && unseen * best.share->measurement->time > kToleratedTime)
    chosen.energy.value().flags.Set(MeasurementFlag::kPartial);
  return chosen;
}

std::string NameOn(const RankShare& share, const std::string& device) {
  return fmt::format("{}/{}", share.host, device);
}

// All candidates for each device that a rank uses, under its name in the report.
std::map<std::string, std::vector<Candidate>> CandidatesByName(
    const std::vector<RankShare>& shares) {
  std::map<std::string, std::vector<Candidate>> by_key;
  for (const RankShare& share : shares)
    for (const std::string& key : share.own) by_key[key];
  for (const RankShare& share : shares) {
    for (const RankDevice& device : share.devices) {
      const auto found = by_key.find(device.key);
      if (found == by_key.end()) continue;
      const DeviceMeasurement* measured =
          share.measurement ? share.measurement->Find(device.device) : nullptr;
      found->second.push_back({.share = &share, .device = &device, .measured = measured});
    }
  }
  std::map<std::string, std::vector<Candidate>> by_name;
  for (auto& [key, candidates] : by_key) {
    if (candidates.empty()) continue;
    // Ranks in containers may give two devices one name.
    std::string name = NameOn(*candidates.front().share, candidates.front().device->device);
    if (by_name.contains(name)) name += " " + key;
    by_name.emplace(std::move(name), std::move(candidates));
  }
  return by_name;
}

JobMeasurement::Node& NodeOf(JobMeasurement& job, const std::string& host) {
  const auto found = std::ranges::find(job.nodes, host, &JobMeasurement::Node::host);
  if (found != job.nodes.end()) return *found;
  return job.nodes.emplace_back(JobMeasurement::Node{.host = host, .ranks = {}});
}

// Everything but the devices: ranks, nodes, times.
JobMeasurement Heads(int size, const std::vector<RankShare>& shares) {
  JobMeasurement job;
  job.measurement.window = "run";
  job.measurement.stage = Measurement::Stage::kRefined;
  bool first = true;
  for (const RankShare& share : shares) {
    job.ranks.push_back({.rank = share.rank, .host = share.host, .exit_code = share.exit_code});
    JobMeasurement::Node& node = NodeOf(job, share.host);
    node.ranks.push_back(share.rank);
    if (!share.measurement) continue;
    const Measurement& one = *share.measurement;
    if (first || one.started < job.measurement.started) job.measurement.started = one.started;
    first = false;
    node.time = std::max(node.time, one.time);
    job.measurement.time = std::max(job.measurement.time, one.time);
    if (one.stage != Measurement::Stage::kRefined) job.measurement.stage = one.stage;
  }
  for (int rank = 0; rank < size; ++rank)
    if (std::ranges::find(shares, rank, &RankShare::rank) == shares.end())
      job.missing.push_back(rank);
  return job;
}

}  // namespace

Json ToJson(const RankShare& share) {
  Json devices = Json::array();
  for (const RankDevice& device : share.devices) devices.push_back(DeviceJson(device));
  Json json = {{"rank", share.rank},
               {"host", share.host},
               {"own", share.own},
               {"devices", std::move(devices)},
               {"begin_seconds", share.begin.count()}};
  if (share.exit_code) json["exit_code"] = *share.exit_code;
  if (share.measurement) json["measurement"] = ToJson(*share.measurement);
  return json;
}

Result<RankShare> RankShareFromJson(const Json& json) {
  if (!json.is_object()) return InvalidArgument("the share of a rank must be a JSON object");
  RankShare share;
  ZEUS_TRY(share.rank, GetField<int>(json, "rank"));
  ZEUS_TRY(share.host, GetField<std::string>(json, "host"));
  ZEUS_TRY(share.own, GetField<std::vector<std::string>>(json, "own"));
  ZEUS_TRY(const Json devices, GetField<Json>(json, "devices"));
  if (!devices.is_array()) return InvalidArgument("devices must be a list");
  for (const Json& one : devices) {
    ZEUS_TRY(RankDevice device, RankDeviceFromJson(one));
    share.devices.push_back(std::move(device));
  }
  ZEUS_TRY(const double begin, GetField<double>(json, "begin_seconds"));
  share.begin = Seconds(begin);
  ZEUS_TRY(share.exit_code, GetOptionalField<int>(json, "exit_code"));
  if (const auto found = json.find("measurement"); found != json.end()) {
    ZEUS_TRY(share.measurement, MeasurementFromJson(*found));
  }
  return share;
}

JobMeasurement Combine(int size, std::vector<RankShare> shares) {
  std::ranges::sort(shares, {}, &RankShare::rank);
  JobMeasurement job = Heads(size, shares);
  std::map<std::string, Measurement> by_host;
  for (const auto& [name, candidates] : CandidatesByName(shares)) {
    const Candidate& first = candidates.front();
    RankDevice device = *first.device;
    device.device = name;
    job.devices.push_back(std::move(device));
    job.measurement.devices.push_back(Choose(candidates, name));
    by_host[first.share->host].devices.push_back(job.measurement.devices.back());
  }
  // Devices that have no key could not even be found; each rank says so for itself.
  for (const RankShare& share : shares) {
    if (!share.measurement) continue;
    for (const DeviceMeasurement& one : share.measurement->devices) {
      const std::string name = NameOn(share, one.device);
      const bool known =
          std::ranges::find(share.devices, one.device, &RankDevice::device) != share.devices.end();
      if (known || job.measurement.Find(name) != nullptr) continue;
      job.measurement.devices.push_back(one);
      job.measurement.devices.back().device = name;
    }
  }
  for (JobMeasurement::Node& node : job.nodes) node.total = by_host[node.host].Sum();
  return job;
}

}  // namespace zeus
