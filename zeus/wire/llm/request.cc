#include "zeus/wire/llm/request.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

#include "zeus/base/text.h"
#include "zeus/wire/llm/json_cursor.h"

namespace zeus::llm {
namespace {

constexpr double kBytesPerTokenId = 4;
constexpr int kDeepestPrompt = 16;
constexpr double kMostSequences = 4096;

struct Route {
  std::string_view path;
  Dialect dialect;
};

// The first that the path ends with counts. Servers and proxies differ in what they put before it.
constexpr std::array kRoutes{
    Route{"/chat/completions", Dialect::kOpenAiChat},
    Route{"/completions", Dialect::kOpenAiText},
    Route{"/api/chat", Dialect::kOllama},
    Route{"/api/generate", Dialect::kOllama},
    Route{"/completion", Dialect::kLlamaCpp},
    Route{"/infill", Dialect::kLlamaCpp},
    Route{"/generate_stream", Dialect::kTgi},
    Route{"/generate", Dialect::kTgi},
    Route{"/v1/messages", Dialect::kAnthropic},
    Route{"/v1/responses", Dialect::kOpenAiResponses},
    Route{"/embeddings", Dialect::kEmbeddings},
    Route{"/embedding", Dialect::kEmbeddings},
    Route{"/embed", Dialect::kEmbeddings},
    Route{"/rerank", Dialect::kEmbeddings},
    Route{"/reranking", Dialect::kEmbeddings},
};

std::string_view TargetPath(std::string_view target) {
  std::string_view path = target.substr(0, target.find_first_of("?#"));
  if (path.size() > 1 && path.ends_with('/')) path.remove_suffix(1);
  return path;
}

std::optional<Dialect> DialectOfPath(std::string_view path) {
  const auto* const route = std::find_if(kRoutes.begin(), kRoutes.end(), [&](const Route& known) {
    return path.ends_with(known.path);
  });
  if (route == kRoutes.end()) return std::nullopt;
  return route->dialect;
}

// The text of a prompt: a string, ids of tokens, parts of a message, messages, or lists of those.
// Pictures and other parts are left out.
double ReadTextBytes(JsonCursor& cursor, int depth = 0) {
  double bytes = 0;
  const char type = cursor.Peek();
  if (depth > kDeepestPrompt) {
    cursor.Skip();
  } else if (type == '"') {
    bytes = static_cast<double>(cursor.ReadString().value_or("").size());
  } else if (type == '[') {
    (void)cursor.EnterArray();
    while (cursor.NextElement()) bytes += ReadTextBytes(cursor, depth + 1);
  } else if (type == '{') {
    std::string_view key;
    (void)cursor.EnterObject();
    while (cursor.NextMember(key)) {
      if (key == "content" || key == "text" || key == "prompt_string" || key == "thinking" ||
          key == "reasoning_content" || key == "tool_calls" || key == "function" ||
          key == "arguments")
        bytes += ReadTextBytes(cursor, depth + 1);
      else
        cursor.Skip();
    }
  } else {
    bytes = cursor.ReadNumber() ? kBytesPerTokenId : 0;
  }
  return bytes;
}

// The number of prompts in a value: a list of strings or lists is several, a list that has ids of
// tokens is one.
double CountPrompts(JsonCursor cursor) {
  if (cursor.Peek() != '[') return 1;
  double prompts = 0;
  (void)cursor.EnterArray();
  while (cursor.NextElement()) {
    const char type = cursor.Peek();
    if (type != '"' && type != '[' && type != '{') return 1;
    cursor.Skip();
    ++prompts;
  }
  return std::max(prompts, 1.0);
}

// Collects the fields of a request's body.
class RequestReader {
 public:
  explicit RequestReader(Dialect dialect) {
    facts_.dialect = dialect;
    facts_.streamed = dialect == Dialect::kOllama;  // Its default.
  }

  // Returns nullopt when the body is no request of this dialect.
  std::optional<RequestFacts> Read(std::string_view body);

 private:
  void ReadMember(std::string_view key, JsonCursor& cursor);
  bool ReadPromptMember(std::string_view key, JsonCursor& cursor);
  void ReadStreamOptions(JsonCursor& cursor);
  void ReadOptions(JsonCursor& cursor);
  void ReadChoices(JsonCursor& cursor);
  void ReadLimit(JsonCursor& cursor);

  RequestFacts facts_{};
  bool has_prompt_ = false;
  double prompts_ = 1;
  double choices_ = 1;
};

std::optional<RequestFacts> RequestReader::Read(std::string_view body) {
  JsonCursor cursor(body);
  if (cursor.Peek() != '{' || !cursor.EnterObject()) return std::nullopt;
  std::string_view key;
  while (cursor.NextMember(key)) ReadMember(key, cursor);
  if (!cursor.ok() || !cursor.AtEnd() || !has_prompt_) return std::nullopt;
  if (facts_.dialect == Dialect::kEmbeddings) facts_.streamed = false;
  facts_.prompts = static_cast<unsigned>(std::clamp(prompts_, 1.0, kMostSequences));
  facts_.sequences = static_cast<unsigned>(std::clamp(prompts_ * choices_, 1.0, kMostSequences));
  return facts_;
}

void RequestReader::ReadMember(std::string_view key, JsonCursor& cursor) {
  if (ReadPromptMember(key, cursor)) return;
  if (key == "model") {
    if (const auto model = cursor.ReadString()) facts_.model = Unescaped(*model);
  } else if (key == "stream") {
    if (cursor.Peek() == 't' || cursor.Peek() == 'f')
      facts_.streamed = cursor.ReadTrue();
    else
      cursor.Skip();
  } else if (key == "stream_options") {
    ReadStreamOptions(cursor);
  } else if (key == "n" || key == "best_of" || key == "n_cmpl") {
    ReadChoices(cursor);
  } else if (key == "max_tokens" || key == "max_completion_tokens" || key == "n_predict" ||
             key == "max_output_tokens") {
    ReadLimit(cursor);
  } else if (key == "parameters" || key == "options") {
    ReadOptions(cursor);
  } else {
    cursor.Skip();
  }
}

void RequestReader::ReadStreamOptions(JsonCursor& cursor) {
  if (!cursor.EnterObject()) return;
  std::string_view key;
  while (cursor.NextMember(key)) {
    if (key == "include_usage")
      facts_.usage_wanted = cursor.ReadTrue();
    else
      cursor.Skip();
  }
}

bool RequestReader::ReadPromptMember(std::string_view key, JsonCursor& cursor) {
  if (key == "tools" || key == "functions") {  // Their descriptions are part of the prompt.
    (void)cursor.Peek();
    const std::size_t start = cursor.position();
    cursor.Skip();
    if (cursor.ok()) facts_.prompt_bytes += static_cast<double>(cursor.position() - start);
    return true;
  }
  const bool prompt = key == "messages" || key == "prompt" || key == "input" || key == "inputs" ||
                      key == "query" || key == "documents" || key == "content" ||
                      key == "input_prefix" || key == "texts";
  if (!prompt && key != "system" && key != "suffix" && key != "input_suffix" && key != "context" &&
      key != "instructions")
    return false;
  has_prompt_ = has_prompt_ || (prompt && cursor.Peek() != 'n');
  if (key == "prompt" || (facts_.dialect == Dialect::kEmbeddings &&
                          (key == "input" || key == "inputs" || key == "documents")))
    prompts_ = CountPrompts(cursor);
  facts_.prompt_bytes += ReadTextBytes(cursor);
  return true;
}

// TGI's `parameters` and Ollama's `options`.
void RequestReader::ReadOptions(JsonCursor& cursor) {
  if (!cursor.EnterObject()) return;
  std::string_view key;
  while (cursor.NextMember(key)) {
    if (key == "best_of")
      ReadChoices(cursor);
    else if (key == "max_new_tokens" || key == "num_predict")
      ReadLimit(cursor);
    else
      cursor.Skip();
  }
}

void RequestReader::ReadChoices(JsonCursor& cursor) {
  const double number = cursor.ReadNumber().value_or(1);
  if (number >= 1) choices_ = std::max(choices_, std::floor(number));
}

void RequestReader::ReadLimit(JsonCursor& cursor) {
  const std::optional<double> limit = cursor.ReadNumber();
  if (limit && *limit >= 0) facts_.most_output_tokens = limit;
}

// A value in a text.
struct Span {
  std::size_t begin = 0;
  std::size_t end = 0;
};

Span SkipAndMeasure(JsonCursor& cursor) {
  (void)cursor.Peek();
  const std::size_t begin = cursor.position();
  cursor.Skip();
  return {begin, cursor.position()};
}

// A member of an object, and where a new one can be added to it.
struct FoundMember {
  std::optional<Span> value{};  // nullopt when the object has no member of that name.
  bool repeated = false;        // It has several.
  bool any = false;             // It has members at all.
  std::size_t closing = 0;      // The offset of its closing bracket.
};

FoundMember FindMember(std::string_view text, std::string_view name) {
  FoundMember found;
  JsonCursor cursor(text);
  if (!cursor.EnterObject()) return found;
  std::string_view key;
  while (cursor.NextMember(key)) {
    found.any = true;
    const Span value = SkipAndMeasure(cursor);
    if (key != name) continue;
    found.repeated = found.repeated || found.value.has_value();
    found.value = value;
  }
  found.closing = cursor.position() - 1;
  return found;
}

std::string Replaced(std::string_view text, Span span, std::string_view by) {
  std::string result;
  result.reserve(text.size() + by.size());
  result.append(text.substr(0, span.begin));
  result.append(by);
  result.append(text.substr(span.end));
  return result;
}

// Puts a member into an object, in place of the one of that name if there is one.
std::string WithMember(std::string_view object, const FoundMember& found, std::string_view name,
                       std::string_view value) {
  if (found.value) return Replaced(object, *found.value, value);
  std::string member = found.any ? ",\"" : "\"";
  member.append(name).append("\":").append(value);
  return Replaced(object, {found.closing, found.closing}, member);
}

}  // namespace

std::string_view ToText(Dialect dialect) {
  switch (dialect) {
    case Dialect::kOpenAiChat:
      return "openai-chat";
    case Dialect::kOpenAiText:
      return "openai-text";
    case Dialect::kOllama:
      return "ollama";
    case Dialect::kLlamaCpp:
      return "llama.cpp";
    case Dialect::kTgi:
      return "tgi";
    case Dialect::kAnthropic:
      return "anthropic";
    case Dialect::kEmbeddings:
      return "embeddings";
    case Dialect::kOpenAiResponses:
      return "openai-responses";
  }
  return "unknown";
}

std::optional<RequestFacts> InspectRequest(std::string_view method, std::string_view target,
                                           std::string_view content_type, std::string_view body) {
  if (method != "POST" || LowerCase(Trim(content_type)).starts_with("multipart/"))
    return std::nullopt;
  const std::string_view path = TargetPath(target);
  const std::optional<Dialect> dialect = DialectOfPath(path);
  if (!dialect) return std::nullopt;
  std::optional<RequestFacts> facts = RequestReader(*dialect).Read(body);
  if (facts && *dialect == Dialect::kTgi) facts->streamed = path.ends_with("_stream");
  return facts;
}

std::optional<std::string> WithUsageAsked(const RequestFacts& facts, std::string_view body) {
  const bool openai =
      facts.dialect == Dialect::kOpenAiChat || facts.dialect == Dialect::kOpenAiText;
  if (!openai || !facts.streamed || facts.usage_wanted) return std::nullopt;
  const FoundMember options = FindMember(body, "stream_options");
  if (options.repeated) return std::nullopt;
  std::string asked = R"({"include_usage":true})";
  if (options.value) {
    const std::string_view old =
        body.substr(options.value->begin, options.value->end - options.value->begin);
    if (old.starts_with('{')) {
      const FoundMember include = FindMember(old, "include_usage");
      if (include.repeated) return std::nullopt;
      asked = WithMember(old, include, "include_usage", "true");
    } else if (old != "null") {
      return std::nullopt;
    }
  }
  return WithMember(body, options, "stream_options", asked);
}

}  // namespace zeus::llm
