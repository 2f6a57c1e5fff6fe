#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "zeus/base/result.h"

namespace zeus::sim {

// How weights of 8 bits are scaled.
enum class WeightScales {
  kUsual,       // Per block in mixtures that use several experts per token, else per channel.
  kPerChannel,  // One scale per channel: Llama.
  kPerBlock,    // One scale per block of 128 x 128: Qwen3, DeepSeek.
};

// The architecture of a language model, as far as time and energy of inference depend on it.
struct LanguageModel {
  std::string_view name;  // "llama-3.1-8b"
  unsigned layers;
  unsigned kv_heads;
  unsigned head_dim;
  double width;                  // Query heads times head_dim; 0 when it is to be estimated.
  double parameters;             // All of them.
  double active_parameters;      // Those that work on one token; all of them in a dense model.
  unsigned experts;              // Per layer; 0 in a dense model.
  unsigned experts_used;         // Experts per layer that work on one token.
  double weight_bytes;           // Memory of all weights.
  unsigned expert_layers = 0;    // Layers that have experts; 0 when it is to be estimated.
  unsigned windowed_layers = 0;  // Layers whose attention looks at the last `window` tokens only.
  double window = 0;             // Tokens.
  WeightScales scales = WeightScales::kUsual;

  bool mixture() const { return experts > 0; }
  unsigned mixture_layers() const;

  // A mixture that uses one expert per token (Llama 4) has a shared expert beside it.
  bool has_shared_expert() const { return experts_used == 1; }

  // Weights of fewer than 16 bits.
  bool packed() const;
  bool block_scaled() const;

  // Memory of the keys and values of one token: two of them per layer, in 16 bits.
  double kv_bytes() const { return 2.0 * layers * kv_heads * head_dim * 2.0; }

  // The width of attention, estimated as that of a transformer of so many parameters
  // (12 layers width^2) where it is not known.
  double attention_width() const;

  // Tokens that attention looks at behind a context, as a mean over the layers.
  double SeenContext(double context) const;

  // Parameters and bytes of all experts together, and the bytes that every iteration reads. Below
  // 8 bits only the experts are packed.
  double expert_parameters() const;
  double expert_weight_bytes() const;
  double shared_weight_bytes() const { return weight_bytes - expert_weight_bytes(); }

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
