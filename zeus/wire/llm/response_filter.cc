#include "zeus/wire/llm/response_filter.h"

#include <fmt/format.h>

#include "zeus/base/text.h"
#include "zeus/wire/llm/framing.h"

namespace zeus::llm {
namespace {

// "text/event-stream" for "Text/Event-Stream; charset=utf-8".
std::string MediaType(std::string_view content_type) {
  return LowerCase(Trim(content_type.substr(0, content_type.find(';'))));
}

bool HasJsonLines(const RequestFacts& request) {
  return request.dialect == Dialect::kOllama && request.streamed;
}

std::unique_ptr<Framing> MakeFraming(const RequestFacts& request, const ResponsePlan& plan,
                                     ResponseFilter::Listener& listener) {
  if (plan.status < 200 || plan.status > 299)
    return MakePassing(request, plan, listener,
                       fmt::format("the server answered with status {}", plan.status));
  const std::string encoding = LowerCase(Trim(plan.content_encoding));
  if (!encoding.empty() && encoding != "identity")
    return MakePassing(request, plan, listener,
                       fmt::format("the response is compressed ({})", Printable(encoding)));
  const std::string type = MediaType(plan.content_type);
  if (type == "text/event-stream") return MakeEventStream(request, plan, listener);
  if (type == "application/x-ndjson" || type == "application/ndjson" ||
      type == "application/jsonl" || type == "application/x-jsonlines")
    return MakeJsonLines(request, plan, listener);
  if (type == "application/json" || type.empty()) {
    if (HasJsonLines(request)) return MakeJsonLines(request, plan, listener);
    if (type.empty() && request.streamed) return MakeEventStream(request, plan, listener);
    return MakeJsonBody(request, plan, listener);
  }
  return MakePassing(
      request, plan, listener,
      fmt::format("the response is {}, neither JSON nor a stream of events", Printable(type)));
}

}  // namespace

ResponseFilter::ResponseFilter(const RequestFacts& request, const ResponsePlan& plan,
                               Listener& listener)
    : framing_(MakeFraming(request, plan, listener)) {}

ResponseFilter::~ResponseFilter() = default;

void ResponseFilter::Feed(std::string_view in, std::string& out) { framing_->Feed(in, out); }
void ResponseFilter::Finish(std::string& out) { framing_->Finish(out); }
void ResponseFilter::Abandon(std::string& out) { framing_->Abandon(out); }

const ResponseFacts& ResponseFilter::facts() const { return framing_->facts(); }
bool ResponseFilter::changes_length() const { return framing_->changes_length(); }
bool ResponseFilter::holds_body() const { return framing_->holds_body(); }
std::string_view ResponseFilter::blind_reason() const { return framing_->blind_reason(); }

}  // namespace zeus::llm
