#include "zeus/wire/llm/testing/sample_responses.h"

#include <cstddef>
#include <stdexcept>

namespace zeus::llm::testing {
namespace {

using namespace std::chrono_literals;

constexpr std::string_view kEvents = "text/event-stream";
constexpr std::string_view kJson = "application/json";

std::string ChatRequest(std::string_view more) {
  return R"({"model":"m","messages":[{"role":"user","content":"Say hello."}])" + std::string(more) +
         "}";
}

std::string Event(std::string_view data) { return "data: " + std::string(data) + "\n\n"; }

std::string ChatEvent(std::string_view choices, std::string_view more = "") {
  return Event(R"({"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"m",)"
               R"("choices":[)" +
               std::string(choices) + "]" + std::string(more) + "}");
}

std::string Delta(std::string_view delta, std::string_view finish = "null") {
  return R"({"index":0,"delta":{)" + std::string(delta) + R"(},"logprobs":null,"finish_reason":)" +
         std::string(finish) + "}";
}

std::vector<SampleResponse> VllmResponses() {
  const std::string role = ChatEvent(Delta(R"("role":"assistant","content":"")"));
  return {
      {.name = "vllm chat stream with usage",
       .target = "/v1/chat/completions",
       .request = ChatRequest(R"(,"stream":true,"stream_options":{"include_usage":true})"),
       .content_type = "text/event-stream; charset=utf-8",
       .marked = role + ChatEvent(Delta(R"("content":"Hel")")) +
                 ChatEvent(Delta(R"("content":"lo \"usage\":{")")) +
                 ChatEvent(Delta(R"("content":"")", R"("stop")")) +
                 ChatEvent("", R"(,"usage":{"prompt_tokens":24,"total_tokens":27,)"
                               R"("completion_tokens":3,"prompt_tokens_details":)"
                               R"({"cached_tokens":16}@M@}@M@)") +
                 "@C@" + Event("[DONE]"),
       .seen_tokens = 2,
       .prompt_tokens = 24,
       .cached_tokens = 16,
       .output_tokens = 3,
       .finish_reasons = {"stop"}},
      {.name = "vllm continuous usage and metrics, coalesced tokens",
       .target = "/v1/chat/completions?x=1",
       .request = ChatRequest(
           R"(,"stream":true,"stream_options":{"include_usage":true,"continuous_usage_stats":true})"),
       .content_type = std::string(kEvents),
       .marked = ChatEvent(Delta(R"("role":"assistant","content":"")"),
                           R"(,"usage":{"prompt_tokens":9,"completion_tokens":0})") +
                 ChatEvent(Delta(R"("content":"One two")"),
                           R"(,"usage":{"prompt_tokens":9,"completion_tokens":4})") +
                 ChatEvent(Delta(R"("content":" three")", R"("length")"),
                           R"(,"usage":{"prompt_tokens":9,"completion_tokens":6})") +
                 ChatEvent("", R"(,"usage":{"prompt_tokens":9,"completion_tokens":6@M@},)"
                               R"("metrics":{"time_to_first_token_ms":85,)"
                               R"("generation_time_ms":1240,"queue_time_ms":12}@M@)") +
                 "@C@" + Event("[DONE]"),
       .seen_tokens = 6,
       .prompt_tokens = 9,
       .output_tokens = 6,
       .queue = 12ms,
       .prefill = 85ms,
       .decode = 1240ms,
       .finish_reasons = {"length"}},
  };
}

std::vector<SampleResponse> VllmChoices() {
  return {
      {.name = "vllm two choices, reasoning and tools, usage null in each event",
       .target = "/v1/chat/completions",
       .request = ChatRequest(R"(,"stream":true,"n":2)"),
       .content_type = std::string(kEvents),
       .marked =
           ChatEvent(Delta(R"("reasoning_content":"Hm")") + "," +
                         R"({"index":1,"delta":{"reasoning":"Well"},"finish_reason":null})",
                     R"(,"usage":null)") +
           ChatEvent(Delta(R"("tool_calls":[{"index":0,"function":{"arguments":"{\"a\":1}"}}])"),
                     R"(,"usage":null)") +
           ChatEvent(Delta("", R"("tool_calls")") + "," +
                         R"({"index":1,"delta":{},"finish_reason":"stop"})",
                     R"(,"usage":null)") +
           "@C@" + Event("[DONE]"),
       .seen_tokens = 3,
       .finish_reasons = {"tool_calls", "stop"}},
      {.name = "vllm text stream with lists of tokens",
       .target = "/v1/completions",
       .request = R"({"model":"m","prompt":"Once","stream":true})",
       .content_type = std::string(kEvents),
       .marked = Event(R"({"id":"cmpl-1","choices":[{"index":0,"text":" upon a",)"
                       R"("logprobs":{"tokens":[" upon"," a"],"token_logprobs":[-0.1,-0.2]},)"
                       R"("finish_reason":null}]})") +
                 Event(R"({"id":"cmpl-1","choices":[{"index":0,"text":" time",)"
                       R"("token_ids":[1,2,3],"finish_reason":null}]})") +
                 Event(R"({"id":"cmpl-1","choices":[{"index":0,"text":"",)"
                       R"("logprobs":null,"finish_reason":"length"}]})") +
                 "@C@" + Event("[DONE]"),
       .seen_tokens = 5,
       .finish_reasons = {"length"}},
  };
}

std::vector<SampleResponse> VllmBodies() {
  return {
      {.name = "vllm chat body",
       .target = "/v1/chat/completions",
       .request = ChatRequest(""),
       .content_type = std::string(kJson),
       .marked = R"({"id":"chatcmpl-2","object":"chat.completion","choices":[{"index":0,)"
                 R"("message":{"role":"assistant","content":"Hello."},"finish_reason":"stop"}],)"
                 R"("usage":{"prompt_tokens":13,"total_tokens":16,"completion_tokens":3@M@},)"
                 R"("metrics":{"queue_time_ms":1.5}@M@})",
       .prompt_tokens = 13,
       .output_tokens = 3,
       .queue = 1.5ms,
       .finish_reasons = {"stop"}},
      {.name = "vllm embeddings",
       .target = "/v1/embeddings",
       .request = R"({"model":"e","input":["a","b"]})",
       .content_type = std::string(kJson),
       .marked = R"({"object":"list","data":[{"index":0,"embedding":[0.1,-2e-3]}],)"
                 R"("usage":{"prompt_tokens":8,"total_tokens":8,"completion_tokens":0@M@}@M@})",
       .prompt_tokens = 8,
       .output_tokens = 0},
  };
}

std::vector<SampleResponse> LlamaCppResponses() {
  return {
      {.name = "llama-server chat stream",
       .target = "/v1/chat/completions",
       .request = ChatRequest(R"(,"stream":true,"stream_options":{"include_usage":true})"),
       .content_type = std::string(kEvents),
       .marked =
           Event(R"({"choices":[{"finish_reason":null,"index":0,"delta":{"role":"assistant",)"
                 R"("content":null}}],"created":1,"id":"c","model":"m"})") +
           Event(R"({"choices":[{"finish_reason":null,"index":0,"delta":{"content":"Hi"}}]})") +
           Event(R"({"choices":[{"finish_reason":null,"index":0,"delta":{"content":"!"}}]})") +
           Event(R"({"choices":[{"finish_reason":"stop","index":0,"delta":{}}],"created":1})") +
           Event(R"({"choices":[],"usage":{"completion_tokens":3,"prompt_tokens":40,)"
                 R"("total_tokens":43@M@},"timings":{"cache_n":30,"prompt_n":10,"prompt_ms":43.5,)"
                 R"("predicted_n":3,"predicted_ms":30.25}@M@})") +
           "@C@" + Event("[DONE]"),
       .seen_tokens = 2,
       .prompt_tokens = 40,
       .cached_tokens = 30,
       .output_tokens = 3,
       .prefill = 43.5ms,
       .decode = 30.25ms,
       .finish_reasons = {"stop"}},
      {.name = "llama-server chat stream with timings in each event",
       .target = "/v1/chat/completions",
       .request = ChatRequest(R"(,"stream":true,"timings_per_token":true)"),
       .content_type = std::string(kEvents),
       .marked = Event(R"({"choices":[{"finish_reason":null,"delta":{"content":"Hi there"}}],)"
                       R"("timings":{"prompt_n":10,"predicted_n":2,"prompt_ms":5}})") +
                 Event(R"({"choices":[{"finish_reason":"stop","index":0,"delta":{}}],"timings":)"
                       R"({"cache_n":2,"prompt_n":10,"predicted_n":3,"predicted_ms":7}})") +
                 "@C@" + Event("[DONE]"),
       .seen_tokens = 3,
       .prompt_tokens = 12,
       .cached_tokens = 2,
       .output_tokens = 3,
       .prefill = 5ms,
       .decode = 7ms,
       .finish_reasons = {"stop"}},
  };
}

std::vector<SampleResponse> LlamaCppOwnStreams() {
  return {
      {.name = "llama-server own stream",
       .target = "/completion",
       .request = R"({"prompt":[1,2,3],"stream":true,"return_progress":true})",
       .content_type = std::string(kEvents),
       .marked = Event(R"({"index":0,"content":"","tokens":[],"stop":false,)"
                       R"("prompt_progress":{"total":3,"processed":3}})") +
                 Event(R"({"index":0,"content":" a","tokens":[7],"stop":false})") +
                 Event(R"({"index":0,"content":" b","tokens":[8,9],"stop":false})") +
                 Event(R"({"index":0,"content":"","tokens":[],"stop":true,"stop_type":"limit",)"
                       R"("tokens_predicted":3,"tokens_evaluated":3,"timings":{"cache_n":1,)"
                       R"("prompt_n":2,"prompt_ms":1,"predicted_n":3,"predicted_ms":2}@M@})") +
                 "@C@",
       .seen_tokens = 3,
       .prompt_tokens = 3,
       .cached_tokens = 1,
       .output_tokens = 3,
       .prefill = 1ms,
       .decode = 2ms,
       .finish_reasons = {"limit"}},
      {.name = "llama-server own stream with counts, those of the prompt's progress stale",
       .target = "/completion",
       .request = R"({"prompt":"Once upon","stream":true,"return_progress":true})",
       .content_type = std::string(kEvents),
       .marked = Event(R"({"content":"","tokens":[0],"stop":false,"tokens_predicted":3,)"
                       R"("tokens_evaluated":3,"prompt_progress":{"total":3,"processed":2}})") +
                 Event(R"({"content":" the","tokens":[278],"stop":false,"tokens_predicted":1,)"
                       R"("tokens_evaluated":3})") +
                 Event(R"({"content":" earth.","tokens":[8437],"stop":false,)"
                       R"("tokens_predicted":3,"tokens_evaluated":3})") +
                 Event(R"({"content":"","tokens":[],"stop":true,"tokens_predicted":3,)"
                       R"("tokens_evaluated":3,"generation_settings":{"stop":[],"n_predict":3},)"
                       R"("stop_type":"limit","tokens_cached":5@M@})") +
                 "@C@",
       .seen_tokens = 3,
       .prompt_tokens = 3,
       .output_tokens = 3,
       .finish_reasons = {"limit"}},
  };
}

std::vector<SampleResponse> LlamaCppSequences() {
  return {
      {.name = "llama-server two choices: usage for each, the first in the middle",
       .target = "/v1/chat/completions",
       .request = ChatRequest(R"(,"n":2,"stream":true,"stream_options":{"include_usage":true})"),
       .content_type = std::string(kEvents),
       .marked =
           Event(R"({"choices":[{"finish_reason":null,"index":0,"delta":{"content":"I"}}]})") +
           Event(R"({"choices":[{"finish_reason":null,"index":1,"delta":{"content":"S"}}]})") +
           Event(R"({"choices":[{"finish_reason":"stop","index":0,"delta":{}}]})") +
           Event(R"({"choices":[],"usage":{"completion_tokens":1,"prompt_tokens":18,)"
                 R"("prompt_tokens_details":{"cached_tokens":17}@M@},"timings":{"cache_n":17,)"
                 R"("prompt_n":1,"predicted_n":1}@M@})") +
           Event(R"({"choices":[{"finish_reason":null,"index":1,"delta":{"content":"ure"}}]})") +
           Event(R"({"choices":[{"finish_reason":"length","index":1,"delta":{}}]})") +
           Event(R"({"choices":[],"usage":{"completion_tokens":2,"prompt_tokens":18,)"
                 R"("prompt_tokens_details":{"cached_tokens":17}@M@},"timings":{"cache_n":17,)"
                 R"("prompt_n":1,"predicted_n":2}@M@})") +
           "@C@" + Event("[DONE]"),
       .seen_tokens = 3,
       .prompt_tokens = 18,
       .cached_tokens = 17,
       .output_tokens = 3,
       .finish_reasons = {"stop", "length"},
       .energy_asked = 2},
      {.name = "llama-server two prompts in one stream",
       .target = "/completion",
       .request = R"({"prompt":["Once","Two"],"stream":true})",
       .content_type = std::string(kEvents),
       .marked = Event("null") +
                 Event(R"({"index":0,"content":" A","tokens":[1],"stop":false,)"
                       R"("tokens_predicted":1,"tokens_evaluated":2})") +
                 Event(R"({"index":1,"content":" B","tokens":[2],"stop":false,)"
                       R"("tokens_predicted":1,"tokens_evaluated":3})") +
                 Event(R"({"index":0,"content":"","tokens":[],"stop":true,"stop_type":"eos",)"
                       R"("tokens_predicted":2,"tokens_evaluated":2@M@})") +
                 Event(R"({"index":1,"content":"","tokens":[],"stop":true,"stop_type":"eos",)"
                       R"("tokens_predicted":2,"tokens_evaluated":3@M@})") +
                 "@C@",
       .seen_tokens = 2,
       .prompt_tokens = 5,
       .output_tokens = 4,
       .finish_reasons = {"eos", "eos"},
       .energy_asked = 2},
  };
}

std::vector<SampleResponse> LlamaCppBodies() {
  return {
      {.name = "llama-server two prompts in one body: a list",
       .target = "/completion",
       .request = R"({"prompt":["Once","Two"]})",
       .content_type = std::string(kJson),
       .marked = R"([{"index":0,"content":" A","tokens":[],"stop":true,"stop_type":"limit",)"
                 R"("tokens_predicted":2,"tokens_evaluated":2},{"index":1,"content":" B",)"
                 R"("stop":true,"tokens_predicted":2,"tokens_evaluated":3}])",
       .prompt_tokens = 5,
       .output_tokens = 4,
       .finish_reasons = {"limit"},
       .energy_asked = 0},
      {.name = "llama-server two choices in one body: usage of the first",
       .target = "/v1/chat/completions",
       .request = ChatRequest(R"(,"n":2)"),
       .content_type = std::string(kJson),
       .marked = R"({"choices":[{"finish_reason":"length","message":{"content":"Sure"}},)"
                 R"({"finish_reason":"length","message":{"content":"Well"}}],"usage":)"
                 R"({"completion_tokens":2,"prompt_tokens":18@M@},"timings":{"predicted_n":2}@M@})",
       .seen_tokens = 4,
       .prompt_tokens = 18,
       .finish_reasons = {"length", "length"}},
      {.name = "llamafile: other ids, no end, no usage",
       .target = "/v1/chat/completions",
       .request = ChatRequest(R"(,"stream":true)"),
       .content_type = std::string(kEvents),
       .marked =
           Event(R"({"choices":[{"delta":{"content":"Hi"},"finish_reason":null}],"id":"a"})") +
           Event(R"({"choices":[{"delta":{"content":"!"},"finish_reason":null}],"id":"b"})") +
           Event(R"({"choices":[{"delta":{},"finish_reason":"stop"}],"id":"c"})") + "@C@",
       .seen_tokens = 2,
       .finish_reasons = {"stop"}},
      {.name = "llama-server rerank",
       .target = "/v1/rerank",
       .request = R"({"model":"r","query":"q","documents":["a","b","c"]})",
       .content_type = std::string(kJson),
       .marked = R"({"results":[],"usage":{"prompt_tokens":30,"total_tokens":30@M@}@M@})",
       .prompt_tokens = 30,
       .output_tokens = 0},
  };
}

std::vector<SampleResponse> OllamaResponses() {
  const std::string counts =
      R"("total_duration":9,"load_duration":1000000,"prompt_eval_count":26,)"
      R"("prompt_eval_duration":130000000,"eval_count":3,"eval_duration":250000000)";
  return {
      {.name = "ollama chat stream",
       .target = "/api/chat",
       .request = ChatRequest(""),
       .content_type = "application/x-ndjson",
       .marked = R"({"model":"m","message":{"role":"assistant","content":"The"},"done":false})"
                 "\n"
                 R"({"model":"m","message":{"role":"assistant","content":"","thinking":"x"},)"
                 R"("done":false})"
                 "\n"
                 R"({"model":"m","message":{"role":"assistant","content":""},"done":false})"
                 "\n"
                 R"({"model":"m","message":{"role":"assistant","content":""},)"
                 R"("done_reason":"stop","done":true,)" +
                 counts + "@M@}\n",
       .seen_tokens = 3,
       .prompt_tokens = 26,
       .output_tokens = 3,
       .prefill = 130ms,
       .decode = 250ms,
       .finish_reasons = {"stop"}},
      {.name = "ollama generate stream without a last line end",
       .target = "/api/generate",
       .request = R"({"model":"m","prompt":"Why?"})",
       .content_type = "application/x-ndjson",
       .marked = R"({"model":"m","response":"The","done":false})"
                 "\n"
                 R"({"model":"m","response":"","done":true,"context":[1,2,3],)" +
                 counts + "@M@}",
       .seen_tokens = 1,
       .prompt_tokens = 26,
       .output_tokens = 3,
       .prefill = 130ms,
       .decode = 250ms},
      {.name = "ollama body",
       .target = "/api/generate",
       .request = R"({"model":"m","prompt":"Why?","stream":false})",
       .content_type = "application/json; charset=utf-8",
       .marked = R"({"model":"m","response":"The sky","done":true,)" + counts + "@M@}",
       .prompt_tokens = 26,
       .output_tokens = 3,
       .prefill = 130ms,
       .decode = 250ms},
      {.name = "ollama embeddings",
       .target = "/api/embed",
       .request = R"({"model":"m","input":"Why?"})",
       .content_type = std::string(kJson),
       .marked = R"({"model":"m","embeddings":[[0.1,0.2]],"prompt_eval_count":8@M@})",
       .prompt_tokens = 8,
       .output_tokens = 0},
  };
}

std::string Named(std::string_view name, std::string_view data) {
  return "event: " + std::string(name) + "\n" + Event(data);
}

std::vector<SampleResponse> TgiResponses() {
  return {
      {.name = "tgi stream",
       .target = "/generate_stream",
       .request = R"({"inputs":"My name is","parameters":{"max_new_tokens":2}})",
       .content_type = std::string(kEvents),
       .marked =
           "data:"
           R"({"index":1,"token":{"id":1,"text":" A","logprob":-1,"special":false},)"
           R"("generated_text":null,"details":null})"
           "\n\n"
           "data:"
           R"({"index":2,"token":{"id":2,"text":" B","logprob":-1,"special":false},)"
           R"("generated_text":" A B","details":{"finish_reason":"length","generated_tokens":2,)"
           R"("input_length":5}@M@})"
           "\n\n@C@",
       .seen_tokens = 2,
       .prompt_tokens = 5,
       .output_tokens = 2,
       .finish_reasons = {"length"}},
      {.name = "tgi body",
       .target = "/generate",
       .request = R"({"inputs":"My name is","parameters":{"details":true}})",
       .content_type = std::string(kJson),
       .marked = R"({"generated_text":" A B","details":{"finish_reason":"eos_token",)"
                 R"("generated_tokens":2,"prefill":[{"id":1},{"id":2}]}@M@})",
       .prompt_tokens = 2,
       .output_tokens = 2,
       .finish_reasons = {"eos_token"}},
  };
}

std::vector<SampleResponse> AnthropicResponses() {
  return {
      {.name = "anthropic stream",
       .target = "/v1/messages",
       .request = ChatRequest(R"(,"max_tokens":9,"stream":true)"),
       .content_type = std::string(kEvents),
       .marked =
           Named("message_start",
                 R"({"type":"message_start","message":{"id":"msg_1","content":[],"usage":)"
                 R"({"input_tokens":5,"cache_read_input_tokens":20,"output_tokens":1}}})") +
           Named("content_block_start", R"({"type":"content_block_start","index":0,)"
                                        R"("content_block":{"type":"text","text":""}})") +
           Named("ping", R"({"type":"ping"})") +
           Named("content_block_delta", R"({"type":"content_block_delta","index":0,)"
                                        R"("delta":{"type":"thinking_delta","thinking":"Hm"}})") +
           Named("content_block_delta", R"({"type":"content_block_delta","index":0,)"
                                        R"("delta":{"type":"signature_delta","signature":"x"}})") +
           Named("content_block_delta", R"({"type":"content_block_delta","index":0,)"
                                        R"("delta":{"type":"text_delta","text":"Hi"}})") +
           Named("content_block_stop", R"({"type":"content_block_stop","index":0})") +
           Named("message_delta", R"({"type":"message_delta","delta":{"stop_reason":"end_turn"},)"
                                  R"("usage":{"output_tokens":4@M@}@M@})") +
           "@C@" + Named("message_stop", R"({"type":"message_stop"})"),
       .seen_tokens = 2,
       .prompt_tokens = 25,
       .cached_tokens = 20,
       .output_tokens = 4,
       .finish_reasons = {"end_turn"}},
      {.name = "anthropic body",
       .target = "/v1/messages",
       .request = ChatRequest(R"(,"max_tokens":9)"),
       .content_type = std::string(kJson),
       .marked = R"({"id":"msg_1","type":"message","content":[{"type":"text","text":"Hi"}],)"
                 R"("stop_reason":"end_turn","usage":{"input_tokens":5,)"
                 R"("cache_creation_input_tokens":2,"output_tokens":4@M@}@M@})",
       .prompt_tokens = 7,
       .output_tokens = 4,
       .finish_reasons = {"end_turn"}},
  };
}

std::vector<SampleResponse> OpenAiResponses() {
  return {
      {.name = "openai responses stream",
       .target = "/v1/responses",
       .request = R"({"model":"m","input":[{"role":"user","content":"Hi"}],"stream":true})",
       .content_type = std::string(kEvents),
       .marked =
           Named("response.created", R"({"type":"response.created","response":{"id":"resp_1",)"
                                     R"("status":"in_progress","usage":null}})") +
           Named("response.output_text.delta",
                 R"({"type":"response.output_text.delta","item_id":"msg_1","delta":"Yes"})") +
           Named("response.reasoning_text.delta",
                 R"({"type":"response.reasoning_text.delta","delta":"Hm"})") +
           Named("response.output_text.done",
                 R"({"type":"response.output_text.done","text":"Yes"})") +
           "@C@" +
           Named("response.completed",
                 R"({"type":"response.completed","response":{"id":"resp_1","status":"completed",)"
                 R"("usage":{"input_tokens":18,"output_tokens":3,"input_tokens_details":)"
                 R"({"cached_tokens":17}@M@}}@M@})"),
       .seen_tokens = 2,
       .prompt_tokens = 18,
       .cached_tokens = 17,
       .output_tokens = 3,
       .finish_reasons = {"completed"}},
      {.name = "openai responses body",
       .target = "/v1/responses",
       .request = R"({"model":"m","input":"Hi"})",
       .content_type = std::string(kJson),
       .marked = R"({"id":"resp_1","object":"response","error":null,"status":"completed",)"
                 R"("output":[],"usage":{"input_tokens":18,"output_tokens":3@M@}@M@})",
       .prompt_tokens = 18,
       .output_tokens = 3,
       .finish_reasons = {"completed"}},
  };
}

std::vector<SampleResponse> UnusualResponses() {
  return {
      {.name = "usage in the event that finishes",
       .target = "/v1/chat/completions",
       .request = ChatRequest(R"(,"stream":true)"),
       .content_type = std::string(kEvents),
       .marked = ChatEvent(Delta(R"("role":"assistant","content":"Hi")")) +
                 ChatEvent(Delta(R"("content":"")", R"("stop")"),
                           R"(,"usage":{"prompt_tokens":3,"completion_tokens":2@M@}@M@)") +
                 "@C@" + Event("[DONE]"),
       .seen_tokens = 1,
       .prompt_tokens = 3,
       .output_tokens = 2,
       .finish_reasons = {"stop"}},
      {.name = "body without counts",
       .target = "/v1/completions",
       .request = R"({"model":"m","prompt":"Once"})",
       .content_type = std::string(kJson),
       .marked = R"({"choices":[{"text":"12345678","finish_reason":"stop"}]@M@})",
       .seen_tokens = 2,
       .finish_reasons = {"stop"}},
  };
}

}  // namespace

std::string Replaced(std::string text, std::string_view what, std::string_view by) {
  for (std::size_t at = text.find(what); at != std::string::npos;
       at = text.find(what, at + by.size()))
    text.replace(at, what.size(), by);
  return text;
}

std::string SampleResponse::Body() const {
  return Replaced(Replaced(marked, "@M@", ""), "@C@", "");
}

std::string SampleResponse::Annotated() const {
  const std::string energy = ToJsonText(SampleNote());
  return Replaced(Replaced(marked, "@M@", ",\"energy\":" + energy), "@C@",
                  ": energy " + energy + "\n\n");
}

RequestFacts SampleResponse::Request() const {
  const auto facts = InspectRequest("POST", target, "application/json", request);
  if (!facts) throw std::logic_error("not a metered request: " + name);
  return *facts;
}

std::vector<SampleResponse> SampleResponses() {
  std::vector<SampleResponse> all = VllmResponses();
  for (const auto& more : {VllmChoices(), VllmBodies(), LlamaCppResponses(), LlamaCppOwnStreams(),
                           LlamaCppSequences(), LlamaCppBodies(), OllamaResponses(), TgiResponses(),
                           AnthropicResponses(), OpenAiResponses(), UnusualResponses()})
    all.insert(all.end(), more.begin(), more.end());
  return all;
}

EnergyNote SampleNote() {
  return {.request = "r-1",
          .absent_reason = "",
          .energy = Joules(92.4),
          .sigma = Joules(2.1),
          .prefill = Joules(24.9),
          .decode = Joules(67.5),
          .duration = Seconds(1.8),
          .share = 0.083,
          .output_tokens = 211,
          .source = "counter",
          .gpus = {"gpu:0"},
          .carbon_grams = std::nullopt};
}

std::string Varied(std::string body, Random& random) {
  const auto place = [&] { return random.Below(body.size() + 1); };
  switch (random.Below(8)) {
    case 0:
      return Replaced(body, "\n", "\r\n");
    case 1:
      return Replaced(body, "\n", "\r");
    case 2:
      return Replaced(body, "\n\n", "\n\n: ping\n\n\n");
    case 3:
      return "\xEF\xBB\xBF" + body;
    case 4:
      return body.substr(0, place());
    case 5: {
      std::string damaged = body;
      for (int i = 0; i < 3; ++i)
        damaged[random.Below(damaged.size())] = static_cast<char>(random.Below(256));
      return damaged;
    }
    case 6:  // Data in several lines.
      return Replaced(body, ",\"usage\"", "\ndata: ,\"usage\"");
    default:
      return body;
  }
}

}  // namespace zeus::llm::testing
