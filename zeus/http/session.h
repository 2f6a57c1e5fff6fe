#pragma once

// Only server.cc includes this header: compiling Boost.Beast takes half a minute.

#include <boost/asio.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <fmt/format.h>
#include <sys/socket.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>  // Boost 1.74 does not include it where it needs it.

#include "zeus/base/clock.h"
#include "zeus/base/text.h"
#include "zeus/http/limits.h"
#include "zeus/http/message.h"
#include "zeus/http/pushed_response.h"
#include "zeus/http/session_control.h"
#include "zeus/http/tls.h"

namespace zeus::http {

namespace beast = boost::beast::http;

// One connection: a coroutine that reads a request, has it answered, and repeats. `Stream` is a
// socket, or TLS on one. The value of every co_await is bound to a name first: GCC 12 miscompiles
// conditions and temporaries that span an await.
template <class Stream>
class Session final : public SessionControl,
                      public PushedResponse::Outlet,
                      public std::enable_shared_from_this<Session<Stream>> {
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

  // Replaces Run() when there are too many connections, or the handler refuses this one: reads one
  // request, and answers it if it is vital.
  asio::awaitable<void> RunReserved() {
    bool goes_on = co_await Handshake();
    if (goes_on) goes_on = co_await Arrives();
    if (goes_on) goes_on = co_await ReadHeader();
    arriving_ = false;
    if (goes_on && !parser_->is_done()) goes_on = false;
    if (goes_on) goes_on = context_.handler.Admit(incoming_->request).vital && !IsRefused();
    wants_more_ = false;
    if (goes_on) {
      answering_ = true;
      co_await AnswerRequest();
      answering_ = false;
    } else if (!ended_) {
      Refuse(503, IsRefused() ? peer_.refusal
                              : "the server has too many connections, in all or from your address");
      co_await SendRefusal();
    }
    co_await Close();
  }

 private:
  using Parser = beast::request_parser<beast::string_body>;
  static constexpr bool kIsTls = requires(Stream& stream) { stream.next_layer(); };
  static constexpr std::size_t kChunk = 4096;

  auto& Socket() {
    if constexpr (kIsTls) {
      return stream_.next_layer();
    } else {
      return stream_;
    }
  }

  bool IsRefused() const { return !peer_.refusal.empty(); }

  void CancelSocket() override {
    error_code ignored;
    Socket().cancel(ignored);
  }

  void SetDeadline(Seconds time) {
    timed_out_ = false;
    deadline_ = context_.clock.Now() + time;
  }

  // As SetDeadline(), for data that the client sends. The time is short during a shutdown.
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
      if (!failure) certificate_ = CertificateOfClient(*stream_.native_handle());
    }
    co_return !failure;
  }

  // Waits for the first bytes of a request. Returns false when none come.
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

  // Reads a request and answers it. Returns false when the connection is to be closed.
  asio::awaitable<bool> ServeOne() {
    const bool arrives = co_await Arrives();
    if (!arrives) co_return false;
    refusal_.reset();
    bool complete = co_await ReadHeader();
    if (complete && !parser_->is_done()) complete = co_await ReadBody();
    arriving_ = false;
    if (complete) {
      served_ = true;
      const bool goes_on = co_await AnswerRequest();
      co_return goes_on;
    }
    if (refusal_) co_await SendRefusal();
    incoming_.reset();
    parser_.reset();
    co_return false;
  }

  // Returns false when the request cannot be answered; refusal_ is set if the client is to be told.
  asio::awaitable<bool> ReadHeader() {
    incoming_ = std::make_shared<Incoming>(context_.bodies);
    parser_.emplace();
    parser_->header_limit(static_cast<std::uint32_t>(context_.limits.header));
    // AdmitBody() sets the limit once the header is known.
    parser_->body_limit(std::numeric_limits<std::uint64_t>::max());
    SetArrival(context_.limits.header_time);
    error_code failure;
    co_await beast::async_read_header(stream_, buffer_, *parser_,
                                      asio::redirect_error(asio::use_awaitable, failure));
    if (failure) {
      Complain(failure);
      co_return false;
    }
    incoming_->request = CopyHeader();
    CheckFields();
    co_return !refusal_;
  }

  void Refuse(int status, const std::string& why) {
    refusal_ = context_.handler.Refusal(status, why);
  }

  // Refuses headers that a proxy in front of us might read differently: they would let a client
  // smuggle a second request past it.
  void CheckFields() {
    const auto& message = parser_->get();
    const auto codings = message.count(beast::field::transfer_encoding);
    const std::string coding(message[beast::field::transfer_encoding]);
    if (codings > 1 || (codings == 1 && LowerCase(Trim(coding)) != "chunked"))
      return Refuse(501, "this Transfer-Encoding is not known here: use chunked");
    const auto hosts = message.count(beast::field::host);
    if (hosts > 1 || (hosts == 0 && message.version() >= 11))
      return Refuse(400, "a request must have one Host");
    const auto fields = static_cast<std::size_t>(std::distance(message.begin(), message.end()));
    if (fields > context_.limits.fields)
      return Refuse(431, fmt::format("the header has more than {} fields", context_.limits.fields));
  }

  // Decides by the header whether the body is read; sets refusal_ if not.
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

  // Returns false as ReadHeader() does.
  asio::awaitable<bool> ReadBody() {
    if (!AdmitBody()) co_return false;
    SetArrival(context_.limits.body_time);
    error_code failure;
    if (LowerCase(std::string(parser_->get()[beast::field::expect])) == "100-continue") {
      constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
      co_await asio::async_write(stream_, asio::buffer(kContinue),
                                 asio::redirect_error(asio::use_awaitable, failure));
      if (failure) co_return false;
    }
    parser_->eager(true);
    while (!parser_->is_done()) {
      co_await beast::async_read_some(stream_, buffer_, *parser_,
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

  // Sets refusal_ for a request that cannot be read, unless the client has left.
  void Complain(error_code failure) {
    if (timed_out_) {
      Refuse(408, "the request did not arrive in time");
    } else if (failure == beast::error::header_limit) {
      Refuse(431, "the header is too large");
    } else if (failure == beast::error::buffer_overflow) {
      Refuse(431, "the chunk extensions or trailers are too large");
    } else if (failure == beast::error::body_limit) {
      Refuse(413, TooLargeText());
    } else if (failure.category() == beast::make_error_code(beast::error::bad_method).category() &&
               failure != beast::error::end_of_stream && failure != beast::error::partial_message) {
      Refuse(400, "this is not HTTP/1.1: " + failure.message());
    }
  }

  // Copies the fields that handlers use. This happens before the body is read, so that no trailer
  // can change them.
  Request CopyHeader() {
    const auto& message = parser_->get();
    const auto text = [&](auto field) { return std::string(message[field]); };
    wants_more_ = message.keep_alive();
    knows_chunks_ = message.version() >= 11;
    Request request{.method = std::string(message.method_string()),
                    .target = std::string(message.target()),
                    .authorization = text(beast::field::authorization),
                    .accept = text(beast::field::accept),
                    .accept_encoding = text(beast::field::accept_encoding),
                    .if_none_match = text(beast::field::if_none_match),
                    .last_event_id = text("Last-Event-ID"),
                    .zeus_request = text("X-Zeus-Request"),
                    .zeus_hold = text("Zeus-Hold"),
                    .host = text(beast::field::host),
                    .origin = text(beast::field::origin),
                    .fetch_site = text("Sec-Fetch-Site"),
                    .remote = peer_.name,
                    .address = peer_.address};
    if (const auto wanted = message.find("Zeus-Namespace"); wanted != message.end())
      request.wanted_name_space = std::string(wanted->value());
    const std::string id = text("X-Request-Id");
    request.id = IsPlainId(id) ? id : context_.make_request_id();
    request.peer = peer_.attendance->peer();
    request.certificate = certificate_;
    return request;
  }

  // Runs `task` on a worker and waits for its end. Returns false when the deadline came first; the
  // task then goes on without us.
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

  // Has the request answered and sends the answer. Returns whether the connection goes on.
  asio::awaitable<bool> AnswerRequest() {
    const TimePoint start = context_.clock.Now();
    parser_.reset();
    auto incoming = std::move(incoming_);
    auto answer = std::make_shared<Answer>();
    FinishedRequest finished = Describe(incoming->request);
    SetDeadline(context_.limits.request_time);
    std::function<void()> handle = [this, incoming, answer] {
      *answer = context_.handler.Handle(incoming->request);
    };
    bool answered = true;
    const Work work = context_.handler.Classify(incoming->request);
    if (work == Work::kImmediate) {
      handle();
    } else {
      answered = co_await OnWorker(PoolFor(work), std::move(handle));
    }
    handle = nullptr;
    if (answered && answer->awaited) answered = co_await Await(answer);
    if (!answered && gone_) {
      ended_ = true;  // The socket is closed at once.
      finished.duration = context_.clock.Now() - start;
      context_.handler.Finished(finished);
      co_return false;
    }
    // A late answer still belongs to the worker, so another object takes its place.
    if (!answered)
      answer = std::make_shared<Answer>(
          context_.handler.Refusal(503, "the answer took too long: ask again"));
    else
      finished.user = incoming->request.user;
    incoming.reset();
    if (answered && answer->pushed) {
      const bool completed = co_await SendPushed(answer->pushed, finished);
      finished.duration = context_.clock.Now() - start;
      context_.handler.Finished(finished);
      co_return completed;
    }
    if (!answer->changed_topic.empty()) context_.wake_topic(answer->changed_topic);
    const bool stays = wants_more_ && answered && !answer->events && !context_.draining;
    const Connection connection = stays ? Connection::kKeepAlive : Connection::kClose;
    const bool sent = co_await Send(*answer, finished, connection);
    const bool follows = sent && answer->events && finished.method != "HEAD";
    if (follows) co_await Follow(answer->events, finished);
    finished.duration = context_.clock.Now() - start;
    context_.handler.Finished(finished);
    co_return sent&& stays;
  }

  WorkerPool& PoolFor(Work work) {
    if (work == Work::kSlow) return context_.slow_workers;
    return work == Work::kWrite ? context_.workers : context_.readers;
  }

  // Polls an awaited answer and puts it into `answer`. Another server on the same database may
  // complete it unnoticed by us, so it is polled now and then even without news. Returns false when
  // one poll took too long.
  asio::awaitable<bool> Await(std::shared_ptr<Answer> answer) {
    constexpr auto kPollPeriod = std::chrono::seconds(2);
    const std::shared_ptr<AwaitedAnswer> awaited = answer->awaited;
    const std::string route = answer->route;
    const TimePoint until = context_.clock.Now() + awaited->timeout();
    topic_ = awaited->topic();
    auto found = std::make_shared<std::optional<Answer>>();
    bool looked = true;
    while (looked && !*found) {
      if (gone_) {
        looked = false;
        break;
      }
      news_ = false;
      SetDeadline(context_.limits.request_time);
      std::function<void()> look = [found, awaited] { *found = awaited->Next(); };
      looked = co_await OnWorker(context_.slow_workers, std::move(look));
      if (!looked || *found) continue;
      if (context_.draining || context_.clock.Now() >= until)
        *found = awaited->TimeoutAnswer();
      else
        co_await WaitForNews(kPollPeriod);
    }
    topic_.clear();
    if (looked) *answer = **std::move(found);
    answer->route = route;
    co_return looked;
  }

  // Returns false when the connection must end: the answer could not be sent, or the budget for
  // answers was exhausted and 503 was sent instead.
  asio::awaitable<bool> Send(const Answer& answer, FinishedRequest& finished,
                             Connection connection) {
    const Body body = finished.method == "HEAD" ? Body::kOmitted : Body::kSent;
    finished.status = answer.status;
    finished.route = answer.route;
    finished.bytes = body == Body::kSent ? answer.body.size() : 0;
    // A client that reads slowly occupies the memory of its answer for as long.
    MemoryBudget::Share memory(context_.answers);
    const bool fits = memory.GrowTo(answer.body.size());
    std::string text;
    if (fits) {
      text = ResponseText(answer, finished.id, connection, body);
    } else {
      const Answer busy = context_.handler.Refusal(
          503, "the server is busy sending other large answers: ask again");
      finished.status = busy.status;
      finished.bytes = busy.body.size();
      text = ResponseText(busy, finished.id, Connection::kClose, body);
    }
    const bool sent = co_await Write(text);
    co_return sent&& fits;
  }

  asio::awaitable<bool> Write(const std::string& text) {
    const Limits& limits = context_.limits;
    const bool last = context_.draining && is_stream_;
    SetDeadline(last ? std::min(limits.write_time, limits.last_write) : limits.write_time);
    writing_ = true;
    error_code failure;
    co_await asio::async_write(stream_, asio::buffer(text),
                               asio::redirect_error(asio::use_awaitable, failure));
    writing_ = false;
    co_return !failure;
  }

  FinishedRequest Describe(const Request& request) const {
    return {.id = request.id.empty() ? context_.make_request_id() : request.id,
            .remote = peer_.name,
            .method = request.method,
            .target = request.target};
  }

  // Sends refusal_ and reports it to the handler.
  asio::awaitable<void> SendRefusal() {
    FinishedRequest finished = Describe(incoming_ ? incoming_->request : Request());
    const Answer answer = *std::move(refusal_);
    co_await Send(answer, finished, Connection::kClose);
    context_.handler.Finished(finished);
  }

  // Sends events as they come. Other servers may add events too, so the source is polled once a
  // second; a comment now and then in a silent stream shows whether the client is still there.
  asio::awaitable<void> Follow(std::shared_ptr<EventSource> source, FinishedRequest& finished) {
    constexpr auto kPollPeriod = std::chrono::seconds(1);
    constexpr int kSilentPolls = 15;
    topic_ = source->topic();
    is_stream_ = true;
    for (int silence = 0; !context_.draining && !gone_;) {
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
    topic_.clear();
    is_stream_ = false;
    if (gone_) ended_ = true;  // The socket is closed at once.
  }

  // Sends a response as another thread completes it. Returns whether the connection goes on.
  asio::awaitable<bool> SendPushed(std::shared_ptr<PushedResponse> response,
                                   FinishedRequest& finished) {
    RingWhenNews(*response);
    client_left_ = gone_;
    WatchForLeaving();
    is_stream_ = true;
    std::optional<bool> goes_on;
    while (!goes_on) {
      news_ = false;
      if (gone_) client_left_ = true;
      if (!unsent_.empty()) co_await SendUnsent();
      PushedResponse::News news =
          held_news_ ? *std::exchange(held_news_, std::nullopt) : response->Next();
      if (news.whole) {
        StopWatching();
        goes_on = co_await SendWhole(*news.whole, finished);
      } else if (client_left_ || news.aborted) {
        goes_on = false;
        ended_ = true;  // The socket is closed at once.
        if (client_left_) response->ClientLeft();
      } else if (news.empty()) {
        co_await WaitForPushed(*response, finished);
      } else {
        goes_on = co_await SendPiece(news, finished);
        if (finished.method == "HEAD") response->ClientLeft();
      }
    }
    is_stream_ = false;
    StopWatching();
    response->WakeBy(nullptr);
    co_return *goes_on;
  }

  // Has the thread of the sockets woken whenever the response has news for this connection.
  void RingWhenNews(PushedResponse& response) {
    const std::weak_ptr<Session> weak = this->weak_from_this();
    const auto wake = [weak] {
      if (const auto self = weak.lock()) self->context_.bell.Ring(self);
    };
    response.WakeBy(wake, context_.courier);
  }

  asio::awaitable<void> SendUnsent() {
    const std::string rest = std::exchange(unsent_, {});
    const bool written = co_await Write(rest);
    if (!written) client_left_ = true;
  }

  // Returns whether the connection goes on once the response has ended; nullopt before its end.
  asio::awaitable<std::optional<bool>> SendPiece(PushedResponse::News& news,
                                                 FinishedRequest& finished) {
    const std::string text = PieceText(news, finished);
    const bool written = co_await Write(text);
    if (!written) client_left_ = true;
    std::optional<bool> goes_on;
    if (written && (news.ended || finished.method == "HEAD"))
      goes_on = wants_more_ && knows_chunks_ && !context_.draining;
    co_return goes_on;
  }

  asio::awaitable<bool> SendWhole(const Answer& answer, FinishedRequest& finished) {
    const bool stays = wants_more_ && !context_.draining;
    const bool sent =
        co_await Send(answer, finished, stays ? Connection::kKeepAlive : Connection::kClose);
    co_return sent&& stays;
  }

  // The head if it is among the news, and the bytes as one chunk.
  std::string PieceText(const PushedResponse::News& news, FinishedRequest& finished) const {
    std::string text;
    if (news.head) {
      finished.status = news.head->status;
      finished.route = news.head->route;
      const bool stays = wants_more_ && knows_chunks_ && !context_.draining;
      text =
          ResponseText(*news.head, finished.id, stays ? Connection::kKeepAlive : Connection::kClose,
                       knows_chunks_ ? Body::kChunked : Body::kUntilClose);
    }
    if (finished.method == "HEAD") return text;
    finished.bytes += news.bytes.size();
    if (!knows_chunks_) return text + news.bytes;
    if (!news.bytes.empty())
      fmt::format_to(std::back_inserter(text), "{:x}\r\n{}\r\n", news.bytes.size(), news.bytes);
    if (news.ended) text += "0\r\n\r\n";
    return text;
  }

  void WakeForNews() override {
    if (send_at_once_ && send_at_once_()) return;
    Resume();
  }
  // The coroutine sends what is left.
  void Resume() {
    send_at_once_ = nullptr;
    news_ = true;
    wake_.cancel();
  }

  bool SendHere(const PushedResponse::SharedBytes& bytes) override {
    if (send_at_once_ == nullptr) return false;
    if (!SendShared(bytes, *finished_)) Resume();
    return true;
  }

  // Sends a piece that has come without resuming the coroutine, which would take several times as
  // long. Returns false when the coroutine must go on: with what is left of the piece in unsent_,
  // or with news that it alone understands in held_news_.
  bool SendAtOnce(PushedResponse& response, FinishedRequest& finished) {
    if (const auto offered = response.NextOffered())
      return *offered == nullptr || (*offered)->empty() || SendShared(*offered, finished);
    PushedResponse::News news = response.Next();
    if (news.empty()) return true;
    if (news.whole || news.head || news.ended || news.aborted) {
      held_news_ = std::move(news);
      return false;
    }
    return SendNow(PieceText(news, finished));
  }

  // Sends bytes that other connections send as well. Returns as SendAtOnce().
  bool SendShared(const PushedResponse::SharedBytes& bytes, FinishedRequest& finished) {
    finished.bytes += bytes->size();
    return SendNow(knows_chunks_ ? context_.chunk.Of(bytes) : *bytes);
  }

  // Sends as much as the socket takes without waiting; the rest is in unsent_ when this is false.
  bool SendNow(const std::string& text) {
    const auto sent =
        ::send(Socket().native_handle(), text.data(), text.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent == static_cast<::ssize_t>(text.size())) return true;
    unsent_ = text.substr(static_cast<std::size_t>(std::max<::ssize_t>(sent, 0)));
    return false;
  }

  asio::awaitable<void> WaitForPushed(PushedResponse& response, FinishedRequest& finished) {
    deadline_ = kNoDeadline;
    if (news_ || client_left_ || gone_) co_return;
    if constexpr (!kIsTls) {
      send_at_once_ = [&response, &finished, this] { return SendAtOnce(response, finished); };
      finished_ = &finished;
      response.SetOutlet(this);
    }
    error_code ignored;
    co_await wake_.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
    response.SetOutlet(nullptr);
    send_at_once_ = nullptr;
    if (timed_out_ || ended_) client_left_ = true;
  }

  // Notices that the client closes its end while a response is on its way. A client that sends the
  // next request already is not watched any further.
  void WatchForLeaving() {
    Socket().async_wait(
        asio::socket_base::wait_read, [self = this->shared_from_this()](error_code failure) {
          if (failure) return;
          char byte = 0;
          const auto size =
              ::recv(self->Socket().native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
          if (size > 0) return;
          self->client_left_ = true;
          self->wake_.cancel();
        });
  }
  void StopWatching() { CancelSocket(); }

  asio::awaitable<void> WaitForNews(std::chrono::seconds timeout) {
    deadline_ = kNoDeadline;
    if (!news_ && !context_.draining && !gone_) {
      wake_.expires_after(timeout);
      error_code ignored;
      co_await wake_.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
      wake_.expires_at(asio::steady_timer::time_point::max());
    }
  }

  // Shuts down our half of the connection and reads the rest of the client's: closing a socket with
  // unread bytes makes the kernel discard the answer that is on its way.
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
  // Holds a header, or a chunk's header with its extensions, or trailers. Anything larger is an
  // error.
  boost::beast::flat_buffer buffer_;
  std::optional<Parser> parser_{};
  std::optional<ClientCertificate> certificate_{};  // Known after the handshake.
  // The following belong to the request that is being served.
  std::shared_ptr<Incoming> incoming_{};
  std::optional<Answer> refusal_{};
  std::size_t body_limit_ = 0;
  std::function<bool()> send_at_once_{};  // Not null while a pushed response waits for news.
  FinishedRequest* finished_ = nullptr;   // The request of that response.
  std::string unsent_{};
  std::optional<PushedResponse::News> held_news_{};
  bool knows_chunks_ = false;  // The client speaks HTTP/1.1.
  bool client_left_ = false;   // It closed its end while a response was on its way.
  bool wants_more_ = false;    // The client wants to keep the connection.
  bool served_ = false;        // The connection has served a request.
};

}  // namespace zeus::http
