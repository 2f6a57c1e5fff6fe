#pragma once

// Included by http_server.cc alone: what is in here takes half a minute to compile.

#include <boost/asio.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>  // Boost 1.74 forgets it.

#include "zeus/base/clock.h"
#include "zeus/base/text.h"
#include "zeus/server/http_message.h"
#include "zeus/server/http_server.h"
#include "zeus/server/response_text.h"
#include "zeus/server/session_control.h"

namespace zeus::server {

namespace http = boost::beast::http;
using boost::system::error_code;

// One connection. `Stream` is a socket, or TLS on one. What is awaited gets a name before it is
// used: GCC 12 loses its way when a condition or a temporary spans an await.
template <class Stream>
class Session final : public SessionControl, public std::enable_shared_from_this<Session<Stream>> {
 public:
  Session(Stream stream, Peer peer, SessionContext& context)
      : SessionControl(context.io),
        stream_(std::move(stream)),
        peer_(std::move(peer)),
        context_(context),
        buffer_(2 * context.limits.header) {}

  asio::awaitable<void> Run() {
    bool goes_on = co_await Handshake();
    while (goes_on) goes_on = co_await ServeOne();
    co_await Close();
  }

  // Instead of Run(), when there are too many connections: one request, which is answered if it
  // asks about the server itself.
  asio::awaitable<void> RunReserved() {
    bool goes_on = co_await Handshake();
    if (goes_on) goes_on = co_await Arrives();
    if (goes_on) goes_on = co_await ReadHeader();
    arriving_ = false;
    if (goes_on && !parser_->is_done()) goes_on = false;
    if (goes_on) goes_on = context_.handler.Admit(incoming_->request).vital;
    wants_more_ = false;
    if (goes_on) {
      answering_ = true;
      co_await Answer();
      answering_ = false;
    } else if (!ended_) {
      Refuse(503, "the server has too many connections, in all or from your address");
      co_await SendRefusal();
    }
    co_await Close();
  }

 private:
  using Parser = http::request_parser<http::string_body>;
  static constexpr bool kIsTls = requires(Stream& stream) { stream.next_layer(); };
  static constexpr std::size_t kChunk = 4096;

  auto& Socket() {
    if constexpr (kIsTls) {
      return stream_.next_layer();
    } else {
      return stream_;
    }
  }

  void CancelSocket() override {
    error_code ignored;
    Socket().cancel(ignored);
  }

  void SetDeadline(Seconds time) {
    timed_out_ = false;
    deadline_ = context_.clock.Now() + time;
  }

  // As SetDeadline(), for something that the client sends.
  void SetArrival(Seconds time) {
    arriving_ = true;
    SetDeadline(context_.draining ? std::min(time, kLastArrival) : time);
  }

  asio::awaitable<bool> Handshake() {
    error_code failure;
    if constexpr (kIsTls) {
      SetArrival(context_.limits.header_time);
      co_await stream_.async_handshake(asio::ssl::stream_base::server,
                                       asio::redirect_error(asio::use_awaitable, failure));
      arriving_ = false;
    }
    co_return !failure;
  }

  // Waits for the first bytes of a request.
  asio::awaitable<bool> Arrives() {
    if (buffer_.size() > 0) co_return true;
    if (context_.draining || ended_) co_return false;
    SetDeadline(served_ ? context_.limits.idle_time : context_.limits.header_time);
    idle_ = true;
    error_code failure;
    const std::size_t size = co_await stream_.async_read_some(
        buffer_.prepare(kChunk), asio::redirect_error(asio::use_awaitable, failure));
    idle_ = false;
    buffer_.commit(size);
    co_return !failure;
  }

  // A request, and the share of the server's memory that its body takes. Lives as long as a worker
  // is busy with it, even when nobody waits for the answer any more.
  struct Incoming {
    explicit Incoming(MemoryBudget& bodies) : memory(bodies) {}
    HttpRequest request{};
    MemoryBudget::Share memory;
  };

  // Reads a request and answers it. False when the connection is to be closed.
  asio::awaitable<bool> ServeOne() {
    const bool arrives = co_await Arrives();
    if (!arrives) co_return false;
    refusal_.reset();
    bool complete = co_await ReadHeader();
    if (complete && !parser_->is_done()) complete = co_await ReadBody();
    arriving_ = false;
    if (complete) {
      served_ = true;
      const bool goes_on = co_await Answer();
      co_return goes_on;
    }
    if (refusal_) co_await SendRefusal();
    incoming_.reset();
    parser_.reset();
    co_return false;
  }

  // False when it is not to be answered, or with refusal_.
  asio::awaitable<bool> ReadHeader() {
    incoming_ = std::make_shared<Incoming>(context_.bodies);
    parser_.emplace();
    parser_->header_limit(static_cast<std::uint32_t>(context_.limits.header));
    // LimitBody() knows it, once the header is there.
    parser_->body_limit(std::numeric_limits<std::uint64_t>::max());
    SetArrival(context_.limits.header_time);
    error_code failure;
    co_await http::async_read_header(stream_, buffer_, *parser_,
                                     asio::redirect_error(asio::use_awaitable, failure));
    if (failure) {
      Complain(failure);
      co_return false;
    }
    incoming_->request = TakeHeader();
    CheckFields();
    co_return !refusal_;
  }

  void Refuse(int status, const std::string& why) {
    refusal_ = context_.handler.Refusal(status, why);
  }

  // What two servers in a row might read differently lets one smuggle requests past the first.
  void CheckFields() {
    const auto& message = parser_->get();
    const auto codings = message.count(http::field::transfer_encoding);
    const std::string coding(message[http::field::transfer_encoding]);
    if (codings > 1 || (codings == 1 && LowerCase(Trim(coding)) != "chunked"))
      return Refuse(501, "this Transfer-Encoding is not known here: use chunked");
    const auto hosts = message.count(http::field::host);
    if (hosts > 1 || (hosts == 0 && message.version() >= 11))
      return Refuse(400, "a request must have one Host");
    const auto fields = static_cast<std::size_t>(std::distance(message.begin(), message.end()));
    if (fields > context_.limits.fields)
      return Refuse(431, fmt::format("the header has more than {} fields", context_.limits.fields));
  }

  // Whether the body may come, which the header decides; else refusal_ says why not.
  bool AdmitBody() {
    Admission admission = context_.handler.Admit(incoming_->request);
    if (admission.refusal) {
      refusal_ = std::move(admission.refusal);
      return false;
    }
    body_limit_ = admission.large_body ? context_.limits.large_body : context_.limits.body;
    const auto announced = parser_->content_length();
    if (announced && *announced > body_limit_) {
      Refuse(413, TooLargeText());
      return false;
    }
    parser_->body_limit(body_limit_);
    return !announced || HasRoomFor(static_cast<std::size_t>(*announced));
  }

  bool HasRoomFor(std::size_t bytes) {
    if (incoming_->memory.GrowTo(bytes)) return true;
    Refuse(503, "the server is busy with other large requests: ask again");
    return false;
  }

  std::string TooLargeText() const {
    return fmt::format("the body is larger than {} bytes", body_limit_);
  }

  // False when it is not to be answered, or with refusal_.
  asio::awaitable<bool> ReadBody() {
    if (!AdmitBody()) co_return false;
    SetArrival(context_.limits.body_time);
    error_code failure;
    if (LowerCase(std::string(parser_->get()[http::field::expect])) == "100-continue") {
      constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
      co_await asio::async_write(stream_, asio::buffer(kContinue),
                                 asio::redirect_error(asio::use_awaitable, failure));
      if (failure) co_return false;
    }
    parser_->eager(true);
    while (!parser_->is_done()) {
      co_await http::async_read_some(stream_, buffer_, *parser_,
                                     asio::redirect_error(asio::use_awaitable, failure));
      if (failure) {
        Complain(failure);
        co_return false;
      }
      if (!HasRoomFor(parser_->get().body().capacity())) co_return false;
    }
    incoming_->request.body = std::move(parser_->get().body());
    co_return true;
  }

  // A request that cannot be read gets an answer, if there is still somebody to answer.
  void Complain(error_code failure) {
    if (timed_out_) {
      Refuse(408, "the request did not arrive in time");
    } else if (failure == http::error::header_limit) {
      Refuse(431, "the header is too large");
    } else if (failure == http::error::buffer_overflow) {
      Refuse(431, "the chunk extensions or trailers are too large");
    } else if (failure == http::error::body_limit) {
      Refuse(413, TooLargeText());
    } else if (failure.category() == http::make_error_code(http::error::bad_method).category() &&
               failure != http::error::end_of_stream && failure != http::error::partial_message) {
      Refuse(400, "this is not HTTP/1.1: " + failure.message());
    }
  }

  // All that is used of the header. Taken before the body, so that no trailer changes it.
  HttpRequest TakeHeader() {
    const auto& message = parser_->get();
    const auto text = [&](auto field) { return std::string(message[field]); };
    wants_more_ = message.keep_alive();
    HttpRequest request{.method = std::string(message.method_string()),
                        .target = std::string(message.target()),
                        .authorization = text(http::field::authorization),
                        .accept = text(http::field::accept),
                        .last_event_id = text("Last-Event-ID"),
                        .host = text(http::field::host),
                        .origin = text(http::field::origin),
                        .fetch_site = text("Sec-Fetch-Site"),
                        .remote = peer_.name,
                        .address = peer_.address};
    if (const auto wanted = message.find("Zeus-Namespace"); wanted != message.end())
      request.wanted_name_space = std::string(wanted->value());
    const std::string id = text("X-Request-Id");
    const bool plain = !id.empty() && id.size() <= 100 &&
                       id.find_first_not_of(
                           "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRS"
                           "TUVWXYZ-_.:") == std::string::npos;
    request.id = plain ? id : context_.make_request_id();
    return request;
  }

  // Runs `task` on a worker and waits until it is done. False when that took too long.
  asio::awaitable<bool> OnWorker(WorkerPool& pool, std::function<void()> task) {
    auto done = std::make_shared<bool>(false);
    pool.Post([self = this->shared_from_this(), done, task = std::move(task)] {
      task();
      asio::post(self->context_.io, [self, done] {
        *done = true;
        self->wake_.cancel();
      });
    });
    while (!*done && !timed_out_) {
      error_code ignored;
      co_await wake_.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
    }
    co_return *done;
  }

  asio::awaitable<bool> Answer() {
    const TimePoint start = context_.clock.Now();
    parser_.reset();
    auto incoming = std::move(incoming_);
    auto answer = std::make_shared<HttpAnswer>();
    FinishedRequest finished = Describe(incoming->request);
    SetDeadline(context_.limits.request_time);
    std::function<void()> handle = [this, incoming, answer] {
      *answer = context_.handler.Handle(incoming->request);
    };
    bool answered = true;
    const WaitsFor waits = context_.handler.Weigh(incoming->request);
    if (waits == WaitsFor::kNothing) {
      handle();
    } else {
      answered = co_await OnWorker(PoolFor(waits), std::move(handle));
    }
    handle = nullptr;
    if (answered && answer->awaited) answered = co_await Await(answer);
    // Nobody waits for a late answer: it stays where it is, and the worker's alone.
    if (!answered)
      answer = std::make_shared<HttpAnswer>(
          context_.handler.Refusal(503, "the answer took too long: ask again"));
    else
      finished.user = incoming->request.user;
    incoming.reset();
    if (!answer->changed_job.empty()) context_.wake_streams(answer->changed_job);
    const bool stays = wants_more_ && answered && !answer->events && !context_.draining;
    const Connection connection = stays ? Connection::kKeepAlive : Connection::kClose;
    const bool sent = co_await Send(*answer, finished, connection);
    const bool follows = sent && answer->events && finished.method != "HEAD";
    if (follows) co_await Follow(answer->events, finished);
    finished.duration = context_.clock.Now() - start;
    context_.handler.Finished(finished);
    co_return sent&& stays;
  }

  WorkerPool& PoolFor(WaitsFor waits) {
    if (waits == WaitsFor::kPlanning) return context_.planners;
    return waits == WaitsFor::kWriting ? context_.workers : context_.readers;
  }

  // Puts what is awaited in the place of `answer`. Other servers may change what it waits for, so
  // it is looked at now and then. False when a look took too long.
  asio::awaitable<bool> Await(std::shared_ptr<HttpAnswer> answer) {
    constexpr auto kPollPeriod = std::chrono::seconds(2);
    const std::shared_ptr<AwaitedAnswer> awaited = answer->awaited;
    const std::string route = answer->route;
    const TimePoint until = context_.clock.Now() + awaited->patience();
    waits_for_ = awaited->job_id();
    auto found = std::make_shared<std::optional<HttpAnswer>>();
    bool looked = true;
    while (looked && !*found) {
      news_ = false;
      SetDeadline(context_.limits.request_time);
      std::function<void()> look = [found, awaited] { *found = awaited->Next(); };
      looked = co_await OnWorker(context_.planners, std::move(look));
      if (!looked || *found) continue;
      if (context_.draining || context_.clock.Now() >= until)
        *found = awaited->TooLate();
      else
        co_await WaitForNews(kPollPeriod);
    }
    waits_for_.clear();
    if (looked) *answer = **std::move(found);
    answer->route = route;
    co_return looked;
  }

  // False when it could not be sent, or was too much: the connection ends then.
  asio::awaitable<bool> Send(const HttpAnswer& answer, FinishedRequest& finished,
                             Connection connection) {
    const Body body = finished.method == "HEAD" ? Body::kOmitted : Body::kSent;
    finished.status = answer.status;
    finished.route = answer.route;
    finished.bytes = body == Body::kSent ? answer.body.size() : 0;
    // A client that reads slowly holds the memory of its answer for as long.
    MemoryBudget::Share memory(context_.answers);
    const bool fits = memory.GrowTo(answer.body.size());
    std::string text;
    if (fits) {
      text = ResponseText(answer, finished.id, connection, body);
    } else {
      const HttpAnswer busy = context_.handler.Refusal(
          503, "the server is busy sending other large answers: ask again");
      finished.status = busy.status;
      finished.bytes = busy.body.size();
      text = ResponseText(busy, finished.id, Connection::kClose, body);
    }
    const bool sent = co_await Write(text);
    co_return sent&& fits;
  }

  asio::awaitable<bool> Write(const std::string& text) {
    SetDeadline(context_.limits.write_time);
    error_code failure;
    co_await asio::async_write(stream_, asio::buffer(text),
                               asio::redirect_error(asio::use_awaitable, failure));
    co_return !failure;
  }

  FinishedRequest Describe(const HttpRequest& request) const {
    return {.id = request.id.empty() ? context_.make_request_id() : request.id,
            .remote = peer_.name,
            .method = request.method,
            .target = request.target};
  }

  // Sends refusal_ and counts it.
  asio::awaitable<void> SendRefusal() {
    FinishedRequest finished = Describe(incoming_ ? incoming_->request : HttpRequest());
    const HttpAnswer answer = *std::move(refusal_);
    co_await Send(answer, finished, Connection::kClose);
    context_.handler.Finished(finished);
  }

  // Events as they come. Other servers may write them too, so the database is asked now and then;
  // silence is filled with comments, which tell us when the client has left.
  asio::awaitable<void> Follow(std::shared_ptr<EventSource> source, FinishedRequest& finished) {
    constexpr auto kPollPeriod = std::chrono::seconds(1);
    constexpr int kSilentPolls = 15;
    waits_for_ = source->job_id();
    is_stream_ = true;
    for (int silence = 0; !context_.draining;) {
      auto text = std::make_shared<Result<std::string>>(std::string());
      news_ = false;
      SetDeadline(context_.limits.request_time);
      std::function<void()> look = [text, source] { *text = source->Next(); };
      const bool looked = co_await OnWorker(context_.readers, std::move(look));
      if (!looked || !text->ok()) break;
      silence = text->value().empty() ? silence + 1 : 0;
      const bool comment = silence >= kSilentPolls;
      if (comment) silence = 0;
      const std::string sent = comment ? ": still here\n\n" : text->value();
      finished.bytes += sent.size();
      bool written = true;
      if (!sent.empty()) written = co_await Write(sent);
      if (!written) break;
      if (text->value().empty()) co_await WaitForNews(kPollPeriod);
    }
    waits_for_.clear();
    is_stream_ = false;
  }

  asio::awaitable<void> WaitForNews(std::chrono::seconds patience) {
    deadline_ = TimePoint(Seconds(1e18));
    if (!news_ && !context_.draining) {
      wake_.expires_after(patience);
      error_code ignored;
      co_await wake_.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
      wake_.expires_at(asio::steady_timer::time_point::max());
    }
  }

  // Tells the client that nothing follows, and lets it finish sending: closing with bytes unread
  // would destroy the answer on its way.
  asio::awaitable<void> Close() {
    error_code ignored;
    if (ended_) {
      Socket().close(ignored);
      co_return;
    }
    SetDeadline(Seconds(2));
    if constexpr (kIsTls) {
      co_await stream_.async_shutdown(asio::redirect_error(asio::use_awaitable, ignored));
    }
    auto& socket = Socket();
    socket.shutdown(asio::socket_base::shutdown_send, ignored);
    error_code failure;
    std::string rest(kChunk, '\0');
    while (!failure && !timed_out_ && !ended_ && !context_.draining)
      co_await socket.async_read_some(asio::buffer(rest),
                                      asio::redirect_error(asio::use_awaitable, failure));
    socket.close(ignored);
  }

  Stream stream_;
  const Peer peer_;
  SessionContext& context_;
  // Holds a header, or a chunk's header with its extensions, or trailers: what is larger is an
  // error.
  boost::beast::flat_buffer buffer_;
  std::optional<Parser> parser_{};
  // The following belong to the present request.
  std::shared_ptr<Incoming> incoming_{};
  std::optional<HttpAnswer> refusal_{};
  std::size_t body_limit_ = 0;
  bool wants_more_ = false;  // The client keeps the connection.
  bool served_ = false;      // At least one request was.
};

}  // namespace zeus::server
