#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "zeus/base/result.h"

namespace zeus::sim {

// The architecture of a language model, as far as time and energy of inference depend on it.
struct LanguageModel {
  std::string_view name;  // "llama-3.1-8b"
  unsigned layers;
  unsigned kv_heads;
  unsigned head_dim;
  double width;              // Query heads times head_dim; 0 when it is to be estimated.
  double parameters;         // All of them.
  double active_parameters;  // Those that work on one token; all of them in a dense model.
  unsigned experts;          // Per layer; 0 in a dense model.
  unsigned experts_used;     // Experts per layer that work on one token.
  double weight_bytes;       // Memory of all weights.

  bool mixture() const { return experts > 0; }

  // Memory of the keys and values of one token: two of them per layer, in 16 bits.
  double kv_bytes() const { return 2.0 * layers * kv_heads * head_dim * 2.0; }

  // The width of attention, estimated as that of a transformer of so many parameters
  // (12 layers width^2) where it is not known.
  double attention_width() const;

  // Weights that every iteration reads, and those of all experts together.
  double shared_weight_bytes() const;
  double expert_weight_bytes() const;

  // Bytes of weights that an iteration with `tokens` new tokens reads: every token uses
  // experts_used random experts of each layer.
  double WeightBytesRead(double tokens) const;
};

// kInvalidArgument names the figure that makes no sense.
Status CheckLanguageModel(const LanguageModel& model);

std::span<const LanguageModel> LanguageModels();

// By name, in any case. kNotFound lists the known names.
Result<const LanguageModel*> FindLanguageModel(std::string_view name);

}  // namespace zeus::sim
