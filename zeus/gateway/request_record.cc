#include "zeus/gateway/request_record.h"

#include <fmt/format.h>
#include <openssl/evp.h>
#include <sys/random.h>

#include <algorithm>
#include <array>

#include "zeus/base/json.h"
#include "zeus/base/wall_time_text.h"

namespace zeus::gateway {
namespace {

constexpr std::string_view kCrockford = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
constexpr double kJoulesPerKilowattHour = 3.6e6;

Json OptionalNumber(const std::optional<double>& value) {
  return value ? FiniteOrNull(*value) : Json();
}

// The wall time of a moment of the request.
Json Moment(const RequestRecord& record, const std::optional<TimePoint>& time) {
  if (!time) return {};
  return ToExactText(record.arrived_wall +
                     std::chrono::duration_cast<std::chrono::microseconds>(*time - record.arrived));
}

// The times that the server told, or null.
Json TimesJson(const llm::ServerTimes& times) {
  Json json;
  const auto add = [&json](const char* name, const std::optional<Seconds>& time) {
    if (time) json[name] = FiniteOrNull(time->count());
  };
  add("queue_seconds", times.queue);
  add("load_seconds", times.load);
  add("prefill_seconds", times.prefill);
  add("decode_seconds", times.decode);
  return json;
}

void AddEnergy(const RequestRecord& record, TimePoint now, Json& json) {
  const Seconds duration = record.Duration(now);
  if (!record.energy) {
    json["energy_joules"] = nullptr;
    json["final"] = record.closed;
    json["absent_reason"] = record.absent_reason;
    return;
  }
  const RequestEnergy& energy = *record.energy;
  json["energy_joules"] = FiniteOrNull(energy.energy.value());
  json["sigma_joules"] = FiniteOrNull(energy.sigma.value());
  json["prefill_joules"] = FiniteOrNull(energy.prefill.value());
  json["prefill_sigma_joules"] = FiniteOrNull(energy.prefill_sigma.value());
  json["decode_joules"] = FiniteOrNull(energy.decode.value());
  json["decode_sigma_joules"] = FiniteOrNull(energy.decode_sigma.value());
  json["energy_kwh"] = FiniteOrNull(energy.energy.value() / kJoulesPerKilowattHour);
  if (duration > Seconds(0))
    json["avg_power_watts"] = FiniteOrNull(energy.energy.value() / duration.count());
  json["attribution_method"] = llm::EnergyNote().method;
  json["attribution_ratio"] = FiniteOrNull(energy.ratio);
  if (energy.output_tokens > 0)
    json["joules_per_output_token"] = FiniteOrNull(energy.energy.value() / energy.output_tokens);
  json["final"] = energy.final;
  json["source"] = record.source;
  json["gpus"] = record.gpus;
  if (record.idle) json["idle_joules"] = FiniteOrNull(record.idle->value());
  if (record.carbon_grams) json["carbon_grams"] = FiniteOrNull(*record.carbon_grams);
  if (!record.absent_reason.empty()) json["absent_reason"] = record.absent_reason;
}

}  // namespace

llm::EnergyNote MakeNote(const RequestRecord& record, TimePoint now) {
  llm::EnergyNote note;
  note.request = record.id;
  note.absent_reason = record.absent_reason;
  note.source = record.source;
  note.gpus = record.gpus;
  note.duration = record.Duration(now);
  note.carbon_grams = record.carbon_grams;
  if (!record.energy) {
    if (note.absent_reason.empty()) note.absent_reason = "it is not known yet";
    return note;
  }
  const RequestEnergy& energy = *record.energy;
  note.energy = energy.energy;
  note.sigma = energy.sigma;
  note.prefill = energy.prefill;
  note.decode = energy.decode;
  note.share = energy.ratio;
  note.output_tokens = energy.output_tokens;
  note.tokens_estimated = energy.tokens_estimated;
  note.final = energy.final;
  return note;
}

Json ToJson(const RequestRecord& record, TimePoint now) {
  Json json{{"request", record.id},
            {"model", record.model},
            {"upstream", record.upstream},
            {"dialect", record.dialect},
            {"streamed", record.streamed},
            {"status", record.status},
            {"outcome", record.outcome.empty() ? "in flight" : record.outcome}};
  if (!record.reason.empty()) json["reason"] = record.reason;
  if (!record.key.empty()) json["key"] = record.key;
  if (!record.client_id.empty()) json["client_request"] = record.client_id;
  json["arrival"] = Moment(record, record.arrived);
  json["first_byte"] = Moment(record, record.first_byte);
  json["first_token"] = Moment(record, record.first_token);
  json["last_token"] = Moment(record, record.last_token);
  json["end"] = Moment(record, record.ended);
  json["duration_seconds"] = record.Duration(now).count();
  json["prompt_tokens"] = OptionalNumber(record.prompt_tokens);
  json["cached_tokens"] = OptionalNumber(record.cached_tokens);
  json["output_tokens"] = OptionalNumber(record.output_tokens);
  if (record.tokens_estimated) json["tokens"] = "estimated";
  if (Json times = TimesJson(record.server_times); !times.is_null())
    json["server_times"] = std::move(times);
  AddEnergy(record, now, json);
  if (!record.request_body.empty()) json["request_body"] = record.request_body;
  if (!record.response_body.empty()) json["response_body"] = record.response_body;
  return json;
}

std::string MakeRequestId(WallTime now) {
  std::array<unsigned char, 16> bytes{};
  // The kernel's generator does not fail for so few bytes.
  (void)::getrandom(bytes.data(), bytes.size(), 0);
  auto milliseconds = static_cast<std::uint64_t>(now.time_since_epoch().count() / 1000);
  std::string id = "r-" + std::string(26, '0');
  for (std::size_t i = 10; i-- > 0; milliseconds >>= 5U) id[2 + i] = kCrockford[milliseconds & 31U];
  for (std::size_t i = 0; i < 16; ++i) id[12 + i] = kCrockford[bytes[i] & 31U];
  return id;
}

std::string KeyLabel(std::string_view authorization) {
  if (authorization.empty()) return {};
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned size = 0;
  if (EVP_Digest(authorization.data(), authorization.size(), digest.data(), &size, EVP_sha256(),
                 nullptr) != 1)
    return "key-unknown";
  std::string label = "key-";
  for (std::size_t i = 0; i < 6; ++i) label += fmt::format("{:02x}", digest[i]);
  return label;
}

RequestRecord& RecordStore::Add(RequestRecord record) {
  record.number = next_++;
  open_ids_.emplace(record.id, record.number);
  return open_.emplace(record.number, std::move(record)).first->second;
}

const RequestRecord* RecordStore::Find(const std::string& id) const {
  if (const auto found = open_ids_.find(id); found != open_ids_.end())
    return &open_.at(found->second);
  const auto found = closed_ids_.find(id);
  return found == closed_ids_.end() ? nullptr : &closed_[found->second - forgotten_];
}

RequestRecord* RecordStore::FindOpen(InferenceRequestId number) {
  const auto found = open_.find(number);
  return found == open_.end() ? nullptr : &found->second;
}

void RecordStore::Close(InferenceRequestId number) {
  auto node = open_.extract(number);
  if (node.empty()) return;
  open_ids_.erase(node.mapped().id);
  node.mapped().closed = true;
  closed_ids_.emplace(node.mapped().id, forgotten_ + closed_.size());
  closed_.push_back(std::move(node.mapped()));
  if (closed_.size() <= most_) return;
  closed_ids_.erase(closed_.front().id);
  closed_.pop_front();
  ++forgotten_;
}

std::vector<const RequestRecord*> RecordStore::List(const std::string& after,
                                                    std::string_view model,
                                                    std::size_t limit) const {
  std::size_t begin = 0;
  if (const auto found = closed_ids_.find(after); found != closed_ids_.end())
    begin = found->second - forgotten_ + 1;
  std::vector<const RequestRecord*> list;
  for (std::size_t i = begin; i < closed_.size() && list.size() < limit; ++i)
    if (model.empty() || closed_[i].model == model) list.push_back(&closed_[i]);
  return list;
}

std::vector<InferenceRequestId> RecordStore::OpenNumbers() const {
  std::vector<InferenceRequestId> numbers;
  numbers.reserve(open_.size());
  for (const auto& [number, record] : open_) numbers.push_back(number);
  std::ranges::sort(numbers);
  return numbers;
}

}  // namespace zeus::gateway
