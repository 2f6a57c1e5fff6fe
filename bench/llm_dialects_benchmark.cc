// Measures what the gateway pays to understand a stream: the time for one token event of each
// dialect, for a request, and for a body. The rate of events is 1 / time.
#include <benchmark/benchmark.h>

#include <string>
#include <string_view>

#include "zeus/base/json.h"
#include "zeus/wire/llm/testing/sample_responses.h"

namespace {

using namespace zeus;
using namespace zeus::llm;

constexpr std::string_view kChatEvent =
    R"(data: {"id":"chatcmpl-7d1e1c1c9b1f4f0fa5d5b8d8a2f0c9d3","object":"chat.completion.chunk",)"
    R"("created":1763430000,"model":"meta-llama/Llama-3.1-8B-Instruct","choices":[{"index":0,)"
    R"("delta":{"content":" energy"},"logprobs":null,"finish_reason":null,"token_ids":null}]})"
    "\n\n";
constexpr std::string_view kOllamaLine =
    R"({"model":"llama3.1","created_at":"2026-11-18T07:36:42.123456789Z","message":{"role":)"
    R"("assistant","content":" energy"},"done":false})"
    "\n";
constexpr std::string_view kAnthropicEvent =
    "event: content_block_delta\n"
    R"(data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":" hi"}})"
    "\n\n";
constexpr std::string_view kTgiEvent =
    R"(data:{"index":1,"token":{"id":2143,"text":" energy","logprob":-0.2,"special":false},)"
    R"("generated_text":null,"details":null})"
    "\n\n";

class NoListener final : public ResponseFilter::Listener {
 public:
  void OnTokens(double tokens) override { benchmark::DoNotOptimize(tokens_ += tokens); }
  std::optional<EnergyNote> OnEnergyWanted(const ResponseFacts& /*facts*/) override {
    return std::nullopt;
  }

 private:
  double tokens_ = 0;
};

struct Stream {
  Dialect dialect = Dialect::kOpenAiChat;
  std::string_view type = "text/event-stream";
  std::string_view event;
  Annotate annotate = Annotate::kAll;
};

// One event in each read, as it is with a stream of 50 tokens/s.
void BM_TokenEvent(benchmark::State& state, const Stream& stream) {
  RequestFacts request;
  request.dialect = stream.dialect;
  request.streamed = true;
  NoListener listener;
  ResponseFilter filter(
      request, {.content_type = stream.type, .content_encoding = "", .annotate = stream.annotate},
      listener);
  std::string out;
  for (auto _ : state) {
    out.clear();
    filter.Feed(stream.event, out);
    benchmark::DoNotOptimize(out.data());
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(stream.event.size()));
}
BENCHMARK_CAPTURE(BM_TokenEvent, chat, Stream{.event = kChatEvent});
BENCHMARK_CAPTURE(BM_TokenEvent, chat_unannotated,
                  Stream{.event = kChatEvent, .annotate = Annotate::kNone});
BENCHMARK_CAPTURE(BM_TokenEvent, ollama,
                  Stream{.dialect = Dialect::kOllama,
                         .type = "application/x-ndjson",
                         .event = kOllamaLine});
BENCHMARK_CAPTURE(BM_TokenEvent, anthropic,
                  Stream{.dialect = Dialect::kAnthropic, .event = kAnthropicEvent});
BENCHMARK_CAPTURE(BM_TokenEvent, tgi, Stream{.dialect = Dialect::kTgi, .event = kTgiEvent});

// An event that arrives in two reads.
void BM_SplitTokenEvent(benchmark::State& state) {
  RequestFacts request;
  request.streamed = true;
  NoListener listener;
  ResponseFilter filter(request, {.content_type = "text/event-stream", .content_encoding = ""},
                        listener);
  std::string out;
  for (auto _ : state) {
    out.clear();
    filter.Feed(kChatEvent.substr(0, 100), out);
    filter.Feed(kChatEvent.substr(100), out);
    benchmark::DoNotOptimize(out.data());
  }
}
BENCHMARK(BM_SplitTokenEvent);

// The same event through a tree, to compare with.
void BM_TokenEventAsTree(benchmark::State& state) {
  const std::string_view json = kChatEvent.substr(6);
  for (auto _ : state) benchmark::DoNotOptimize(ParseJson(json).ok());
}
BENCHMARK(BM_TokenEventAsTree);

// A whole short response, from the filter's construction to the energy.
void BM_Response(benchmark::State& state) {
  const testing::SampleResponse sample = testing::SampleResponses().front();
  const RequestFacts request = sample.Request();
  const std::string body = sample.Body();
  for (auto _ : state) {
    testing::RecordingListener listener;
    ResponseFilter filter(request, {.content_type = sample.content_type, .content_encoding = ""},
                          listener);
    std::string out;
    filter.Feed(body, out);
    filter.Finish(out);
    benchmark::DoNotOptimize(out.data());
  }
}
BENCHMARK(BM_Response);

void BM_Request(benchmark::State& state) {
  const std::string body = R"({"model":"m","stream":true,"messages":[{"role":"user","content":")" +
                           std::string(static_cast<std::size_t>(state.range(0)), 'x') + "\"}]}";
  for (auto _ : state) {
    const auto facts = InspectRequest("POST", "/v1/chat/completions", "application/json", body);
    benchmark::DoNotOptimize(WithUsageAsked(*facts, body));
  }
}
BENCHMARK(BM_Request)->Arg(1000)->Arg(100'000);

void BM_EmbeddingsBody(benchmark::State& state) {
  std::string body = R"({"data":[{"embedding":[0.1)";
  for (std::int64_t i = 1; i < state.range(0); ++i) body += ",-0.0123456789";
  body += R"(]}],"usage":{"prompt_tokens":8}})";
  RequestFacts request;
  request.dialect = Dialect::kEmbeddings;
  for (auto _ : state) {
    NoListener listener;
    ResponseFilter filter(request, {.content_type = "application/json", .content_encoding = ""},
                          listener);
    std::string out;
    filter.Feed(body, out);
    filter.Finish(out);
    benchmark::DoNotOptimize(out.data());
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(body.size()));
}
BENCHMARK(BM_EmbeddingsBody)->Arg(4096);

}  // namespace
