#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "zeus/wire/llm/event_reader.h"
#include "zeus/wire/llm/response_filter.h"

// How a response is cut into events: server-sent events, lines, or one body. Used only by
// ResponseFilter.
namespace zeus::llm {

// Text to be put in front of the byte at an offset.
struct Insertion {
  std::size_t at = 0;
  std::string text;
};

// One response: its request, the facts it has told, and its listener.
class Exchange {
 public:
  Exchange(const RequestFacts& request, const ResponsePlan& plan,
           ResponseFilter::Listener& listener);
  Exchange(const Exchange&) = delete;  // The reader refers to members.
  Exchange& operator=(const Exchange&) = delete;

  const ResponsePlan& plan() const { return plan_; }
  const ResponseFacts& facts() const { return facts_; }
  // Whether every byte passes as it came.
  bool unchanged() const { return plan_.annotate == Annotate::kNone && !plan_.remove_usage_event; }

  // Reads an event of a stream and reports its tokens to the listener.
  EventShape ReadEvent(std::string_view json);
  // Reads a body that is not streamed.
  EventShape ReadBody(std::string_view json);
  // The members to be added to an event or body; none if it was not understood.
  std::vector<Insertion> EnergyMembers(const EventShape& shape);
  // The energy as JSON; nullptr when the client gets none. Valid until the next call.
  const std::string* EnergyText();

 private:
  const RequestFacts request_;
  const ResponsePlan plan_;
  ResponseFilter::Listener& listener_;
  ResponseFacts facts_{};
  EventReader reader_;
  std::optional<std::string> energy_text_{};
  // Tokens seen and counted when the listener was asked last.
  std::optional<std::pair<double, std::optional<double>>> energy_asked_at_{};
};

class Framing {
 public:
  Framing(const RequestFacts& request, const ResponsePlan& plan, ResponseFilter::Listener& listener)
      : exchange_(request, plan, listener) {}
  virtual ~Framing() = default;

  void Feed(std::string_view in, std::string& out);
  void Finish(std::string& out);
  void Abandon(std::string& out);

  const ResponseFacts& facts() const { return exchange_.facts(); }
  virtual bool changes_length() const { return !exchange_.unchanged(); }
  virtual bool holds_body() const { return false; }
  std::string_view blind_reason() const { return blind_reason_; }

 protected:
  // `in` has arrived. Whatever leaves is given to Emit().
  virtual void Accept(std::string_view in) = 0;
  // The server's body is complete.
  virtual void Conclude() = 0;

  // Does nothing when the bytes pass as they come: then they have left already.
  void Emit(std::string_view bytes) {
    if (out_ != nullptr) out_->append(bytes);
  }
  void EmitWith(std::string_view bytes, const std::vector<Insertion>& insertions);

  Exchange exchange_;
  std::string held_{};  // Bytes that are not handled yet.
  std::string blind_reason_{};

 private:
  std::string* out_ = nullptr;
};

// Everything passes; the reason says why nothing can be seen in it.
std::unique_ptr<Framing> MakePassing(const RequestFacts& request, const ResponsePlan& plan,
                                     ResponseFilter::Listener& listener, std::string reason);
std::unique_ptr<Framing> MakeEventStream(const RequestFacts& request, const ResponsePlan& plan,
                                         ResponseFilter::Listener& listener);
std::unique_ptr<Framing> MakeJsonLines(const RequestFacts& request, const ResponsePlan& plan,
                                       ResponseFilter::Listener& listener);
std::unique_ptr<Framing> MakeJsonBody(const RequestFacts& request, const ResponsePlan& plan,
                                      ResponseFilter::Listener& listener);

// The text without the byte order mark that a stream or a body may begin with.
std::string_view WithoutByteOrderMark(std::string_view text);

}  // namespace zeus::llm
