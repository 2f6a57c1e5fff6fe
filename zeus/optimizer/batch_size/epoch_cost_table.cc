#include "zeus/optimizer/batch_size/epoch_cost_table.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "zeus/base/json.h"
#include "zeus/optimizer/batch_size/policy_state.h"

namespace zeus {
namespace {

constexpr int kMostMeasurements = 8;  // The greatest weight of the mean so far in Refine(), plus 1.
constexpr std::string_view kField = "epoch_costs";

// Models of which other jobs told have this behind their name.
constexpr std::string_view kOfOtherJobs = " of other jobs";

double Octaves(int a, int b) { return std::abs(std::log2(a) - std::log2(b)); }

}  // namespace

const EpochCostTable::Model* EpochCostTable::Find(std::string_view gpu_model) const {
  const auto found = std::ranges::find(models_, gpu_model, &Model::name);
  return found == models_.end() ? nullptr : &*found;
}

EpochCostTable::Measured* EpochCostTable::Slot(std::string_view gpu_model, int batch_size,
                                               Joules cost) {
  if (!std::isfinite(cost.value()) || cost <= Joules(0)) return nullptr;
  auto model = std::ranges::find(models_, gpu_model, &Model::name);
  if (model == models_.end())
    model = models_.insert(models_.end(), Model{.name = std::string(gpu_model)});
  return &model->costs[batch_size];
}

void EpochCostTable::LearnOnce(std::string_view gpu_model, int batch_size, Joules cost) {
  Measured* const slot = Slot(gpu_model, batch_size, cost);
  if (slot == nullptr || slot->count > 0) return;
  *slot = {.cost = cost, .count = 1};
  ++changes_;
}

void EpochCostTable::Refine(std::string_view gpu_model, int batch_size, Joules cost) {
  Measured* const slot = Slot(gpu_model, batch_size, cost);
  if (slot == nullptr) return;
  slot->count = std::min(slot->count + 1, kMostMeasurements);
  const Joules before = slot->cost;
  slot->cost += (cost - slot->cost) / slot->count;
  if (slot->cost != before) ++changes_;
}

void EpochCostTable::LearnFromOtherJobs(std::string_view gpu_model, int batch_size, Joules cost) {
  LearnOnce(std::string(gpu_model) + std::string(kOfOtherJobs), batch_size, cost);
}

std::optional<Joules> EpochCostTable::CostInOtherJobs(std::string_view gpu_model,
                                                      int batch_size) const {
  return Profiled(std::string(gpu_model) + std::string(kOfOtherJobs), batch_size);
}

void EpochCostTable::ForgetOtherJobs() {
  std::erase_if(models_, [](const Model& model) { return model.name.ends_with(kOfOtherJobs); });
  ++changes_;
}

std::optional<Joules> EpochCostTable::Profiled(std::string_view gpu_model, int batch_size) const {
  const Model* const model = Find(gpu_model);
  if (model == nullptr) return std::nullopt;
  const auto found = model->costs.find(batch_size);
  if (found == model->costs.end()) return std::nullopt;
  return found->second.cost;
}

// Scales the cost on one model by the ratio at the nearest batch size that both models know.
std::optional<Joules> EpochCostTable::TranslatedFrom(const Model& other, const Model* asked,
                                                     int batch_size) {
  const auto known = other.costs.find(batch_size);
  if (known == other.costs.end()) return std::nullopt;
  Joules translated = known->second.cost;
  double nearest = std::numeric_limits<double>::infinity();
  if (asked == nullptr) return translated;
  for (const auto& [common, measured] : asked->costs) {
    const auto there = other.costs.find(common);
    if (there == other.costs.end() || Octaves(common, batch_size) >= nearest) continue;
    nearest = Octaves(common, batch_size);
    translated = known->second.cost * (measured.cost / there->second.cost);
  }
  return translated;
}

std::optional<Joules> EpochCostTable::Translated(std::string_view gpu_model, int batch_size) const {
  const Model* const asked = Find(gpu_model);
  if (const Model* const same = Find(std::string(gpu_model) + std::string(kOfOtherJobs)))
    if (const auto translated = TranslatedFrom(*same, asked, batch_size)) return translated;
  std::optional<Joules> translated;
  double nearest = std::numeric_limits<double>::infinity();
  for (const Model& other : models_) {
    const auto known = other.costs.find(batch_size);
    if (&other == asked || known == other.costs.end()) continue;
    if (!translated) translated = known->second.cost;
    if (asked == nullptr) continue;
    for (const auto& [common, measured] : asked->costs) {
      const auto there = other.costs.find(common);
      if (there == other.costs.end() || Octaves(common, batch_size) >= nearest) continue;
      nearest = Octaves(common, batch_size);
      translated = known->second.cost * (measured.cost / there->second.cost);
    }
  }
  return translated;
}

std::optional<Joules> EpochCostTable::Estimate(std::string_view gpu_model, int batch_size) const {
  if (const auto profiled = Profiled(gpu_model, batch_size)) return profiled;
  if (const auto translated = Translated(gpu_model, batch_size)) return translated;
  const Model* model = Find(gpu_model);
  if (model == nullptr && !models_.empty()) model = &models_.front();
  if (model == nullptr) return std::nullopt;
  return std::ranges::min_element(
             model->costs, {},
             [batch_size](const auto& entry) { return Octaves(entry.first, batch_size); })
      ->second.cost;
}

std::string_view EpochCostTable::home() const {
  return models_.empty() ? std::string_view() : std::string_view(models_.front().name);
}

Json EpochCostTable::Save() const {
  Json state = Json::array();
  for (const Model& model : models_) {
    Json costs = Json::array();
    for (const auto& [batch_size, measured] : model.costs) {
      costs.push_back(batch_size);
      costs.push_back(measured.cost.value());
      costs.push_back(measured.count);
    }
    Json& entry = state.emplace_back(Json::object());
    entry["gpu_model"] = model.name;
    entry[kField] = std::move(costs);
  }
  return state;
}

Result<EpochCostTable> EpochCostTable::Restore(const Json& state) {
  EpochCostTable table;
  ZEUS_RETURN_IF_ERROR(CheckArray(state, kField));
  for (const Json& entry : state) {
    ZEUS_TRY(std::string name, GetField<std::string>(entry, "gpu_model"));
    Model& model = table.models_.emplace_back(Model{.name = std::move(name)});
    ZEUS_TRY(const Json* const costs, FindPart(entry, kField));
    ZEUS_RETURN_IF_ERROR(CheckArray(*costs, kField));
    for (std::size_t i = 0; i < costs->size(); i += 3) {
      ZEUS_TRY(const int batch_size, ElementAt<int>(*costs, i, kField));
      ZEUS_TRY(const double joules, NumberAt(*costs, i + 1, kField));
      ZEUS_TRY(const int count, ElementAt<int>(*costs, i + 2, kField));
      if (batch_size < 1 || joules <= 0 || count < 1) return DamagedState(kField);
      model.costs[batch_size] = {.cost = Joules(joules), .count = count};
    }
    if (model.costs.empty()) return DamagedState(kField);
  }
  return table;
}

}  // namespace zeus
