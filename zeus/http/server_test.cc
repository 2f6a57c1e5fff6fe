#include "zeus/http/server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>

#include "zeus/base/testing/temporary_directory.h"
#include "zeus/http/client.h"

// The whole way from a client to a handler and back, without any job or plan behind it.
namespace zeus::http {
namespace server_test {

using ::testing::HasSubstr;
using ::testing::StartsWith;

// Answers every request with its method, target and body, on the threads that the target names.
class EchoHandler final : public RequestHandler {
 public:
  Work Classify(const Request& request) const override {
    if (request.target.starts_with("/read")) return Work::kRead;
    if (request.target.starts_with("/write")) return Work::kWrite;
    return request.target.starts_with("/slow") ? Work::kSlow : Work::kImmediate;
  }
  Admission Admit(const Request& header) override {
    if (header.target == "/closed") return {.refusal = RefusalAnswer(403, "no", "not for you")};
    return {};
  }
  Answer Handle(Request& request) override {
    return {.body = request.method + " " + request.target + " " + request.body,
            .content_type = "text/plain"};
  }
  Answer Refusal(int status, const std::string& why) override {
    return RefusalAnswer(status, "refused", why);
  }
  void Finished(const FinishedRequest&) override { ++finished_; }

  int finished() const { return finished_; }

 private:
  std::atomic<int> finished_ = 0;
};

class ServerTest : public ::testing::Test {
 protected:
  std::unique_ptr<Server> Start(const ServerOptions& options) {
    return std::move(Server::Start(options, handler_, counts_, clock_)).value();
  }

  SystemClock clock_;
  EchoHandler handler_;
  ConnectionCounts counts_;
};

TEST_F(ServerTest, AnswersOverTcpWhateverTheKindOfWork) {
  const auto server = Start({.listen = "127.0.0.1:0"});
  EXPECT_THAT(server->url(), StartsWith("http://127.0.0.1:"));
  const auto client = Client::Create({.url = server->url(), .keep_connection = true}).value();
  for (const std::string target : {"/at-once", "/read", "/write?a=b", "/slow"}) {
    EXPECT_EQ(client->Send({.path = target}).value().body, "GET " + target + " ");
    EXPECT_EQ(client->Send({.method = Method::kPost, .path = target, .body = "x"}).value().body,
              "POST " + target + " x");
  }
}

TEST_F(ServerTest, AnswersOverAUnixSocketAndRemovesItAtTheEnd) {
  zeus::testing::TemporaryDirectory directory;
  const std::string path = (directory.path() / "zeus.sock").string();
  {
    const auto server = Start({.listen = "unix:" + path});
    EXPECT_EQ(server->url(), "unix:" + path);
    EXPECT_FALSE(Server::Start({.listen = "unix:" + path}, handler_, counts_, clock_).ok());
    const auto client = Client::Create({.url = server->url()}).value();
    EXPECT_EQ(client->Send({.path = "/read"}).value().body, "GET /read ");
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST_F(ServerTest, ABodyIsReadOnlyWhenTheHeaderIsAdmitted) {
  const auto server = Start({.listen = "127.0.0.1:0", .limits = {.body = 100}});
  const auto client = Client::Create({.url = server->url()}).value();
  const auto status = [&](const std::string& path, std::size_t size) {
    return client->Send({.method = Method::kPost, .path = path, .body = std::string(size, 'x')})
        .value()
        .status;
  };
  EXPECT_EQ(status("/write", 100), 200);
  EXPECT_EQ(status("/write", 101), 413);
  EXPECT_EQ(status("/closed", 1), 403);
}

TEST_F(ServerTest, EveryConnectionBeyondTheLimitIsCounted) {
  const auto server =
      Start({.listen = "127.0.0.1:0", .limits = {.connections = 1, .per_address = 1}});
  const auto first = Client::Create({.url = server->url(), .keep_connection = true}).value();
  EXPECT_EQ(first->Send({.path = "/read"}).value().status, 200);
  const auto second = Client::Create({.url = server->url()}).value();
  EXPECT_EQ(second->Send({.path = "/read"}).value().status, 503);
  EXPECT_EQ(counts_.refused, 1U);
}

TEST_F(ServerTest, AShutdownClosesIdleConnectionsAndTheListener) {
  const auto server = Start({.listen = "127.0.0.1:0"});
  const auto client = Client::Create({.url = server->url(), .keep_connection = true}).value();
  EXPECT_EQ(client->Send({.path = "/read"}).value().status, 200);
  server->BeginShutdown();
  while (!server->WaitForShutdown(Seconds(1))) {
  }
  EXPECT_EQ(client->Send({.path = "/read"}).error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(handler_.finished(), 1);
}

TEST_F(ServerTest, MalformedOptionsAreRefused) {
  const auto message = [&](const ServerOptions& options) {
    const auto server = Server::Start(options, handler_, counts_, clock_);
    return server.ok() ? "" : server.error().message;
  };
  EXPECT_THAT(message({.listen = "host:x"}), HasSubstr("is not an address to listen on"));
  EXPECT_THAT(message({.listen = "unix:"}), HasSubstr("1 to 100 characters"));
  EXPECT_NE(message({.listen = "127.0.0.1:0", .tls = TlsFiles{.certificate = "/none"}}), "");
}

TEST(IsLocalTest, LoopbackAndUnixSocketsAreLocal) {
  for (const char* listen : {"8000", "127.0.0.1:8000", "[::1]:8000", "unix:/run/zeus.sock"})
    EXPECT_TRUE(IsLocal(listen)) << listen;
  EXPECT_FALSE(IsLocal("0.0.0.0:8000"));
}

}  // namespace server_test
}  // namespace zeus::http
