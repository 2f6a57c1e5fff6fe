#include "zeus/http/client.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <httplib.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "zeus/base/file_descriptor.h"
#include "zeus/base/testing/temporary_directory.h"

namespace zeus::http {
namespace client_test {

using ::testing::HasSubstr;

// Answers every request with a description of it.
class EchoServer {
 public:
  EchoServer() : port_(server_.bind_to_any_port("127.0.0.1")) {
    const auto describe = [](const httplib::Request& request, httplib::Response& response) {
      response.set_header("Retry-After", "7");
      response.set_content(
          fmt::format("{} {} [{}] {} {} {}", request.method, request.target,
                      request.get_header_value("Authorization"), request.get_header_value("x"),
                      request.get_header_value("Content-Type"), request.body),
          "text/plain");
    };
    // A body without an end, a byte at a time.
    server_.Get("/dripping", [](const httplib::Request&, httplib::Response& response) {
      response.set_chunked_content_provider("text/plain", [](std::size_t, httplib::DataSink& sink) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        return sink.write("x", 1);
      });
    });
    server_.Get("/refused", [](const httplib::Request&, httplib::Response& response) {
      response.status = 503;
      response.set_content("full", "text/plain");
    });
    server_.Get("(/.*)", describe);
    server_.Post("(/.*)", describe);
    server_.Put("(/.*)", describe);
    server_.Delete("(/.*)", describe);
    thread_ = std::thread([this] { server_.listen_after_bind(); });
    while (!server_.is_running()) std::this_thread::yield();
  }
  ~EchoServer() {
    server_.stop();
    thread_.join();
  }
  EchoServer(const EchoServer&) = delete;
  EchoServer& operator=(const EchoServer&) = delete;

  std::string url(const std::string& host = "127.0.0.1") const {
    return fmt::format("http://{}:{}", host, port_);
  }

 private:
  httplib::Server server_;
  int port_;
  std::thread thread_;
};

// Accepts connections and never answers.
class SilentServer {
 public:
  SilentServer() {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* const generic = reinterpret_cast<sockaddr*>(&address);
    EXPECT_EQ(::bind(socket_.get(), generic, size), 0);
    EXPECT_EQ(::listen(socket_.get(), 8), 0);
    EXPECT_EQ(::getsockname(socket_.get(), generic, &size), 0);
    port_ = ntohs(address.sin_port);
  }
  std::string url() const { return fmt::format("http://127.0.0.1:{}", port_); }
  int socket() const { return socket_.get(); }

 private:
  FileDescriptor socket_{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  int port_ = 0;
};

std::unique_ptr<Client> Open(const ClientOptions& options) {
  return std::move(Client::Create(options)).value();
}

TEST(ClientTest, SendsMethodPathHeadersAndBody) {
  const EchoServer server;
  const auto client = Open({.url = server.url(), .token = "secret"});
  EXPECT_EQ(client->Send({.path = "/a?b=c", .headers = {{"x", "y"}}}).value().body,
            "GET /a?b=c [Bearer secret] y  ");
  EXPECT_EQ(client->Send({.method = Method::kPost, .path = "/a", .body = "{}"}).value().body,
            "POST /a [Bearer secret]  application/json {}");
  EXPECT_EQ(
      client
          ->Send(
              {.method = Method::kPut, .path = "/a", .body = "up 1", .content_type = "text/plain"})
          .value()
          .body,
      "PUT /a [Bearer secret]  text/plain up 1");
  EXPECT_EQ(client->Send({.method = Method::kDelete, .path = "/a"}).value().body,
            "DELETE /a [Bearer secret]   ");
}

TEST(ClientTest, ThePathOfTheUrlStandsBeforeThatOfTheCall) {
  const EchoServer server;
  const auto client = Open({.url = server.url() + "/behind/a/proxy/"});
  EXPECT_THAT(client->Send({.path = "/a"}).value().body, HasSubstr("GET /behind/a/proxy/a "));
}

TEST(ClientTest, AnyStatusIsAReply) {
  const EchoServer server;
  const auto client = Open({.url = server.url()});
  EXPECT_EQ(client->Send({.path = "/a"}).value().retry_after, Seconds(7));
  EXPECT_EQ(client->Send({.path = "nowhere"}).value().status, 404);
}

TEST(ClientTest, EveryAddressOfANameIsTried) {
  // "localhost" may mean ::1 first, where nobody listens.
  const EchoServer server;
  for (const bool keep : {false, true}) {
    const auto client = Open({.url = server.url("localhost"), .keep_connection = keep});
    for (int i = 0; i < 3; ++i) EXPECT_EQ(client->Send({.path = "/a"}).value().status, 200);
  }
}

TEST(ClientTest, AReplyBeyondTheLimitIsAnError) {
  const EchoServer server;
  const auto client = Open({.url = server.url(), .largest_body = 10});
  EXPECT_EQ(client->Send({.path = "/" + std::string(100, 'a')}).error().code,
            ErrorCode::kUnavailable);
}

TEST(ClientTest, AReplyWithoutAnEndIsGivenUp) {
  const EchoServer server;
  const auto slow = Open({.url = server.url(), .answer_timeout = Seconds(0.1)});
  EXPECT_EQ(slow->Send({.path = "/dripping"}).error().code, ErrorCode::kUnavailable);
  const auto small = Open({.url = server.url(), .largest_body = 20});
  EXPECT_THAT(small->Send({.path = "/dripping"}).error().message,
              HasSubstr("larger than 20 bytes: is it the right server?"));
}

TEST(ClientTest, AStreamArrivesInPiecesUntilItIsNotWanted) {
  const EchoServer server;
  const auto client = Client::Create({.url = server.url(), .answer_timeout = Seconds(60)}).value();
  std::size_t pieces = 0;
  const auto ended = client->Stream(
      {.path = "/dripping"}, [&](std::string_view bytes) { return ++pieces + bytes.size() < 20; });
  EXPECT_FALSE(ended.ok());
  EXPECT_GE(pieces, 2U);
  std::string text;
  const auto whole = client->Stream({.path = "/jobs"}, [&](std::string_view bytes) {
    text += bytes;
    return true;
  });
  ASSERT_TRUE(whole.ok()) << whole.error().message;
  EXPECT_EQ(whole.value().status, 200);
  EXPECT_EQ(whole.value().body, "");
  EXPECT_THAT(text, HasSubstr("GET /jobs"));
}

TEST(ClientTest, AStreamsErrorHasItsBody) {
  const EchoServer server;
  const auto client = Client::Create({.url = server.url()}).value();
  int pieces = 0;
  const auto reply =
      client->Stream({.path = "/refused"}, [&](std::string_view) { return ++pieces > 0; });
  ASSERT_TRUE(reply.ok()) << reply.error().message;
  EXPECT_EQ(reply.value().status, 503);
  EXPECT_EQ(reply.value().body, "full");
  EXPECT_EQ(pieces, 0);
}

TEST(ClientTest, AServerThatIsNotThereIsNamed) {
  std::string url;
  {
    const EchoServer gone;
    url = gone.url();
  }
  const auto reply = Open({.url = url})->Send({.path = "/a"});
  ASSERT_FALSE(reply.ok());
  EXPECT_EQ(reply.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(reply.error().message, HasSubstr("no answer from " + url));
}

TEST(ClientTest, AServerThatNeverAnswersEndsInATimeout) {
  const SilentServer server;
  const auto client = Open({.url = server.url(), .answer_timeout = Seconds(0.05)});
  const auto reply = client->Send({.path = "/a"});
  ASSERT_FALSE(reply.ok());
  EXPECT_THAT(reply.error().message, HasSubstr("if it serves TLS"));
}

// Sends a call to the server on a thread of its own; the call is on its way when this is made.
class RunningCall {
 public:
  RunningCall(Client& client, const SilentServer& server)
      : ok_(std::async(std::launch::async, [&] { return client.Send({.path = "/a"}).ok(); })),
        accepted_(::accept(server.socket(), nullptr, nullptr)) {
    char first = 0;
    EXPECT_EQ(::recv(accepted_.get(), &first, 1, 0), 1);
  }
  bool ok() { return ok_.get(); }

 private:
  std::future<bool> ok_;
  FileDescriptor accepted_;
};

TEST(ClientTest, AnInterruptionEndsTheRunningCallAlone) {
  const SilentServer server;
  const auto client = Open({.url = server.url(), .answer_timeout = Seconds(600)});
  for (int i = 0; i < 2; ++i) {
    RunningCall call(*client, server);
    client->Interrupt();
    EXPECT_FALSE(call.ok());
  }
}

TEST(ClientTest, ACancellationEndsTheRunningCallAndAllLaterOnes) {
  const SilentServer server;
  const auto client = Open({.url = server.url(), .answer_timeout = Seconds(600)});
  RunningCall call(*client, server);
  client->Cancel();
  EXPECT_FALSE(call.ok());
  EXPECT_FALSE(client->Send({.path = "/a"}).ok());
}

TEST(ClientTest, MalformedOptionsAreRefused) {
  EXPECT_EQ(Client::Create({.url = "host:80"}).error().code, ErrorCode::kInvalidArgument);
  zeus::testing::TemporaryDirectory directory;
  directory.AddFile("no.pem", "nothing");
  const auto file = (directory.path() / "no.pem").string();
  EXPECT_THAT(Client::Create({.url = "https://127.0.0.1", .authorities = file}).error().message,
              HasSubstr("holds no certificate"));
}

}  // namespace client_test
}  // namespace zeus::http
