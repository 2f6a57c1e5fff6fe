#pragma once

#include "apps/zeus/command.h"

// The verbs below `zeus llm`. Each function declares the options of its verb and, when the verb is
// chosen, sets `action`.
namespace zeus::cli {

void AddLlmBench(Verb llm, Action& action);    // Load, and what it costs.
void AddLlmGateway(Verb llm, Action& action);  // The gateway that meters requests.
void AddLlmPredict(Verb llm, Action& action);  // The physics of one iteration.
void AddLlmSim(Verb llm, Action& action);      // A simulated server.

}  // namespace zeus::cli
