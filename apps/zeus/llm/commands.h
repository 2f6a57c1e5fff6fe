#pragma once

#include "apps/zeus/commands.h"

// The verbs below `zeus llm`. Each function declares the options of its verb and, when the verb is
// chosen, sets `action`.
namespace zeus::cli {

void AddLlmBench(Verb llm, Action& action);      // Load, and what it costs.
void AddLlmColosseum(Verb llm, Action& action);  // Blind duels of two models.
void AddLlmGateway(Verb llm, Action& action);    // The gateway that meters requests.
void AddLlmPredict(Verb llm, Action& action);    // Time and energy of an iteration, by the physics.
void AddLlmSim(Verb llm, Action& action);        // The simulated server.

}  // namespace zeus::cli
