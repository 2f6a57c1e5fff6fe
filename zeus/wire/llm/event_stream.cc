// Server-sent events, as the HTML standard defines them: lines end with LF, CR or CRLF, a blank
// line ends an event, a line that begins with a colon is a comment, and the lines of an event's
// data are joined by line feeds.
//
// An event is held until its blank line has come, since no client can use it before that. Comments
// and blank lines between events leave at once: servers send them to keep connections open.
#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "zeus/wire/llm/framing.h"

namespace zeus::llm {
namespace {

constexpr auto kNone = std::string_view::npos;

// The offset of the next LF or CR from an offset on, or kNone.
std::size_t FindLineEnd(std::string_view text, std::size_t from) {
  const std::size_t feed = text.find('\n', from);
  const std::size_t carriage = text.substr(0, feed).find('\r', from);
  return carriage != kNone ? carriage : feed;
}

// The offset behind the line end at an offset.
std::size_t AfterLineEnd(std::string_view text, std::size_t end) {
  const bool both = text[end] == '\r' && end + 1 < text.size() && text[end + 1] == '\n';
  return end + (both ? 2 : 1);
}

// The data of one event, and where it stands in the event's text.
class EventData {
 public:
  explicit EventData(std::string_view event);

  bool any() const { return any_; }
  std::string_view text() const { return pieces_.empty() ? only_ : std::string_view(joined_); }
  // The offset in the event of a byte of the text.
  std::size_t OffsetInEvent(std::size_t in_text) const;

 private:
  struct Piece {
    std::size_t in_text;
    std::size_t in_event;
  };
  void Add(std::string_view value, std::size_t in_event);

  bool any_ = false;
  std::string_view only_{};  // The data when it is one line, as it nearly always is.
  std::size_t only_in_event_ = 0;
  std::string joined_{};
  std::vector<Piece> pieces_{};  // The lines when there are several.
};

EventData::EventData(std::string_view event) {
  std::size_t line = 0;
  while (line < event.size()) {
    const std::size_t end = std::min(FindLineEnd(event, line), event.size());
    const std::string_view field = event.substr(line, end - line);
    if (field.starts_with("data:")) {
      const std::size_t value = field.size() > 5 && field[5] == ' ' ? 6 : 5;
      Add(field.substr(value), line + value);
    } else if (field == "data") {
      Add("", end);
    }
    line = end < event.size() ? AfterLineEnd(event, end) : end;
  }
}

void EventData::Add(std::string_view value, std::size_t in_event) {
  if (!std::exchange(any_, true)) {
    only_ = value;
    only_in_event_ = in_event;
    return;
  }
  if (pieces_.empty()) {
    joined_ = only_;
    pieces_.push_back({0, only_in_event_});
  }
  joined_ += '\n';
  pieces_.push_back({joined_.size(), in_event});
  joined_ += value;
}

std::size_t EventData::OffsetInEvent(std::size_t in_text) const {
  if (pieces_.empty()) return only_in_event_ + in_text;
  const auto after = std::upper_bound(
      pieces_.begin(), pieces_.end(), in_text,
      [](std::size_t offset, const Piece& piece) { return offset < piece.in_text; });
  const Piece& piece = *std::prev(after);
  return piece.in_event + (in_text - piece.in_text);
}

bool IsDone(std::string_view data) {
  const std::size_t start = data.find_first_not_of(' ');
  if (start == kNone || data[start] != '[') return false;
  return data.substr(start, data.find_last_not_of(' ') + 1 - start) == "[DONE]";
}

class EventStream final : public Framing {
 public:
  using Framing::Framing;

 private:
  // How bytes leave that belong to no event that is held.
  enum class Passing {
    kNothing,
    kComment,  // A comment whose line has not ended.
    kEvent,    // An event that is too large to be examined.
  };
  enum class Place { kInStream, kAtEnd };

  void Accept(std::string_view in) override;
  void Conclude() override;

  // Handles the complete lines of `bytes`, which begin with those that were held. Returns how many
  // bytes need not be held any longer.
  std::size_t Split(std::string_view bytes);
  std::size_t SkipLineFeed(std::string_view bytes, std::size_t begin);
  std::size_t EndLine(std::string_view bytes, std::size_t begin, std::size_t end);
  std::size_t ReleaseRest(std::string_view bytes, std::size_t begin);
  void HandleEvent(std::string_view event, Place place);
  void EmitComment();

  // Offsets in the held bytes and those that follow them.
  std::size_t line_ = 0;  // The start of the line that has not ended.
  std::size_t scan_ = 0;  // No line ends before this.

  Passing passing_ = Passing::kNothing;
  bool line_began_ = false;    // Bytes of the line that has not ended have passed.
  bool after_return_ = false;  // The last line ended with CR; an LF that follows belongs to it.
  bool removed_ = false;       // The last line ended an event that was removed.
  bool first_ = true;          // No event has been handled yet.
  bool commented_ = false;
  bool any_ = false;  // Bytes have arrived.
  std::string line_end_ = "\n";
};

void EventStream::Accept(std::string_view in) {
  any_ = any_ || !in.empty();
  if (held_.empty()) {
    const std::size_t used = Split(in);
    held_.assign(in.substr(used));
  } else {
    held_.append(in);
    held_.erase(0, Split(held_));
  }
}

std::size_t EventStream::Split(std::string_view bytes) {
  std::size_t begin = 0;  // Where the bytes begin that have not left.
  begin = SkipLineFeed(bytes, begin);
  while (true) {
    const std::size_t end = FindLineEnd(bytes, scan_);
    if (end == kNone) break;
    begin = EndLine(bytes, begin, end);
  }
  scan_ = bytes.size();
  begin = ReleaseRest(bytes, begin);
  line_ -= std::min(line_, begin);
  scan_ -= begin;
  return begin;
}

// A CR at the end of the last bytes ended a line at once; its LF may have come now.
std::size_t EventStream::SkipLineFeed(std::string_view bytes, std::size_t begin) {
  if (!after_return_ || line_ >= bytes.size()) return begin;
  after_return_ = false;
  if (bytes[line_] != '\n') return begin;
  const bool between_events = line_ == begin;
  ++line_;
  scan_ = std::max(scan_, line_);
  if (!between_events) return begin;
  if (!removed_) Emit("\n");
  return line_;
}

// Handles the line that ends at `end`. Returns where the bytes begin that have not left.
std::size_t EventStream::EndLine(std::string_view bytes, std::size_t begin, std::size_t end) {
  const std::size_t next = AfterLineEnd(bytes, end);
  after_return_ = bytes[end] == '\r' && next == bytes.size() && next == end + 1;
  const bool blank = end == line_ && !line_began_;
  const std::size_t length = line_ - begin;  // Bytes of the event in its lines before this.
  const bool opens = length == 0;
  const bool comment = opens && !blank && passing_ == Passing::kNothing && bytes[line_] == ':';
  line_ = scan_ = next;
  line_began_ = false;
  removed_ = false;
  if (passing_ == Passing::kNothing && !comment && !(blank && opens)) {
    if (!blank) return begin;
    if (length <= exchange_.plan().largest_event) {
      HandleEvent(bytes.substr(begin, next - begin), Place::kInStream);
      return next;
    }
    (void)exchange_.ReadEvent(
        EventData(bytes.substr(begin, exchange_.plan().largest_event)).text());
  }
  if (blank || passing_ == Passing::kComment) passing_ = Passing::kNothing;
  Emit(bytes.substr(begin, next - begin));
  return next;
}

// Bytes of a line that has not ended leave when they need no change.
std::size_t EventStream::ReleaseRest(std::string_view bytes, std::size_t begin) {
  if (begin == bytes.size()) return begin;
  const std::size_t largest = exchange_.plan().largest_event;
  if (passing_ == Passing::kNothing) {
    if (line_ == begin && bytes[begin] == ':') {
      passing_ = Passing::kComment;
    } else if (bytes.size() - begin > largest) {
      (void)exchange_.ReadEvent(EventData(bytes.substr(begin, largest)).text());
      passing_ = Passing::kEvent;
    } else {
      return begin;
    }
  }
  line_began_ = line_began_ || line_ < bytes.size();
  Emit(bytes.substr(begin));
  return bytes.size();
}

void EventStream::HandleEvent(std::string_view event, Place place) {
  const std::size_t mark =
      std::exchange(first_, false) ? event.size() - WithoutByteOrderMark(event).size() : 0;
  const std::string_view marked = event.substr(mark);
  if (const std::size_t end = FindLineEnd(event, 0); end != kNone && place == Place::kInStream)
    line_end_ = event.substr(end, AfterLineEnd(event, end) - end);
  const EventData data(marked);
  const bool done = data.any() && IsDone(data.text());
  EventShape shape;
  if (data.any() && !done) shape = exchange_.ReadEvent(data.text());
  if (done || shape.ends_stream || place == Place::kAtEnd) EmitComment();
  removed_ = shape.understood && shape.only_usage && exchange_.plan().remove_usage_event;
  if (removed_) return;
  if (!shape.final) return Emit(event);
  std::vector<Insertion> members = exchange_.EnergyMembers(shape);
  for (Insertion& member : members) member.at = mark + data.OffsetInEvent(member.at);
  EmitWith(event, members);
}

// A comment is an event of its own, so that clients that look at whole events skip it as well.
void EventStream::EmitComment() {
  if (std::exchange(commented_, true)) return;
  if (const std::string* energy = exchange_.EnergyText())
    Emit(": energy " + *energy + line_end_ + line_end_);
}

void EventStream::Conclude() {
  if (!held_.empty()) return HandleEvent(held_, Place::kAtEnd);
  if (!any_ || commented_ || passing_ == Passing::kEvent) return;
  if (line_began_ && exchange_.EnergyText() != nullptr) Emit(line_end_);
  EmitComment();
}

}  // namespace

std::unique_ptr<Framing> MakeEventStream(const RequestFacts& request, const ResponsePlan& plan,
                                         ResponseFilter::Listener& listener) {
  return std::make_unique<EventStream>(request, plan, listener);
}

}  // namespace zeus::llm
