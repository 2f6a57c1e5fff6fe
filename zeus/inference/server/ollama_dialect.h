#pragma once

#include <memory>
#include <string_view>

#include "zeus/base/json_fwd.h"
#include "zeus/base/result.h"
#include "zeus/inference/server/completion_format.h"
#include "zeus/inference/server/completion_request.h"

// Ollama's dialect: /api/chat and /api/generate, whose streams are lines of JSON.
namespace zeus::inference {

constexpr bool IsOllama(Endpoint endpoint) {
  return endpoint == Endpoint::kOllamaChat || endpoint == Endpoint::kOllamaGenerate;
}

// The same request in OpenAI's dialect. kInvalidArgument names the field that is wrong.
Result<Json> OllamaToOpenAi(Endpoint endpoint, const Json& body);

std::unique_ptr<AnswerFormat> MakeOllamaFormat(Endpoint endpoint, std::string_view model,
                                               long long created);

// The answer to /api/tags: the models that there are.
Json OllamaTags(std::string_view model, long long created);

// {"error": "…"}
Json OllamaError(std::string_view message);

}  // namespace zeus::inference
