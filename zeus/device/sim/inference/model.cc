#include "zeus/device/sim/inference/model.h"

#include <fmt/format.h>
#include <strings.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include "zeus/base/text.h"

namespace zeus::sim {
namespace {

constexpr double kBytesPerBfloat16 = 2.0;
constexpr double kBytesPerFp8 = 1.0;

// A weight with at most so many bytes on average is packed, or packed into 4 bits.
constexpr double kMostBytesOfPacked = 1.5;
constexpr double kMostBytesOfFourBits = 0.75;

struct Attention {
  unsigned layers;
  unsigned kv_heads;
  unsigned head_dim;
  double width;
  unsigned windowed_layers = 0;
  double window = 0;
};

constexpr LanguageModel Dense(std::string_view name, const Attention& attention, double parameters,
                              double bytes_per_weight = kBytesPerBfloat16) {
  return {.name = name,
          .layers = attention.layers,
          .kv_heads = attention.kv_heads,
          .head_dim = attention.head_dim,
          .width = attention.width,
          .parameters = parameters,
          .active_parameters = parameters,
          .experts = 0,
          .experts_used = 0,
          .weight_bytes = parameters * bytes_per_weight,
          .windowed_layers = attention.windowed_layers,
          .window = attention.window};
}

struct Experts {
  double active_parameters;
  unsigned count;
  unsigned used;
  unsigned layers = 0;
};

constexpr LanguageModel Mixture(std::string_view name, const Attention& attention,
                                double parameters, const Experts& experts,
                                double bytes_per_weight = kBytesPerBfloat16) {
  LanguageModel model = Dense(name, attention, parameters, bytes_per_weight);
  model.active_parameters = experts.active_parameters;
  model.experts = experts.count;
  model.experts_used = experts.used;
  model.expert_layers = experts.layers;
  return model;
}

// Layers, key-value heads, head dimension and parameters are those of the published model cards and
// configurations.
constexpr std::array kModels = {
    Dense("tinyllama-1.1b", {22, 4, 64, 2048}, 1.10e9),
    Dense("llama-3.1-8b", {32, 8, 128, 4096}, 8.03e9),
    Dense("llama-3.1-70b", {80, 8, 128, 8192}, 70.6e9),
    Dense("llama-3.1-405b-fp8", {126, 8, 128, 16384}, 405.9e9, kBytesPerFp8),
    Dense("qwen3-8b", {36, 8, 128, 4096}, 8.19e9),
    Dense("qwen3-14b", {40, 8, 128, 5120}, 14.8e9),
    Dense("gemma-3-27b", {62, 16, 128, 4096, 52, 1024}, 27.4e9),
    Mixture("qwen3-30b-a3b", {48, 4, 128, 4096}, 30.5e9,
            {.active_parameters = 3.3e9, .count = 128, .used = 8}),
    Mixture("qwen3-235b-a22b", {94, 4, 128, 8192}, 235.1e9,
            {.active_parameters = 22.2e9, .count = 128, .used = 8}),
    Mixture("gpt-oss-20b", {24, 8, 64, 4096, 12, 128}, 20.9e9,
            {.active_parameters = 3.6e9, .count = 32, .used = 4}, 13.76e9 / 20.9e9),
    Mixture("qwen3-235b-a22b-fp8", {94, 4, 128, 8192}, 235.1e9,
            {.active_parameters = 22.2e9, .count = 128, .used = 8}, kBytesPerFp8),
    Mixture("llama-4-scout", {48, 8, 128, 5120}, 109e9,
            {.active_parameters = 17e9, .count = 16, .used = 1}),
    Mixture("llama-4-maverick-fp8", {48, 8, 128, 5120}, 400e9,
            {.active_parameters = 17e9, .count = 128, .used = 1, .layers = 24}, kBytesPerFp8),
};

bool SameName(std::string_view a, std::string_view b) {
  return a.size() == b.size() && ::strncasecmp(a.data(), b.data(), a.size()) == 0;
}

Error InvalidModel(const LanguageModel& model, std::string_view problem) {
  return {ErrorCode::kInvalidArgument,
          fmt::format("language model {}: {}", Quote(model.name), problem)};
}

bool IsPositive(double value) { return value > 0.0 && std::isfinite(value); }

}  // namespace

double LanguageModel::attention_width() const {
  return width > 0.0 ? width : std::sqrt(active_parameters / (12.0 * layers));
}

unsigned LanguageModel::mixture_layers() const {
  if (!mixture()) return 0;
  if (expert_layers > 0) return expert_layers;
  // Where one expert works on a token it is the feed-forward network of its layer: three matrices
  // that are no narrower than the layer. Where the experts' parameters do not suffice for that in
  // all layers, every second one has them (Llama 4 Maverick).
  const double narrowest = 3.0 * attention_width() * attention_width();
  const bool in_all = experts_used > 1 || expert_parameters() >= narrowest * layers * experts;
  return in_all ? layers : (layers + 1) / 2;
}

bool LanguageModel::packed() const { return weight_bytes < kMostBytesOfPacked * parameters; }

bool LanguageModel::block_scaled() const {
  if (!mixture() || !packed() || weight_bytes < kMostBytesOfFourBits * parameters) return false;
  return scales == WeightScales::kPerBlock ||
         (scales == WeightScales::kUsual && !has_shared_expert());
}

double LanguageModel::SeenContext(double context) const {
  const double windowed = static_cast<double>(windowed_layers) / layers;
  return context - windowed * std::max(context - window, 0.0);
}

double LanguageModel::expert_parameters() const {
  if (!mixture()) return 0.0;
  // With S shared and X expert parameters: parameters = S + X, active = S + X used / experts.
  const double used = static_cast<double>(experts_used) / experts;
  return (parameters - active_parameters) / (1.0 - used);
}

double LanguageModel::expert_weight_bytes() const {
  const double rest = kBytesPerBfloat16 * (parameters - expert_parameters());
  if (mixture() && weight_bytes < kMostBytesOfFourBits * parameters && rest < weight_bytes)
    return weight_bytes - rest;
  return weight_bytes * (expert_parameters() / parameters);
}

double LanguageModel::WeightBytesRead(double tokens) const {
  if (!mixture()) return weight_bytes;
  const double unused = 1.0 - static_cast<double>(experts_used) / experts;
  return shared_weight_bytes() + expert_weight_bytes() * (1.0 - std::pow(unused, tokens));
}

Status CheckLanguageModel(const LanguageModel& model) {
  if (model.layers == 0 || model.kv_heads == 0 || model.head_dim == 0)
    return InvalidModel(model, "layers, key-value heads and head dimension must be at least 1");
  if (!IsPositive(model.parameters) || !IsPositive(model.weight_bytes))
    return InvalidModel(model, "parameters and weight bytes must be above 0");
  if (!(model.width >= 0.0) || !std::isfinite(model.width))
    return InvalidModel(model, "the width of attention must not be negative");
  if (!IsPositive(model.active_parameters) || model.active_parameters > model.parameters)
    return InvalidModel(model, "active parameters must be above 0 and at most all parameters");
  if (model.expert_layers > model.layers || model.windowed_layers > model.layers)
    return InvalidModel(model, "layers with experts or with a window cannot be more than all");
  if (!(model.window >= 0.0) || !std::isfinite(model.window) ||
      (model.windowed_layers > 0 && model.window < 1.0))
    return InvalidModel(model, "the window of attention must be at least 1 token");
  if (!model.mixture()) {
    if (model.experts_used > 0) return InvalidModel(model, "it uses experts but has none");
    return Ok();
  }
  if (model.experts_used == 0 || model.experts_used >= model.experts)
    return InvalidModel(model,
                        "experts used per token must be at least 1 and fewer than all experts");
  if (model.expert_weight_bytes() > model.weight_bytes)
    return InvalidModel(
        model,
        "active parameters are fewer than the experts used per token hold: raise them "
        "or lower the number of experts used");
  return Ok();
}

std::span<const LanguageModel> LanguageModels() { return kModels; }

Result<const LanguageModel*> FindLanguageModel(std::string_view name) {
  for (const LanguageModel& model : kModels)
    if (SameName(model.name, name)) return &model;
  std::string known;
  for (const LanguageModel& model : kModels)
    known.append(known.empty() ? "" : ", ").append(model.name);
  return Error{ErrorCode::kNotFound,
               fmt::format("unknown language model {} (known: {})", Quote(name), known)};
}

}  // namespace zeus::sim
