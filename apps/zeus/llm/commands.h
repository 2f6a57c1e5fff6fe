#pragma once

#include "apps/zeus/command.h"

// The verbs below `zeus llm`.
namespace zeus::cli {

void AddLlmGateway(Verb llm, Action& action);
void AddLlmPredict(Verb llm, Action& action);
void AddLlmSim(Verb llm, Action& action);

}  // namespace zeus::cli
