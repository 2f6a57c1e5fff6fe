#pragma once

// A part of proxy.cc.

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "zeus/base/clock.h"
#include "zeus/base/text.h"
#include "zeus/gateway/body_decoder.h"
#include "zeus/gateway/proxy.h"
#include "zeus/gateway/proxy_stream.h"
#include "zeus/http/limits.h"
#include "zeus/http/tls.h"
#include "zeus/http/url.h"

namespace zeus::gateway {

class UpstreamCall;

// An upstream's addresses and the connections to it that wait for the next request. One thread.
class Upstream {
 public:
  Upstream(http::Url url, const ProxyLimits& limits) : url_(std::move(url)), limits_(limits) {}

  // Prepares TLS. Returns kInvalidArgument when the file of authorities cannot be used.
  Status Open(const std::string& authorities) {
    if (url_.scheme != http::Url::Scheme::kHttps) return Ok();
    tls_ = Context(SSL_CTX_new(TLS_client_method()), &SSL_CTX_free);
    if (!tls_) return Error{ErrorCode::kInternal, "OpenSSL made no context"};
    SSL_CTX_set_min_proto_version(tls_.get(), TLS1_2_VERSION);
    SSL_CTX_set_verify(tls_.get(), SSL_VERIFY_PEER, nullptr);
    const int loaded = authorities.empty() ? SSL_CTX_set_default_verify_paths(tls_.get())
                                           : SSL_CTX_load_verify_locations(
                                                 tls_.get(), authorities.c_str(), nullptr);
    if (loaded != 1)
      return InvalidArgument(
          fmt::format("{} holds no certificates in PEM format", Printable(authorities)));
    watch_.Attach(*tls_);
    return Ok();
  }

  const http::Url& url() const { return url_; }
  SSL_CTX* tls() const { return tls_.get(); }
  const http::TlsWatch& tls_watch() const { return watch_; }
  std::string host_field() const {
    if (url_.scheme == http::Url::Scheme::kUnix) return "localhost";
    const std::string server = url_.server();
    return server.substr(server.find("//") + 2);
  }
  // Stands before the target of every request.
  std::string_view prefix() const {
    return url_.scheme == http::Url::Scheme::kUnix ? std::string_view() : url_.path;
  }

  // A connection that answered before and is still open, or nullptr.
  std::unique_ptr<Stream> Reuse() {
    while (!idle_.empty()) {
      std::unique_ptr<Stream> stream = std::move(idle_.back().stream);
      idle_.pop_back();
      if (!stream->IsStale()) return stream;
    }
    return nullptr;
  }
  void Keep(std::unique_ptr<Stream> stream, TimePoint now) {
    if (idle_.size() < limits_.idle_upstream)
      idle_.push_back({std::move(stream), now + limits_.upstream_keep_alive_time});
  }
  void CheckIdle(TimePoint now) {
    std::erase_if(idle_, [now](Idle& idle) { return now >= idle.until || idle.stream->IsStale(); });
  }
  void CloseIdle() { idle_.clear(); }

 private:
  using Context = std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)>;
  struct Idle {
    std::unique_ptr<Stream> stream;
    TimePoint until;
  };

  const http::Url url_;
  const ProxyLimits& limits_;
  Context tls_{nullptr, &SSL_CTX_free};
  http::TlsWatch watch_{};
  std::vector<Idle> idle_{};  // The most recently used one is the last.
};

// The state that all connections of a proxy share. One thread.
struct ProxyContext {
  asio::io_context& io;
  ProxyHandler& handler;
  ProxyCounts& counts;
  const Clock& clock;
  const ProxyLimits& limits;
  http::MemoryBudget& bodies;
  std::vector<std::unique_ptr<Upstream>>& upstreams;
  std::span<char> buffer;  // For one read; holds nothing between two events.
  std::string scratch{};   // Likewise for the bytes that an Exchange makes of it.
  std::unordered_set<UpstreamCall*> calls{};
  bool draining = false;
};

// Receives a response. Each function may abort the call.
class ResponseSink {
 public:
  virtual ~ResponseSink() = default;
  // A head with a status of 1xx that precedes the response.
  virtual void OnInterimHead(ResponseHead& head) = 0;
  virtual void OnResponseHead(ResponseHead& head, const BodyFraming& framing) = 0;
  virtual void OnResponseBody(std::string_view bytes) = 0;
  // All bytes of one read have been handed over.
  virtual void OnResponsePiece() = 0;
  virtual void OnResponseEnd(const HeaderFields& trailers) = 0;
  // All bytes of the request so far have been sent.
  virtual void OnRequestSent() = 0;
  // The last call. `status` is 502 or 504.
  virtual void OnCallFailed(int status, const std::string& why) = 0;
};

// One request to an upstream and its response. A request that got no byte back on a reused
// connection is sent once more on a fresh one. The sink must live until the last call of it, or
// until Abort(). One thread.
class UpstreamCall : public std::enable_shared_from_this<UpstreamCall> {
 public:
  UpstreamCall(ProxyContext& context, std::size_t upstream, std::string method, ResponseSink& sink)
      : context_(context),
        upstream_(*context.upstreams[upstream]),
        method_(std::move(method)),
        resolver_(context.io),
        sink_(&sink) {
    context_.calls.insert(this);
  }
  ~UpstreamCall() { context_.calls.erase(this); }
  UpstreamCall(const UpstreamCall&) = delete;
  UpstreamCall& operator=(const UpstreamCall&) = delete;

  // `request` are the bytes of the head and, unless it is streamed, of the body.
  void Start(std::string request, bool complete) {
    request_ = std::move(request);
    request_complete_ = complete;
    Begin();
  }
  void AppendRequest(std::string_view bytes) {
    request_.append(bytes);
    if (stream_ && connected_) Send();
  }
  void CompleteRequest() { request_complete_ = true; }
  std::size_t unsent() const { return request_.size() - sent_; }

  void Pause() { paused_ = true; }
  void Resume() {
    if (!paused_) return;
    paused_ = false;
    RefreshDeadline();
    AwaitReadable();
  }
  bool paused() const { return paused_; }

  // Ends the request at once: an upstream notices that its client is gone.
  void Abort() {
    sink_ = nullptr;
    resolver_.cancel();
    if (stream_) stream_->Close();
  }

  // Ends the call, and lets the sink know.
  void Fail(int status, const std::string& why) {
    if (stream_) stream_->Close();
    resolver_.cancel();
    context_.calls.erase(this);
    ResponseSink* const sink = std::exchange(sink_, nullptr);
    if (sink != nullptr) sink->OnCallFailed(status, why);
  }

  void CheckTime(TimePoint now) {
    if (sink_ == nullptr || now < deadline_ || (paused_ && got_byte_)) return;
    const http::Url& url = upstream_.url();
    if (!connected_)
      Fail(504, fmt::format("{} cannot be reached within {} s: is it running?", url.server(),
                            context_.limits.connect_time.count()));
    else if (!got_byte_)
      Fail(504, fmt::format("{} did not answer within {} s (--first-byte-timeout)", url.server(),
                            context_.limits.first_byte_time.count()));
    else
      Fail(504, fmt::format("{} sent nothing for {} s (--idle-timeout)", url.server(),
                            context_.limits.idle_time.count()));
  }

 private:
  // Bytes of a streamed request that are kept in case it has to be sent again.
  static constexpr std::size_t kMostKept = 64 * 1024;

  void Begin() {
    deadline_ = context_.clock.Now() + context_.limits.connect_time;
    if (!fresh_) stream_ = upstream_.Reuse();
    if (stream_) {
      reused_ = true;
      OnConnected();
      return;
    }
    reused_ = false;
    ++context_.counts.upstream_opened;
    const http::Url& url = upstream_.url();
    const std::uint16_t port = url.port.value_or(tls() ? 443 : 80);
    error_code no_address;
    const auto address = asio::ip::make_address(url.host, no_address);
    endpoints_.clear();
    if (url.scheme == http::Url::Scheme::kUnix)
      endpoints_.emplace_back(Local::endpoint(url.path));
    else if (!no_address)
      endpoints_.emplace_back(tcp::endpoint(address, port));
    if (!endpoints_.empty()) {
      ConnectToNext({});
      return;
    }
    resolver_.async_resolve(
        url.host, std::to_string(port), tcp::resolver::numeric_service,
        [self = shared_from_this()](const error_code& failure, const auto& found) {
          if (self->sink_ == nullptr) return;
          for (const auto& entry : found) self->endpoints_.emplace_back(entry.endpoint());
          self->ConnectToNext(failure);
        });
  }

  bool tls() const { return upstream_.url().scheme == http::Url::Scheme::kHttps; }

  // Tries the addresses one after the other. `failure` is that of the last attempt.
  void ConnectToNext(const error_code& failure) {
    if (endpoints_.empty()) {
      Fail(502, fmt::format("{} cannot be reached: {}", upstream_.url().server(),
                            LowerCase(failure.message())));
      return;
    }
    const Endpoint endpoint = endpoints_.front();
    endpoints_.erase(endpoints_.begin());
    auto socket = std::make_shared<Socket>(context_.io);
    socket->async_connect(endpoint, [self = shared_from_this(), socket](const error_code& refused) {
      if (self->sink_ == nullptr) return;
      if (refused) {
        self->ConnectToNext(refused);
        return;
      }
      self->stream_ = std::make_unique<Stream>(std::move(*socket));
      if (self->tls() &&
          !self->stream_->ConnectTls(*self->upstream_.tls(), self->upstream_.url().host)) {
        self->Fail(502, "OpenSSL made no connection");
        return;
      }
      self->OnConnected();
    });
  }

  void OnConnected() {
    connected_ = true;
    deadline_ = context_.clock.Now() + context_.limits.first_byte_time;
    AwaitReadable();
    Send();
  }

  void Send() {
    while (sink_ != nullptr && sent_ < request_.size() && !write_broken_) {
      std::size_t size = 0;
      const Io io = stream_->Write(std::string_view(request_).substr(sent_), size);
      sent_ += size;
      if (io == Io::kWouldBlock) {
        send_waits_for_read_ = stream_->wants_read();
        if (!send_waits_for_read_) AwaitWritable();
        return;
      }
      // The upstream may have answered without reading everything: its answer is still read.
      if (io != Io::kDone) write_broken_ = true;
    }
    if (sink_ == nullptr) return;
    if (!request_complete_ && sent_ > kMostKept) ForgetRequest();
    if (!request_complete_) sink_->OnRequestSent();
  }

  // From now on the request cannot be sent again.
  void ForgetRequest() {
    request_ = request_.substr(sent_);
    sent_ = 0;
    resendable_ = false;
  }

  void AwaitWritable() {
    if (awaiting_writable_) return;
    awaiting_writable_ = true;
    stream_->WaitWritable(
        [self = shared_from_this(), attempt = attempt_](const error_code& failure) {
          if (attempt != self->attempt_) return;
          self->awaiting_writable_ = false;
          if (!failure && self->sink_ != nullptr) self->Send();
        });
  }

  void AwaitReadable() {
    if (awaiting_readable_ || !stream_) return;
    awaiting_readable_ = true;
    const auto proceed = [self = shared_from_this(),
                          attempt = attempt_](const error_code& failure) {
      if (attempt != self->attempt_) return;
      self->awaiting_readable_ = false;
      if (!failure && self->sink_ != nullptr) self->OnReadable();
    };
    if (stream_->has_decrypted_bytes()) {
      asio::post(context_.io, [proceed] { proceed({}); });
    } else {
      stream_->WaitReadable(proceed);
    }
  }

  void OnReadable() {
    if (send_waits_for_read_) {
      send_waits_for_read_ = false;
      Send();
    }
    if (sink_ == nullptr) return;
    if (paused_) return;
    std::size_t size = 0;
    const Io io = stream_->Read(context_.buffer, size);
    if (io == Io::kDone) {
      Accept({context_.buffer.data(), size});
      return;
    }
    if (io == Io::kWouldBlock) {
      AwaitReadable();
      return;
    }
    OnConnectionEnd(io);
  }

  void RefreshDeadline() { deadline_ = context_.clock.Now() + context_.limits.idle_time; }

  void Accept(std::string_view bytes) {
    if (!got_byte_) {
      got_byte_ = true;
      if (request_complete_ && sent_ == request_.size()) {
        std::string().swap(request_);
        sent_ = 0;
      }
    }
    RefreshDeadline();
    std::string gathered;
    if (!in_body_ && !head_bytes_.empty()) {
      gathered = std::exchange(head_bytes_, {});
      gathered.append(bytes);
      bytes = gathered;
    }
    while (sink_ != nullptr && !in_body_)
      if (!AcceptHead(bytes)) break;
    if (sink_ != nullptr && in_body_) AcceptBody(bytes);
    if (sink_ == nullptr) return;
    sink_->OnResponsePiece();
    if (sink_ != nullptr && !paused_) AwaitReadable();
  }

  // Returns false when the head is not complete.
  bool AcceptHead(std::string_view& bytes) {
    const auto end = FindHeadEnd(bytes);
    if (end.value_or(bytes.size()) > context_.limits.head.bytes) {
      Fail(502, fmt::format("the answer of {} has a head of more than {} bytes",
                            upstream_.url().server(), context_.limits.head.bytes));
      return true;
    }
    if (!end) {
      head_bytes_ = bytes;
      return false;
    }
    auto head = ParseResponseHead(bytes.substr(0, *end), context_.limits.head);
    bytes.remove_prefix(*end);
    if (!head.ok()) {
      Fail(502, fmt::format("{} does not speak HTTP: {}", upstream_.url().server(),
                            head.error().message));
    } else if (head.value().status == 101) {
      Fail(502,
           fmt::format("{} changed the protocol without being asked", upstream_.url().server()));
    } else if (head.value().status < 200) {
      if (head.value().status != 100) sink_->OnInterimHead(head.value());
    } else {
      BeginBody(head.value());
    }
    return true;
  }

  void BeginBody(ResponseHead& head) {
    const auto framing = head.Framing(method_);
    if (!framing.ok()) {
      Fail(502, fmt::format("the answer of {} cannot be read: {}", upstream_.url().server(),
                            framing.error().message));
      return;
    }
    in_body_ = true;
    decoder_ = BodyDecoder(framing.value());
    keep_ = head.KeepsConnection();
    sink_->OnResponseHead(head, framing.value());
  }

  void AcceptBody(std::string_view bytes) {
    while (sink_ != nullptr && !bytes.empty() && !decoder_.done()) {
      const auto run = decoder_.Next(bytes);
      if (!run.ok()) {
        Fail(502, fmt::format("the answer of {} is malformed: {}", upstream_.url().server(),
                              run.error().message));
        return;
      }
      if (!run.value().empty()) sink_->OnResponseBody(run.value());
    }
    if (sink_ == nullptr || !decoder_.done()) return;
    const bool all_sent = request_complete_ && sent_ == request_.size();
    Finish(keep_ && all_sent && bytes.empty());
  }

  void Finish(bool keep) {
    if (keep && !context_.draining && !awaiting_readable_)
      upstream_.Keep(std::move(stream_), context_.clock.Now());
    else
      stream_->Close();
    ResponseSink* const sink = std::exchange(sink_, nullptr);
    context_.calls.erase(this);
    sink->OnResponseEnd(decoder_.trailers());
  }

  void OnConnectionEnd(Io how) {
    if (!got_byte_ && reused_ && resendable_ && !fresh_) {
      ++context_.counts.resent;
      fresh_ = true;
      connected_ = false;
      write_broken_ = false;
      send_waits_for_read_ = false;
      sent_ = 0;
      stream_->Close();
      stream_.reset();
      ++attempt_;
      awaiting_readable_ = false;
      awaiting_writable_ = false;
      Begin();
      return;
    }
    if (in_body_ && decoder_.ends_with_connection() && how == Io::kEnd) {
      Finish(false);
      return;
    }
    const std::string server = upstream_.url().server();
    if (in_body_)
      Fail(502, fmt::format("{} ended its answer too early", server));
    else if (!got_byte_ && stream_->is_distrusted())
      Fail(502, fmt::format("{} is not trusted: {}", server,
                            upstream_.tls_watch().Explain(upstream_.url().host)));
    else
      Fail(502, fmt::format("{} closed the connection without an answer", server));
  }

  using Endpoint = asio::generic::stream_protocol::endpoint;

  ProxyContext& context_;
  Upstream& upstream_;
  const std::string method_;
  tcp::resolver resolver_;
  std::vector<Endpoint> endpoints_{};
  ResponseSink* sink_;  // nullptr: the call has ended.
  std::unique_ptr<Stream> stream_{};
  std::string request_{};
  std::size_t sent_ = 0;
  std::string head_bytes_{};  // The part of the response's head that has arrived.
  BodyDecoder decoder_{};
  TimePoint deadline_{};
  int attempt_ = 0;  // Handlers of an earlier connection do nothing.
  bool request_complete_ = false;
  bool resendable_ = true;
  bool fresh_ = false;   // The request is being sent for the second time.
  bool reused_ = false;  // The connection has answered another request before.
  bool connected_ = false;
  bool got_byte_ = false;
  bool in_body_ = false;
  bool keep_ = false;
  bool paused_ = false;
  bool write_broken_ = false;
  bool send_waits_for_read_ = false;
  bool awaiting_readable_ = false;
  bool awaiting_writable_ = false;
};

}  // namespace zeus::gateway
