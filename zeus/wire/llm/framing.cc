#include "zeus/wire/llm/framing.h"

#include <utility>

namespace zeus::llm {
namespace {

// A buffer that grew beyond this for one large event is given back.
constexpr std::size_t kKeptBuffer = std::size_t{16} << 10;

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

constexpr double kBytesPerToken = 4;

class Passing final : public Framing {
 public:
  Passing(const RequestFacts& request, const ResponsePlan& plan, ResponseFilter::Listener& listener,
          std::string reason)
      : Framing(request, plan, listener) {
    blind_reason_ = std::move(reason);
  }

  bool changes_length() const override { return false; }

 private:
  void Accept(std::string_view in) override { Emit(in); }
  void Conclude() override {}
};

// Lines of JSON, each an event.
class JsonLines final : public Framing {
 public:
  using Framing::Framing;

 private:
  void Accept(std::string_view in) override;
  void Conclude() override;
  // `line` ends with its line feed, except at the end of the stream.
  void Handle(std::string_view line);

  bool first_ = true;      // No line has been handled yet.
  bool oversize_ = false;  // The line that passes is too large to be examined.
};

void JsonLines::Accept(std::string_view in) {
  while (!in.empty()) {
    const std::size_t feed = in.find('\n');
    const std::string_view part = in.substr(0, feed == in.npos ? in.size() : feed + 1);
    in.remove_prefix(part.size());
    const bool ends = feed != part.npos;
    const std::size_t length = held_.size() + part.size() - (ends ? 1 : 0);
    if (oversize_) {
      Emit(part);
    } else if (length > exchange_.plan().largest_event) {
      held_.append(part);
      (void)exchange_.ReadEvent(std::string_view(held_).substr(0, exchange_.plan().largest_event));
      Emit(held_);
      held_.clear();
      oversize_ = true;
    } else if (!ends) {
      held_.append(part);
    } else if (held_.empty()) {
      Handle(part);
    } else {
      held_.append(part);
      Handle(held_);
      held_.clear();
    }
    if (ends) oversize_ = false;
  }
}

void JsonLines::Handle(std::string_view line) {
  std::string_view json = std::exchange(first_, false) ? WithoutByteOrderMark(line) : line;
  const std::size_t mark = line.size() - json.size();
  const EventShape shape = exchange_.ReadEvent(json);
  if (!shape.final) return Emit(line);
  Emit(line.substr(0, mark));
  EmitWith(json, exchange_.EnergyMembers(shape));
}

void JsonLines::Conclude() {
  if (!held_.empty()) Handle(held_);
}

// One JSON document, which is held until it is complete: the energy belongs to its end, and its
// length to its head.
class JsonBody final : public Framing {
 public:
  using Framing::Framing;

  bool holds_body() const override { return !exchange_.unchanged() && !oversize_; }

 private:
  void Accept(std::string_view in) override;
  void Conclude() override;

  bool oversize_ = false;
};

void JsonBody::Accept(std::string_view in) {
  if (oversize_) return Emit(in);
  held_.append(in);
  if (held_.size() <= exchange_.plan().largest_body) return;
  oversize_ = true;
  blind_reason_ = "the response is too large to be examined";
  Emit(held_);
  held_ = std::string();
}

void JsonBody::Conclude() {
  if (oversize_) return;
  const std::string_view json = WithoutByteOrderMark(held_);
  const EventShape shape = exchange_.ReadBody(json);
  Emit(std::string_view(held_).substr(0, held_.size() - json.size()));
  if (!exchange_.facts().error.empty()) return Emit(json);
  EmitWith(json, exchange_.EnergyMembers(shape));
}

// The head's text is not needed for the body, and does not live as long.
ResponsePlan WithoutHead(ResponsePlan plan) {
  plan.content_type = {};
  plan.content_encoding = {};
  return plan;
}

}  // namespace

Exchange::Exchange(const RequestFacts& request, const ResponsePlan& plan,
                   ResponseFilter::Listener& listener)
    : request_(request), plan_(WithoutHead(plan)), listener_(listener), reader_(request_, facts_) {}

EventShape Exchange::ReadEvent(std::string_view json) {
  EventShape shape = reader_.Read(json);
  if (shape.tokens > 0) {
    facts_.seen_tokens += shape.tokens;
    listener_.OnTokens(shape.tokens);
  }
  return shape;
}

EventShape Exchange::ReadBody(std::string_view json) {
  EventShape shape;
  JsonCursor cursor(json);
  if (cursor.Peek() == '[') {  // llama.cpp: the responses to several prompts.
    (void)cursor.EnterArray();
    while (cursor.NextElement()) {
      const std::size_t start = cursor.position();
      cursor.Skip();
      if (cursor.ok()) (void)reader_.Read(json.substr(start, cursor.position() - start));
    }
    return shape;
  }
  shape = reader_.Read(json);
  if (!facts_.output_tokens && facts_.seen_tokens == 0)
    facts_.seen_tokens = shape.text_bytes / kBytesPerToken;
  return shape;
}

const std::string* Exchange::EnergyText() {
  if (plan_.annotate == Annotate::kNone) return nullptr;
  const std::pair now(facts_.seen_tokens, facts_.output_tokens);
  if (energy_asked_at_ != now) {
    energy_asked_at_ = now;
    const std::optional<EnergyNote> note = listener_.OnEnergyWanted(facts_);
    energy_text_ = note ? std::optional(ToJsonText(*note)) : std::nullopt;
  }
  return energy_text_ ? &*energy_text_ : nullptr;
}

std::vector<Insertion> Exchange::EnergyMembers(const EventShape& shape) {
  std::vector<Insertion> members;
  if (plan_.annotate == Annotate::kNone || !shape.understood) return members;
  const std::string* const energy = EnergyText();
  if (energy == nullptr) return members;
  for (const ObjectSite* site : {&shape.usage, &shape.object}) {
    if (site->found && !site->has_energy)
      members.push_back({site->closing, (site->empty ? "\"energy\":" : ",\"energy\":") + *energy});
  }
  return members;
}

void Framing::Feed(std::string_view in, std::string& out) {
  if (exchange_.unchanged()) out.append(in);
  out_ = exchange_.unchanged() ? nullptr : &out;
  Accept(in);
  if (held_.empty() && held_.capacity() > kKeptBuffer) held_ = std::string();
  out_ = nullptr;
}

void Framing::Finish(std::string& out) {
  out_ = exchange_.unchanged() ? nullptr : &out;
  Conclude();
  held_ = std::string();
  out_ = nullptr;
}

void Framing::Abandon(std::string& out) {
  if (!exchange_.unchanged()) out.append(held_);
  held_ = std::string();
}

void Framing::EmitWith(std::string_view bytes, const std::vector<Insertion>& insertions) {
  std::size_t from = 0;
  for (const Insertion& insertion : insertions) {
    Emit(bytes.substr(from, insertion.at - from));
    Emit(insertion.text);
    from = insertion.at;
  }
  Emit(bytes.substr(from));
}

std::string_view WithoutByteOrderMark(std::string_view text) {
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  return text;
}

std::unique_ptr<Framing> MakePassing(const RequestFacts& request, const ResponsePlan& plan,
                                     ResponseFilter::Listener& listener, std::string reason) {
  return std::make_unique<Passing>(request, plan, listener, std::move(reason));
}

std::unique_ptr<Framing> MakeJsonLines(const RequestFacts& request, const ResponsePlan& plan,
                                       ResponseFilter::Listener& listener) {
  return std::make_unique<JsonLines>(request, plan, listener);
}

std::unique_ptr<Framing> MakeJsonBody(const RequestFacts& request, const ResponsePlan& plan,
                                      ResponseFilter::Listener& listener) {
  return std::make_unique<JsonBody>(request, plan, listener);
}

}  // namespace zeus::llm
