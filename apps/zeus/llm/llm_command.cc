#include "apps/zeus/commands.h"
#include "apps/zeus/llm/commands.h"

namespace zeus::cli {

void AddLlmCommand(Verb app, Action& action) {
  const Verb llm = app.AddVerb("llm", "Energy of language models: of each request and token");
  llm.RequireVerb();
  AddLlmBench(llm, action);
  AddLlmColosseum(llm, action);
  AddLlmGateway(llm, action);
  AddLlmPredict(llm, action);
  AddLlmSim(llm, action);
}

}  // namespace zeus::cli
