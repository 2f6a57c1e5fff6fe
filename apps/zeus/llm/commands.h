#pragma once

#include "apps/zeus/command.h"

// The verbs below `zeus llm`. Each function declares the options of its verb and, when the verb is
// chosen, sets `action`.
namespace zeus::cli {

void AddLlmBench(Verb llm, Action& action);    // Load, and what it costs.
void AddLlmGateway(Verb llm, Action& action);  // The gateway that meters requests.

}  // namespace zeus::cli
