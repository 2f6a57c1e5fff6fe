#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "zeus/wire/llm/energy_note.h"
#include "zeus/wire/llm/request.h"
#include "zeus/wire/llm/response_facts.h"

// Follows one response while it passes through a proxy: counts its tokens and puts the energy into
// it. Streams of server-sent events, lines of JSON and JSON bodies are understood; everything else
// passes untouched, and so does every event that is not understood.
//
// The energy appears
//   - in streams of events as a comment, ": energy {...}", before the event that ends the stream
//     ("[DONE]", message_stop) or at its end;
//   - as `usage.energy` and `energy` in the event or the body that has the final usage;
//   - as `energy` in the last line of Ollama's streams, in the last event of TGI and llama.cpp,
//     and in bodies without usage.
// It is inserted into the text: all other bytes stay as they were.
namespace zeus::llm {

class Framing;

enum class Annotate {
  kNone,  // The client gets the bytes of the server.
  kAll,
};

// The parts of a response's head, and the proxy's choices, that decide how its body is handled.
struct ResponsePlan {
  int status = 200;
  std::string_view content_type;
  std::string_view content_encoding;
  Annotate annotate = Annotate::kAll;
  // The proxy asked for usage and the client did not: the event that has only usage is removed.
  bool remove_usage_event = false;
  // A larger event or line passes without being examined. (The last line of Ollama repeats the
  // whole context, the last event of llama.cpp the prompt.)
  std::size_t largest_event = std::size_t{4} << 20;
  // A body that is not streamed and larger passes without being examined.
  std::size_t largest_body = std::size_t{32} << 20;
};

// One owner; no threads. The request's facts are copied, the listener must outlive the filter.
class ResponseFilter {
 public:
  class Listener {
   public:
    virtual ~Listener() = default;
    // So many output tokens arrived with the bytes that are being fed, in all sequences together.
    // Called for each event of a stream, before its bytes leave.
    virtual void OnTokens(double tokens) = 0;
    // The place for the energy has been reached; `facts` holds what is known of the response.
    // Returns nullopt to leave the response as it is. Called again only after more tokens or
    // other counts.
    virtual std::optional<EnergyNote> OnEnergyWanted(const ResponseFacts& facts) = 0;
  };

  ResponseFilter(const RequestFacts& request, const ResponsePlan& plan, Listener& listener);
  ~ResponseFilter();
  ResponseFilter(const ResponseFilter&) = delete;
  ResponseFilter& operator=(const ResponseFilter&) = delete;

  // Appends to `out` the bytes that the client gets for `in`. Bytes leave as soon as they came,
  // except for an incomplete event (which no client can use yet), an incomplete line, and a body
  // that is not streamed, when those may need a change.
  void Feed(std::string_view in, std::string& out);
  // The server's body ended as it should: appends the bytes that were held back, and the energy if
  // it still has to come.
  void Finish(std::string& out);
  // The server's body ended too early: appends the bytes that were held back, unchanged.
  void Abandon(std::string& out);

  const ResponseFacts& facts() const;
  // Whether the length of the body may change, so that the server's Content-Length cannot be used.
  bool changes_length() const;
  // Whether Feed() holds everything back until Finish(), as it does for bodies that are not
  // streamed: then the head of the response can wait for the energy as well.
  bool holds_body() const;
  // Why tokens and energy cannot be seen in this response, as a clause: "the response is compressed
  // (gzip)"; empty when they can. It may be set while the body passes.
  std::string_view blind_reason() const;

 private:
  std::unique_ptr<Framing> framing_;  // How events are told apart in this response.
};

}  // namespace zeus::llm
