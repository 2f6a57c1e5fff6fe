#pragma once

// Included by http_server.cc alone: what is in here takes half a minute to compile.

#include <boost/asio.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <functional>
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
  Session(Stream stream, std::string remote, SessionContext& context)
      : SessionControl(context.io),
        stream_(std::move(stream)),
        remote_(std::move(remote)),
        context_(context) {}

  asio::awaitable<void> Run() {
    bool goes_on = co_await Handshake();
    while (goes_on) goes_on = co_await ServeOne();
    co_await Close();
  }

  // Instead of Run(), when there are too many.
  asio::awaitable<void> Refuse() {
    const bool connected = co_await Handshake();
    if (connected) co_await SendRefusal(503, "the server has too many connections");
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
    if (context_.draining) co_return false;
    SetDeadline(served_ ? context_.limits.idle_time : context_.limits.header_time);
    idle_ = true;
    error_code failure;
    const std::size_t size = co_await stream_.async_read_some(
        buffer_.prepare(kChunk), asio::redirect_error(asio::use_awaitable, failure));
    idle_ = false;
    buffer_.commit(size);
    co_return !failure;
  }

  // Reads a request and answers it. False when the connection is to be closed.
  asio::awaitable<bool> ServeOne() {
    const bool arrives = co_await Arrives();
    if (!arrives) co_return false;
    parser_.emplace();
    parser_->header_limit(static_cast<std::uint32_t>(context_.limits.header));
    // LimitBody() knows it, once the header is there.
    parser_->body_limit(std::numeric_limits<std::uint64_t>::max());
    SetArrival(context_.limits.header_time);
    error_code failure;
    co_await http::async_read_header(stream_, buffer_, *parser_,
                                     asio::redirect_error(asio::use_awaitable, failure));
    std::optional<RequestRefusal> refusal = failure ? std::nullopt : CheckFields();
    if (!failure && !refusal) refusal = LimitBody();
    const bool has_body = !failure && !refusal && !parser_->is_done();
    if (has_body) failure = co_await ReadBody();
    arriving_ = false;
    if (refusal) {
      co_await SendRefusal(refusal->status, refusal->why);
      co_return false;
    }
    if (failure) {
      co_await Complain(failure);
      co_return false;
    }
    served_ = true;
    const bool goes_on = co_await Answer();
    co_return goes_on;
  }

  // What two servers in a row might read differently lets one smuggle requests past the first.
  std::optional<RequestRefusal> CheckFields() {
    const auto& message = parser_->get();
    const auto codings = message.count(http::field::transfer_encoding);
    const std::string coding(message[http::field::transfer_encoding]);
    if (codings > 1 || (codings == 1 && LowerCase(Trim(coding)) != "chunked"))
      return RequestRefusal{.status = 501,
                            .why = "this Transfer-Encoding is not known here: use chunked"};
    const auto hosts = message.count(http::field::host);
    if (hosts > 1 || (hosts == 0 && message.version() >= 11))
      return RequestRefusal{.status = 400, .why = "a request must have one Host"};
    return std::nullopt;
  }

  // Which limit holds is known when the header has been read.
  std::optional<RequestRefusal> LimitBody() {
    const auto& message = parser_->get();
    const bool large = context_.handler.TakesLargeBody(
        {.method = std::string(message.method_string()),
         .target = std::string(message.target()),
         .authorization = std::string(message[http::field::authorization])});
    body_limit_ = large ? context_.limits.large_body : context_.limits.body;
    const auto announced = parser_->content_length();
    if (announced && *announced > body_limit_)
      return RequestRefusal{.status = 413, .why = TooLargeText()};
    parser_->body_limit(body_limit_);
    return std::nullopt;
  }

  std::string TooLargeText() const {
    return fmt::format("the body is larger than {} bytes", body_limit_);
  }

  asio::awaitable<error_code> ReadBody() {
    SetArrival(context_.limits.body_time);
    error_code failure;
    if (LowerCase(std::string(parser_->get()[http::field::expect])) == "100-continue") {
      constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
      co_await asio::async_write(stream_, asio::buffer(kContinue),
                                 asio::redirect_error(asio::use_awaitable, failure));
      if (failure) co_return failure;
    }
    co_await http::async_read(stream_, buffer_, *parser_,
                              asio::redirect_error(asio::use_awaitable, failure));
    co_return failure;
  }

  // Answers what cannot be read, if there is still somebody to answer.
  asio::awaitable<void> Complain(error_code failure) {
    if (timed_out_) {
      co_await SendRefusal(408, "the request did not arrive in time");
    } else if (failure == http::error::header_limit) {
      co_await SendRefusal(431, "the header is too large");
    } else if (failure == http::error::body_limit) {
      const std::string why = TooLargeText();
      co_await SendRefusal(413, why);
    } else if (failure.category() == http::make_error_code(http::error::bad_method).category() &&
               failure != http::error::end_of_stream && failure != http::error::partial_message) {
      const std::string why = "this is not HTTP/1.1: " + failure.message();
      co_await SendRefusal(400, why);
    }
  }

  HttpRequest TakeRequest() {
    auto& message = parser_->get();
    const auto text = [&](auto field) { return std::string(message[field]); };
    HttpRequest request{.method = std::string(message.method_string()),
                        .target = std::string(message.target()),
                        .body = std::move(message.body()),
                        .authorization = text(http::field::authorization),
                        .accept = text(http::field::accept),
                        .last_event_id = text("Last-Event-ID"),
                        .remote = remote_};
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
    const bool wants_more = parser_->get().keep_alive();
    auto request = std::make_shared<HttpRequest>(TakeRequest());
    auto answer = std::make_shared<HttpAnswer>();
    FinishedRequest finished{
        .id = request->id, .remote = remote_, .method = request->method, .target = request->target};
    SetDeadline(context_.limits.request_time);
    std::function<void()> handle = [this, request, answer] {
      *answer = context_.handler.Handle(*request);
    };
    bool answered = true;
    const WaitsFor waits = context_.handler.Weigh(*request);
    if (waits == WaitsFor::kNothing) {
      handle();
    } else {
      answered = co_await OnWorker(PoolFor(waits), std::move(handle));
    }
    if (answered && answer->awaited) answered = co_await Await(answer);
    // Nobody waits for a late answer: it stays where it is, and the worker's alone.
    if (!answered)
      answer = std::make_shared<HttpAnswer>(
          context_.handler.Refusal(503, "the answer took too long: ask again"));
    else
      finished.user = request->user;
    if (!answer->changed_job.empty()) context_.wake_streams(answer->changed_job);
    const bool stays = wants_more && answered && !answer->events && !context_.draining;
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

  asio::awaitable<bool> Send(const HttpAnswer& answer, FinishedRequest& finished,
                             Connection connection) {
    const Body body = finished.method == "HEAD" ? Body::kOmitted : Body::kSent;
    finished.status = answer.status;
    finished.route = answer.route;
    finished.bytes = body == Body::kSent ? answer.body.size() : 0;
    const std::string text = ResponseText(answer, finished.id, connection, body);
    const bool sent = co_await Write(text);
    co_return sent;
  }

  asio::awaitable<bool> Write(const std::string& text) {
    SetDeadline(context_.limits.write_time);
    error_code failure;
    co_await asio::async_write(stream_, asio::buffer(text),
                               asio::redirect_error(asio::use_awaitable, failure));
    co_return !failure;
  }

  asio::awaitable<void> SendRefusal(int status, std::string why) {
    FinishedRequest finished{.id = context_.make_request_id(), .remote = remote_};
    const HttpAnswer answer = context_.handler.Refusal(status, why);
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
    SetDeadline(Seconds(2));
    if constexpr (kIsTls) {
      co_await stream_.async_shutdown(asio::redirect_error(asio::use_awaitable, ignored));
    }
    auto& socket = Socket();
    socket.shutdown(asio::socket_base::shutdown_send, ignored);
    error_code failure;
    std::string rest(kChunk, '\0');
    while (!failure && !timed_out_ && !context_.draining)
      co_await socket.async_read_some(asio::buffer(rest),
                                      asio::redirect_error(asio::use_awaitable, failure));
    socket.close(ignored);
  }

  Stream stream_;
  const std::string remote_;
  SessionContext& context_;
  boost::beast::flat_buffer buffer_{};
  std::optional<Parser> parser_{};
  std::size_t body_limit_ = 0;  // Of the present request.
  bool served_ = false;         // At least one request.
};

}  // namespace zeus::server
