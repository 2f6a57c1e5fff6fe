#include "zeus/gateway/llm_metrics.h"

#include <algorithm>
#include <array>

#include "zeus/metrics/metric_catalogue.h"

namespace zeus::gateway {
namespace {

constexpr std::array kRequestJoules = {0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1e3, 3e3, 1e4};
constexpr std::array kTokenJoules = {0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0};
constexpr std::array kFirstTokenSeconds = {0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0};
constexpr std::array kPerTokenSeconds = {0.005, 0.01, 0.02, 0.03, 0.05, 0.075, 0.1, 0.2, 0.5, 1.0};

const char* AccountName(Joules LlmMetrics::Model::*counted) {
  return counted == &LlmMetrics::Model::counted_prefill ? "prefill" : "decode";
}

void AddModelMetrics(const LlmMetrics::Model& model, bool has_energy, MetricSet& set) {
  const Labels labels{{"model", model.name}, {"upstream", model.upstream_name}};
  const auto with = [&labels](std::string_view name, const std::string& value) {
    Labels more = labels;
    more.emplace_back(name, value);
    return more;
  };
  for (const auto& [status, count] : model.by_status)
    set.Add(metrics::kLlmRequests, with("status", status), count);
  set.Add(metrics::kLlmTokens, with("kind", "prompt"), model.prompt_tokens);
  set.Add(metrics::kLlmTokens, with("kind", "cached"), model.cached_tokens);
  set.Add(metrics::kLlmTokens, with("kind", "output"), model.output_tokens);
  set.Add(metrics::kLlmFirstToken, labels, model.first_token);
  set.Add(metrics::kLlmPerToken, labels, model.per_token);
  set.Add(metrics::kLlmRunning, labels, static_cast<double>(model.running));
  if (!has_energy) return;
  set.Add(metrics::kLlmRequestEnergy, with("phase", "prefill"), model.prefill_energy);
  set.Add(metrics::kLlmRequestEnergy, with("phase", "decode"), model.decode_energy);
  set.Add(metrics::kLlmTokenEnergy, labels, model.token_energy);
  for (const auto counted :
       {&LlmMetrics::Model::counted_prefill, &LlmMetrics::Model::counted_decode})
    set.Add(metrics::kLlmEnergy, with("account", AccountName(counted)), (model.*counted).value());
}

}  // namespace

LlmMetrics::Model::Model()
    : prefill_energy(kRequestJoules),
      decode_energy(kRequestJoules),
      token_energy(kTokenJoules),
      first_token(kFirstTokenSeconds),
      per_token(kPerTokenSeconds) {}

LlmMetrics::Model& LlmMetrics::Find(const RequestRecord& record) {
  const auto find = [this, &record](std::string_view name) {
    return std::ranges::find_if(models_, [&record, name](const Model& model) {
      return model.upstream == record.upstream_index && model.name == name;
    });
  };
  auto found = find(record.model);
  const bool full = models_.size() >= kMostModels;
  if (found == models_.end() && full) found = find("other");
  if (found != models_.end()) return *found;
  Model model;
  model.upstream = record.upstream_index;
  model.upstream_name = record.upstream;
  model.name = full ? "other" : record.model;
  models_.push_back(std::move(model));
  return models_.back();
}

void LlmMetrics::Started(const RequestRecord& record) { ++Find(record).running; }

void LlmMetrics::Ended(const RequestRecord& record) {
  Model& model = Find(record);
  // A request that began under its own name may end among the others.
  if (model.running > 0) --model.running;
  ++model.requests;
  const bool refused = record.outcome == "completed" && record.status >= 400;
  ++model.by_status[refused ? "error" : record.outcome];
  if (refused) return;
  const double cached = record.cached_tokens.value_or(0);
  model.prompt_tokens += std::max(0.0, record.prompt_tokens.value_or(0) - cached);
  model.cached_tokens += cached;
  model.output_tokens += record.output_tokens.value_or(0);
  if (!record.first_token) return;
  model.first_token.Observe((*record.first_token - record.arrived).count());
  const double later = record.output_tokens.value_or(0) - 1;
  if (later >= 1 && *record.last_token > *record.first_token)
    model.per_token.Observe((*record.last_token - *record.first_token).count() / later);
}

void LlmMetrics::Settled(const RequestRecord& record) {
  if (!record.energy) return;
  Model& model = Find(record);
  const RequestEnergy& energy = *record.energy;
  model.prefill += energy.prefill;
  model.decode += energy.decode;
  model.final_output_tokens += energy.output_tokens;
  model.prefill_energy.Observe(energy.prefill.value());
  model.decode_energy.Observe(energy.decode.value());
  if (energy.output_tokens > 0)
    model.token_energy.Observe(energy.energy.value() / energy.output_tokens);
}

void LlmMetrics::FollowAccounts(const EnergyGroups& energy) {
  for (const EnergyGroups::Group& group : energy.groups()) {
    const EnergyAccounts& accounts = group.attribution->accounts();
    for (const std::size_t upstream : group.upstreams) {
      const auto& engine = accounts.engines[energy.engine(upstream)];
      Distribute(upstream, engine.prefill, &Model::prefill, &Model::counted_prefill);
      Distribute(upstream, engine.decode, &Model::decode, &Model::counted_decode);
    }
  }
}

// Raises the counters of an upstream's models until their sum is `account`. Models whose requests
// have used more than their counter shows come first, then those with requests in flight.
void LlmMetrics::Distribute(std::size_t upstream, Joules account, Joules Model::*settled,
                            Joules Model::*counted) {
  std::vector<Model*> own;
  for (Model& model : models_)
    if (model.upstream == upstream) own.push_back(&model);
  if (own.empty()) return;
  Joules more = account;
  for (const Model* model : own) more -= model->*counted;
  if (more <= Joules(0)) return;
  const auto behind = [&](const Model& model) {
    return std::max(Joules(0), model.*settled - model.*counted);
  };
  Joules all_behind;
  std::size_t running = 0;
  for (const Model* model : own) {
    all_behind += behind(*model);
    running += model->running;
  }
  const double part = all_behind > more ? more / all_behind : 1.0;
  const Joules rest = std::max(Joules(0), more - all_behind);
  for (Model* model : own) {
    const double weight = running > 0
                              ? static_cast<double>(model->running) / static_cast<double>(running)
                              : 1.0 / static_cast<double>(own.size());
    model->*counted += behind(*model) * part + rest * weight;
  }
}

void LlmMetrics::AddTo(MetricSet& set, const EnergyGroups& energy) const {
  for (const Model& model : models_)
    AddModelMetrics(model, energy.GroupIndex(model.upstream).has_value(), set);
  for (const EnergyGroups::Group& group : energy.groups()) {
    const EnergyAccounts& accounts = group.attribution->accounts();
    const std::string gpus = GpuNames(group, energy);
    const auto account = [&gpus](const char* name) {
      return Labels{{"model", ""}, {"upstream", gpus}, {"account", name}};
    };
    set.Add(metrics::kLlmEnergy, account("idle"), accounts.idle.value());
    set.Add(metrics::kLlmEnergy, account("other"), accounts.other.value());
    const Labels labels{{"gpus", gpus}};
    set.Add(metrics::kLlmResidual, labels, group.attribution->residual_ratio());
    if (const auto clock = energy.GraphicsClock(group))
      set.Add(metrics::kLlmClock, labels, clock->value());
  }
}

std::string LlmMetrics::GpuNames(const EnergyGroups::Group& group, const EnergyGroups& energy) {
  std::vector<std::string> names;
  for (const std::size_t upstream : group.upstreams)
    for (const std::string& gpu : energy.gpus(upstream))
      if (std::ranges::find(names, gpu) == names.end()) names.push_back(gpu);
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ",") + name;
  return text;
}

}  // namespace zeus::gateway
