#pragma once

#include "zeus/base/result.h"
#include "zeus/base/units.h"
#include "zeus/device/sim/gpu_model.h"
#include "zeus/device/sim/inference/model.h"
#include "zeus/device/sim/workload.h"

// Time and energy of one iteration of an inference engine: every decoding sequence gets one token,
// and some prompt tokens are processed. All costs are linear in the amounts of IterationWork, so
// the cost of an iteration is the sum of the costs of its parts, which is what a fair division
// among the requests of an iteration rests on.
namespace zeus::sim {

// The work of one iteration on one GPU of a group of `gpus`.
struct IterationWork {
  double bytes = 0;         // Read from or written to the memory of this GPU.
  double operations = 0;    // Floating-point ones of this GPU.
  double sequences = 0;     // Sequences that decode, whose bookkeeping every GPU waits for.
  double exchanged = 0;     // Layers times new tokens whose activations the group exchanges.
  double routed = 0;        // The same of tokens that go to experts on other GPUs of the group.
  Seconds overhead{};       // Launches and synchronisation, whatever the amount of work.
  Seconds small_kernels{};  // The same of kernels that sort tokens by expert or pack activations.
  double gpus = 1;          // GPUs that share the group's bookkeeping energy.

  friend IterationWork operator+(const IterationWork& a, const IterationWork& b) {
    return {.bytes = a.bytes + b.bytes,
            .operations = a.operations + b.operations,
            .sequences = a.sequences + b.sequences,
            .exchanged = a.exchanged + b.exchanged,
            .routed = a.routed + b.routed,
            .overhead = a.overhead + b.overhead,
            .small_kernels = a.small_kernels + b.small_kernels,
            .gpus = a.gpus};
  }
};

// How a kind of GPU runs iterations. The constants of the H100 are fitted to recorded serving
// points, those of other parts follow from their data sheets: see docs/llm.md.
struct InferenceConstants {
  double memory_efficiency;      // Achieved share of the memory bandwidth.
  double arithmetic_efficiency;  // Achieved share of the peak operations.
  Seconds per_sequence;          // The engine's bookkeeping for a sequence.
  Seconds per_exchange;          // Per layer and token, only with several GPUs.
  Seconds per_routed;            // Added where the token goes to experts on other GPUs.
  Watts static_power;
  Joules per_byte;
  Joules per_operation;
  Joules per_sequence_energy;  // All GPUs of the group together take it.
  Joules per_routed_energy;
  Watts small_kernels;  // Dynamic power while they run.
};

InferenceConstants ConstantsFor(const GpuModel& model);

// Overheads of each layer. They are the host's and its links' and do not depend on the clock.
struct LayerOverheads {
  Seconds each{30e-6};
  Seconds in_group{25e-6};  // Added where several GPUs wait for each other.

  // Small kernels are added to layers with experts: they sort the tokens by expert, gather them
  // for each doubling of the GPUs, and run a shared expert beside the others.
  Seconds sort_tokens{6e-6};
  Seconds per_doubling{14e-6};
  Seconds shared_expert{180e-6};
  Seconds packed{38e-6};  // Weights of 8 and 4 bits: activations are packed before each product.
};

// Cost of a piece of work: part of an iteration or all of it.
struct IterationCost {
  Seconds time{};
  Joules energy{};  // Includes the static power over `time`.

  Watts power() const { return energy / time; }
};

// The cost of work on one GPU at a graphics clock, not bounded by a power limit.
class IterationLaw {
 public:
  IterationLaw(const GpuModel& model, Hertz clock)
      : IterationLaw(model, ConstantsFor(model), clock) {}
  IterationLaw(const GpuModel& model, const InferenceConstants& constants, Hertz clock);

  IterationCost Cost(const IterationWork& work) const;
  Watts static_power() const { return static_power_; }

 private:
  Watts static_power_;
  Seconds time_per_byte_;
  Seconds time_per_operation_;
  Seconds time_per_sequence_;
  Seconds time_per_exchange_;
  Seconds time_per_routed_;
  Joules energy_per_byte_;  // Dynamic energies, without static power.
  Joules energy_per_operation_;
  Joules energy_per_sequence_;
  Joules energy_per_routed_;
  Watts small_kernels_;
};

// How one GPU runs an iteration under its knobs; time_per_epoch is the time of the iteration. A
// power limit selects the highest clock whose mean power fits; below the lowest clock pulses are
// left out. kInvalidArgument when the work is empty, or the knobs are outside what the model
// accepts. Does not allocate unless it fails.
Result<OperatingPoint> PredictIteration(const GpuModel& model, const IterationWork& work,
                                        const KnobSettings& knobs);
Result<OperatingPoint> PredictIteration(const GpuModel& model, const InferenceConstants& constants,
                                        const IterationWork& work, const KnobSettings& knobs);

// One part of a prompt that an iteration processes.
struct PromptPart {
  double start;   // Tokens of the prompt that were processed before.
  double tokens;  // Tokens processed now.
};

// The work of a language model's iterations on one GPU of a group, by part. A whole iteration is
// Fixed() + Experts() + Decode() per decoding sequence + Prompt() per prompt part.
class IterationParts {
 public:
  IterationParts(const LanguageModel& model, unsigned gpus, const LayerOverheads& overheads = {})
      : model_(model), gpus_(gpus), overheads_(overheads) {}

  // Weights that are read once, whatever the batch, and the overhead of every layer.
  IterationWork Fixed() const;
  // Weights of the experts that `tokens` new tokens use; nothing in a dense model.
  IterationWork Experts(double tokens) const;
  // One new token of each of `sequences`. `context` is what attention looks at in all: the sum of
  // LanguageModel::SeenContext() over the sequences.
  IterationWork Decode(double sequences, double context) const;
  IterationWork Prompt(const PromptPart& part) const;

 private:
  double Exchanged(double tokens) const;
  double Routed(double tokens) const;
  double SeenFromStart(double tokens) const;

  const LanguageModel& model_;
  double gpus_;
  LayerOverheads overheads_;
};

}  // namespace zeus::sim
