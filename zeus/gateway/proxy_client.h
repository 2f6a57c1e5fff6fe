#pragma once

// A part of proxy.cc.

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "zeus/base/log.h"
#include "zeus/gateway/proxy_fetch.h"
#include "zeus/gateway/proxy_upstream.h"

namespace zeus::gateway {

// A client's connection: reads requests one after the other and sends their responses. One thread.
class ClientConnection final : public ResponseSink,
                               public std::enable_shared_from_this<ClientConnection> {
 public:
  // `on_closed` is called once, at the end.
  ClientConnection(ProxyContext& context, Socket socket, std::string remote,
                   std::function<void(ClientConnection&)> on_closed)
      : context_(context),
        stream_(std::move(socket)),
        remote_(std::move(remote)),
        on_closed_(std::move(on_closed)) {}
  ~ClientConnection() override { EndExchange(ExchangeEnd::kFailed, "the gateway ended"); }
  ClientConnection(const ClientConnection&) = delete;
  ClientConnection& operator=(const ClientConnection&) = delete;

  void Start(SSL_CTX* tls) {
    if (tls != nullptr && !stream_.AcceptTls(*tls)) {
      Close();
      return;
    }
    deadline_ = context_.clock.Now() + context_.limits.header_time;
    AwaitReadable();
  }

  void CheckTime(TimePoint now);
  // Idle connections end now, others after the response that they are getting.
  void Drain() {
    if (state_ == State::kHead && input_.empty() && out_.empty()) Close();
    if (state_ == State::kLive) Close();
  }
  // Ends the connection at once.
  void End() { ClientLeft(); }
  bool is_live() const { return state_ == State::kLive; }
  // Sends a piece of the stream of live figures, unless the client is too slow to read it.
  void SendLive(std::string_view text) {
    if (state_ != State::kLive || unsent() > kHighWater) return;
    AppendChunk(text, out_);
    Flush();
  }

  void OnInterimHead(ResponseHead& head) override;
  void OnResponseHead(ResponseHead& head, const BodyFraming& framing) override;
  void OnResponseBody(std::string_view bytes) override;
  void OnResponsePiece() override { Flush(); }
  void OnResponseEnd(const HeaderFields& trailers) override;
  void OnRequestSent() override;
  void OnCallFailed(int status, const std::string& why) override;

 private:
  enum class State {
    kHead,    // A head is awaited, or has partly arrived.
    kBody,    // A body is gathered.
    kWaits,   // An upstream works on the request.
    kLive,    // The client gets live figures.
    kFlush,   // The last response is being sent; then the connection is closed.
    kLinger,  // Bytes that still come are thrown away, so that the response is not lost.
    kClosed,
  };
  // How the present response's body is delimited for the client.
  enum class Delimiter { kAsUpstream, kChunked, kClose };

  // Bytes of a response that may wait for a slow client before the upstream is not read any more.
  static constexpr std::size_t kHighWater = 32 * 1024;
  static constexpr std::size_t kKeptCapacity = 4 * 1024;
  static constexpr Seconds kLingerTime{2};

  std::size_t unsent() const { return out_.size() - out_sent_; }

  void AwaitReadable();
  void OnReadable();
  void AcceptInput(std::string_view bytes);
  void Advance();
  bool AcceptHead();
  bool Admit();
  void AcceptBody();
  void StreamBody();
  void PassBody();
  void Dispatch();
  void BeginForward(Forward& forward);
  void ForwardToEvery();
  void BeginLive();
  void SendAnswer(const http::Answer& answer);
  void Refuse(int status, const std::string& why);
  void WriteHead(ResponseHead& head, Delimiter delimiter);
  void AppendBody(std::string_view bytes);
  void EndResponse();
  void EndExchange(ExchangeEnd end, const std::string& reason);
  void ClientLeft();
  void Flush();
  void AwaitWritable();
  void OnFlushed();
  void Close();
  // Calls a function of the exchange. When it throws, the bytes that it held back are appended to
  // the scratch buffer, and the response passes untouched from then on.
  template <class Function>
  void Guarded(Function&& function);

  ProxyContext& context_;
  Stream stream_;
  const std::string remote_;
  std::function<void(ClientConnection&)> on_closed_;
  State state_ = State::kHead;
  TimePoint deadline_{};
  std::string input_{};       // Bytes that came and were not used yet.
  std::size_t searched_ = 0;  // Bytes of input_ without the end of a head.
  std::string out_{};         // Bytes for the client.
  std::size_t out_sent_ = 0;
  ProxyRequest request_{};
  BodyDecoder body_{};
  std::uint64_t body_bytes_ = 0;
  std::optional<http::MemoryBudget::Share> share_{};
  std::shared_ptr<UpstreamCall> call_{};
  std::unique_ptr<Exchange> exchange_{};
  std::optional<ResponseHead> held_head_{};  // Waits for the end of the body.
  BodyFraming framing_{};                    // That of the upstream's response.
  Delimiter delimiter_ = Delimiter::kAsUpstream;
  int status_ = 0;  // That of the present response, 0 before its head was sent.
  bool in_exchange_ = false;
  bool keep_ = false;          // The connection serves another request after this one.
  bool body_streams_ = false;  // The rest of the request's body is passed on as it comes.
  bool passing_body_ = false;  // StreamBody() runs.
  bool accepts_trailers_ = false;
  bool awaiting_readable_ = false;
  bool awaiting_writable_ = false;
};

inline void ClientConnection::AwaitReadable() {
  if (awaiting_readable_ || state_ == State::kClosed) return;
  awaiting_readable_ = true;
  const auto proceed = [self = shared_from_this()](const error_code& failure) {
    self->awaiting_readable_ = false;
    if (!failure && self->state_ != State::kClosed) self->OnReadable();
  };
  if (stream_.has_decrypted_bytes()) {
    asio::post(context_.io, [proceed] { proceed({}); });
  } else {
    stream_.WaitReadable(proceed);
  }
}

inline void ClientConnection::OnReadable() {
  std::size_t size = 0;
  switch (stream_.Read(context_.buffer, size)) {
    case Io::kDone:
      AcceptInput({context_.buffer.data(), size});
      break;
    case Io::kWouldBlock:
      AwaitReadable();
      break;
    case Io::kEnd:
    case Io::kFailed:
      ClientLeft();
      break;
  }
}

inline void ClientConnection::AcceptInput(std::string_view bytes) {
  if (state_ == State::kLinger || state_ == State::kLive || state_ == State::kFlush) {
    AwaitReadable();  // Nothing that a client says now matters; only that it leaves.
    return;
  }
  if (state_ == State::kHead && input_.empty())
    deadline_ = context_.clock.Now() + context_.limits.header_time;
  input_.append(bytes);
  Advance();
  if (state_ == State::kClosed) return;
  // A client that sends more requests before it got an answer is not read without bound.
  const bool upstream_is_slow = body_streams_ && call_ && call_->unsent() > kHighWater;
  const bool too_much = state_ == State::kWaits && input_.size() > context_.limits.head.bytes;
  if (!upstream_is_slow && !too_much) AwaitReadable();
}

// Uses as much of the input as can be used now.
inline void ClientConnection::Advance() {
  while (state_ == State::kHead && AcceptHead()) {
  }
  if (state_ == State::kBody) AcceptBody();
  if (state_ == State::kWaits && body_streams_) StreamBody();
}

// Returns whether a request was answered and the next one may be looked for.
inline bool ClientConnection::AcceptHead() {
  const std::size_t blank = input_.find_first_not_of("\r\n");
  if (blank != 0) input_.erase(0, blank);
  if (input_.empty()) return false;
  const auto end = FindHeadEnd(input_, searched_);
  searched_ = input_.size();
  if (end.value_or(input_.size()) > context_.limits.head.bytes) {
    Refuse(431, fmt::format("the head of the request has more than {} bytes",
                            context_.limits.head.bytes));
    return false;
  }
  if (!end) return false;
  auto head = ParseRequestHead(std::string_view(input_).substr(0, *end), context_.limits.head);
  input_.erase(0, *end);
  searched_ = 0;
  if (!head.ok()) {
    Refuse(400, head.error().message);
    return false;
  }
  request_ = {.head = std::move(head).value(), .remote = remote_};
  return Admit();
}

// Decides what becomes of the body. Returns whether the request was answered already.
inline bool ClientConnection::Admit() {
  const RequestHead& head = request_.head;
  const auto framing = head.Framing();
  if (!framing.ok()) {
    Refuse(framing.error().code == ErrorCode::kNotSupported ? 501 : 400, framing.error().message);
    return false;
  }
  if (head.method == "CONNECT" || head.fields.HasToken("upgrade", "websocket")) {
    Refuse(501, "the gateway passes HTTP on, and neither tunnels nor websockets");
    return false;
  }
  keep_ = head.KeepsConnection();
  accepts_trailers_ = head.fields.HasToken("te", "trailers");
  if (framing.value().length > context_.limits.body) {
    Refuse(413, fmt::format("the body has more than {} bytes (--max-body)", context_.limits.body));
    return false;
  }
  if (head.fields.HasToken("expect", "100-continue") && head.minor_version > 0)
    out_ += "HTTP/1.1 100 Continue\r\n\r\n";
  request_.head.fields.Remove("expect");
  body_ = BodyDecoder(framing.value());
  body_bytes_ = 0;
  body_streams_ = !body_.done() && !context_.handler.WantsBody(head);
  request_.streamed = body_streams_;
  if (body_.done() || body_streams_) {
    Dispatch();
    return state_ == State::kHead;
  }
  share_.emplace(context_.bodies);
  state_ = State::kBody;
  Flush();
  return false;
}

inline void ClientConnection::AcceptBody() {
  deadline_ = context_.clock.Now() + context_.limits.body_time;
  std::string_view rest = input_;
  const Status decoded = body_.Decode(rest, request_.body);
  input_.erase(0, input_.size() - rest.size());
  if (!decoded.ok()) {
    Refuse(400, decoded.error().message);
  } else if (request_.body.size() > context_.limits.body) {
    Refuse(413, fmt::format("the body has more than {} bytes (--max-body)", context_.limits.body));
  } else if (!share_->GrowTo(request_.body.size())) {
    Refuse(503, "the gateway holds too many large requests: try again");
  } else if (body_.done()) {
    Dispatch();
    if (state_ == State::kHead) Advance();
  }
}

// Passes on the part of the body that has come.
inline void ClientConnection::StreamBody() {
  passing_body_ = true;
  PassBody();
  passing_body_ = false;
}

inline void ClientConnection::PassBody() {
  std::string_view rest = input_;
  while (call_ && !rest.empty() && !body_.done()) {
    const auto run = body_.Next(rest);
    if (!run.ok()) {
      call_->Abort();
      EndExchange(ExchangeEnd::kCancelled, "the request's body is malformed");
      Refuse(400, run.error().message);
      return;
    }
    body_bytes_ += run.value().size();
    if (body_bytes_ > context_.limits.body) {
      call_->Abort();
      EndExchange(ExchangeEnd::kCancelled, "the request's body is too large");
      Refuse(413,
             fmt::format("the body has more than {} bytes (--max-body)", context_.limits.body));
      return;
    }
    if (request_.head.fields.Find("content-length") != nullptr) {
      call_->AppendRequest(run.value());
    } else {
      std::string chunk;
      AppendChunk(run.value(), chunk);
      call_->AppendRequest(chunk);
    }
  }
  input_.erase(0, input_.size() - rest.size());
  if (!call_ || !body_.done()) return;
  body_streams_ = false;
  if (request_.head.fields.Find("content-length") == nullptr) call_->AppendRequest("0\r\n\r\n");
  if (call_) call_->CompleteRequest();
}

inline void ClientConnection::OnRequestSent() {
  if (!body_streams_ || passing_body_) return;
  StreamBody();
  if (state_ != State::kClosed) AwaitReadable();
}

inline void ClientConnection::Dispatch() {
  state_ = State::kWaits;
  status_ = 0;
  Decision decision = context_.handler.Decide(request_);
  if (auto* const forward = std::get_if<Forward>(&decision)) {
    BeginForward(*forward);
  } else if (const auto* const answer = std::get_if<http::Answer>(&decision)) {
    SendAnswer(*answer);
  } else if (std::holds_alternative<Live>(decision)) {
    BeginLive();
  } else {
    ForwardToEvery();
  }
}

inline void ClientConnection::BeginForward(Forward& forward) {
  const Upstream& upstream = *context_.upstreams[forward.upstream];
  RequestHead& head = request_.head;
  const bool length_given = head.fields.Find("content-length") != nullptr;
  const bool had_body = length_given || head.fields.Find("transfer-encoding") != nullptr;
  head.fields.RemoveHopByHop();
  head.fields.Remove("host");
  std::string text = fmt::format("{} {}{} HTTP/1.1\r\nHost: {}\r\n", head.method, upstream.prefix(),
                                 head.target, upstream.host_field());
  if (body_streams_ && !length_given) {
    text += "Transfer-Encoding: chunked\r\n";
  } else if (!body_streams_ && had_body) {
    head.fields.Set("Content-Length", std::to_string(request_.body.size()));
  }
  head.fields.AppendTo(text);
  text += "\r\n";
  text += request_.body;
  std::string().swap(request_.body);
  share_.reset();
  exchange_ = std::move(forward.exchange);
  in_exchange_ = true;
  ++context_.counts.exchanges;
  call_ = std::make_shared<UpstreamCall>(context_, forward.upstream, head.method, *this);
  call_->Start(std::move(text), !body_streams_);
  if (body_streams_ && call_) StreamBody();
  if (!out_.empty()) Flush();
}

// Asks all upstreams and sends the combined answer.
inline void ClientConnection::ForwardToEvery() {
  struct Gathering {
    std::size_t missing;
    std::vector<Result<Fetched>> answers;
  };
  const std::size_t count = context_.upstreams.size();
  auto gathering = std::make_shared<Gathering>();
  gathering->missing = count;
  gathering->answers.assign(count, Error{ErrorCode::kUnavailable, "no answer"});
  HeaderFields fields = request_.head.fields;
  fields.RemoveHopByHop();
  for (const char* name : {"host", "content-length", "accept-encoding"}) fields.Remove(name);
  for (std::size_t i = 0; i < count; ++i) {
    auto fetch = std::make_shared<FetchCall>(
        [weak = weak_from_this(), gathering, i](Result<Fetched> answer) {
          gathering->answers[i] = std::move(answer);
          if (--gathering->missing > 0) return;
          const auto self = weak.lock();
          if (!self || self->state_ != State::kWaits) return;
          self->SendAnswer(self->context_.handler.Combine(self->request_, gathering->answers));
          if (self->state_ == State::kHead) self->Advance();
        });
    fetch->Start(context_, i, request_.head.target, fields);
  }
}

inline void ClientConnection::BeginLive() {
  out_ +=
      "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-store\r\n"
      "Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n";
  state_ = State::kLive;
  SendLive(context_.handler.LiveText());
}

// Sends an answer of the gateway itself.
inline void ClientConnection::SendAnswer(const http::Answer& answer) {
  keep_ = keep_ && !context_.draining && body_.done();
  const bool head_only = request_.head.method == "HEAD";
  out_ += http::ResponseText(answer, "-",
                             keep_ ? http::Connection::kKeepAlive : http::Connection::kClose,
                             head_only ? http::Body::kOmitted : http::Body::kSent);
  status_ = answer.status;
  EndResponse();
}

// Answers a request that is not passed on, and ends the connection: where the next request begins
// is not known.
inline void ClientConnection::Refuse(int status, const std::string& why) {
  call_.reset();
  keep_ = false;
  SendAnswer(ErrorAnswer(status, "invalid_request_error", why));
}

template <class Function>
void ClientConnection::Guarded(Function&& function) {
  if (!exchange_) return;
  try {
    function(*exchange_);
    return;
  } catch (const std::exception& error) {
    log::Warning("a response passes without being metered: {}", Printable(error.what()));
  }
  const auto failed = std::move(exchange_);
  try {
    failed->OnBodyBroken(context_.scratch);
    failed->OnEnd(ExchangeEnd::kFailed, status_, "the response could not be metered");
  } catch (const std::exception& error) {
    log::Warning("a request could not be accounted for: {}", Printable(error.what()));
  }
}

inline void ClientConnection::OnInterimHead(ResponseHead& head) {
  if (request_.head.minor_version == 0) return;
  head.fields.RemoveHopByHop();
  out_ += fmt::format("HTTP/1.1 {} {}\r\n", head.status, head.reason);
  head.fields.AppendTo(out_);
  out_ += "\r\n";
}

inline void ClientConnection::OnResponseHead(ResponseHead& head, const BodyFraming& framing) {
  framing_ = framing;
  head.fields.RemoveHopByHop();
  const bool has_body = framing.kind != BodyFraming::Kind::kNone;
  if (framing.kind == BodyFraming::Kind::kChunked) head.fields.Remove("content-length");
  Guarded([&](Exchange& exchange) { exchange.OnHead(head); });
  if (exchange_ && has_body && exchange_->holds_body()) {
    held_head_ = std::move(head);
    return;
  }
  const bool same_length =
      framing.kind == BodyFraming::Kind::kLength && (!exchange_ || !exchange_->changes_length());
  if (!has_body || same_length)
    WriteHead(head, Delimiter::kAsUpstream);
  else
    WriteHead(head, request_.head.minor_version > 0 ? Delimiter::kChunked : Delimiter::kClose);
}

inline void ClientConnection::WriteHead(ResponseHead& head, Delimiter delimiter) {
  delimiter_ = delimiter;
  status_ = head.status;
  keep_ = keep_ && delimiter != Delimiter::kClose && !context_.draining && !body_streams_;
  if (delimiter != Delimiter::kAsUpstream) head.fields.Remove("content-length");
  out_ += fmt::format("HTTP/1.1 {} {}\r\n", head.status, head.reason);
  head.fields.AppendTo(out_);
  if (delimiter == Delimiter::kChunked) {
    out_ += "Transfer-Encoding: chunked\r\n";
    if (accepts_trailers_ && exchange_ && !exchange_->trailer_names().empty())
      out_ += fmt::format("Trailer: {}\r\n", exchange_->trailer_names());
  }
  if (!keep_)
    out_ += "Connection: close\r\n";
  else if (request_.head.minor_version == 0)
    out_ += "Connection: keep-alive\r\n";
  out_ += "\r\n";
}

inline void ClientConnection::OnResponseBody(std::string_view bytes) {
  if (!exchange_) {
    AppendBody(bytes);
    return;
  }
  std::string& made = context_.scratch;
  made.clear();
  Guarded([&](Exchange& exchange) { exchange.OnBody(bytes, made); });
  AppendBody(made);
}

inline void ClientConnection::AppendBody(std::string_view bytes) {
  if (bytes.empty()) return;
  if (held_head_) {  // The body is too large to be held back.
    ResponseHead head = *std::exchange(held_head_, std::nullopt);
    WriteHead(head, request_.head.minor_version > 0 ? Delimiter::kChunked : Delimiter::kClose);
  }
  if (delimiter_ == Delimiter::kChunked)
    AppendChunk(bytes, out_);
  else
    out_.append(bytes);
}

inline void ClientConnection::OnResponseEnd(const HeaderFields& trailers) {
  std::string& made = context_.scratch;
  made.clear();
  Guarded([&](Exchange& exchange) {
    exchange.OnBodyEnd(made, held_head_ ? &held_head_->fields : nullptr);
  });
  if (held_head_) {
    ResponseHead head = *std::exchange(held_head_, std::nullopt);
    head.fields.Set("Content-Length", std::to_string(made.size()));
    WriteHead(head, Delimiter::kAsUpstream);
  }
  AppendBody(made);
  if (delimiter_ == Delimiter::kChunked) {
    HeaderFields last = trailers;
    if (accepts_trailers_) Guarded([&](Exchange& exchange) { exchange.AddTrailers(last); });
    AppendLastChunk(last, out_);
  }
  call_.reset();
  EndExchange(ExchangeEnd::kCompleted, {});
  EndResponse();
}

inline void ClientConnection::OnCallFailed(int status, const std::string& why) {
  call_.reset();
  if (status_ == 0 && !held_head_) {
    http::Answer answer = ErrorAnswer(status, "upstream_error", why);
    if (exchange_) answer.headers.emplace_back("x-zeus-request", exchange_->request_id());
    status_ = status;
    EndExchange(ExchangeEnd::kFailed, why);
    SendAnswer(answer);
    return;
  }
  // A part of the response has been sent: the client sees that the rest is missing, since neither
  // the last chunk nor the promised length arrives.
  std::string& made = context_.scratch;
  made.clear();
  Guarded([&](Exchange& exchange) { exchange.OnBodyBroken(made); });
  if (held_head_) {
    ResponseHead head = *std::exchange(held_head_, std::nullopt);
    WriteHead(head, framing_.kind == BodyFraming::Kind::kLength ? Delimiter::kAsUpstream
                    : request_.head.minor_version > 0           ? Delimiter::kChunked
                                                                : Delimiter::kClose);
  }
  AppendBody(made);
  EndExchange(ExchangeEnd::kFailed, why);
  keep_ = false;
  EndResponse();
}

// The whole response is in out_.
inline void ClientConnection::EndResponse() {
  delimiter_ = Delimiter::kAsUpstream;
  share_.reset();
  std::string().swap(request_.body);
  if (keep_ && !context_.draining) {
    state_ = State::kHead;
    deadline_ = context_.clock.Now() + context_.limits.keep_alive_time;
  } else {
    state_ = State::kFlush;
    deadline_ = context_.clock.Now() + context_.limits.idle_time;
  }
  Flush();
  if (state_ == State::kHead && !input_.empty()) {
    // Another request has come already. It is not handled here, since requests that are answered
    // at once would pile up on the stack.
    asio::post(context_.io, [self = shared_from_this()] {
      if (self->state_ == State::kHead) self->AcceptInput({});
    });
  } else if (state_ == State::kHead) {
    AwaitReadable();
  }
}

inline void ClientConnection::EndExchange(ExchangeEnd end, const std::string& reason) {
  if (!std::exchange(in_exchange_, false)) return;
  --context_.counts.exchanges;
  Guarded([&](Exchange& exchange) { exchange.OnEnd(end, status_, reason); });
  exchange_.reset();
  held_head_.reset();
}

inline void ClientConnection::ClientLeft() {
  if (state_ == State::kClosed) return;
  if (call_) call_->Abort();
  call_.reset();
  EndExchange(ExchangeEnd::kCancelled, "the client left");
  Close();
}

inline void ClientConnection::Flush() {
  while (unsent() > 0 && state_ != State::kClosed) {
    std::size_t size = 0;
    const Io io = stream_.Write(std::string_view(out_).substr(out_sent_), size);
    out_sent_ += size;
    if (size > 0 && state_ != State::kHead)
      deadline_ = context_.clock.Now() + context_.limits.idle_time;
    if (io == Io::kWouldBlock) {
      AwaitWritable();
      if (call_ && unsent() > kHighWater) call_->Pause();
      if (out_sent_ > kHighWater) {
        out_.erase(0, out_sent_);
        out_sent_ = 0;
      }
      return;
    }
    if (io != Io::kDone) {
      ClientLeft();
      return;
    }
  }
  if (state_ == State::kClosed) return;
  if (out_.capacity() > kKeptCapacity) std::string().swap(out_);
  out_.clear();
  out_sent_ = 0;
  OnFlushed();
}

inline void ClientConnection::OnFlushed() {
  if (call_ && call_->paused()) call_->Resume();
  if (state_ != State::kFlush) return;
  stream_.EndWriting();
  state_ = State::kLinger;
  deadline_ = context_.clock.Now() + kLingerTime;
  AwaitReadable();
}

inline void ClientConnection::AwaitWritable() {
  if (awaiting_writable_) return;
  awaiting_writable_ = true;
  stream_.WaitWritable([self = shared_from_this()](const error_code& failure) {
    self->awaiting_writable_ = false;
    if (!failure && self->state_ != State::kClosed) self->Flush();
  });
}

inline void ClientConnection::CheckTime(TimePoint now) {
  switch (state_) {
    case State::kHead:
      if (now < deadline_) return;
      if (input_.empty())
        Close();
      else
        Refuse(408, "the head of the request took too long");
      return;
    case State::kBody:
      if (now >= deadline_) Refuse(408, "the body of the request took too long");
      return;
    case State::kWaits:
      // The upstream's deadlines hold, unless the client does not read.
      if (unsent() > 0 && status_ != 0 && now >= deadline_) ClientLeft();
      return;
    case State::kLive:
      if (unsent() > 0 && now >= deadline_) Close();
      return;
    case State::kFlush:
    case State::kLinger:
      if (now >= deadline_) Close();
      return;
    case State::kClosed:
      return;
  }
}

inline void ClientConnection::Close() {
  if (state_ == State::kClosed) return;
  const auto self = weak_from_this().lock();
  state_ = State::kClosed;
  share_.reset();
  stream_.Close();
  if (on_closed_) std::exchange(on_closed_, nullptr)(*this);
}

}  // namespace zeus::gateway
