// Tests how a server reports connections to its handler, and on which sockets it listens.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "zeus/base/testing/temporary_directory.h"
#include "zeus/http/client.h"
#include "zeus/http/pushed_response.h"
#include "zeus/http/server.h"

namespace zeus::http {
namespace server_peer_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

struct NumberedPeer final : ConnectionPeer {
  explicit NumberedPeer(int given) : number(given) {}
  const int number;
};

class SilentEvents final : public EventSource {
 public:
  const std::string& topic() const override { return topic_; }
  Result<std::string> Next() override { return std::string(); }

 private:
  const std::string topic_ = "news";
};

class NeverAnswer final : public AwaitedAnswer {
 public:
  const std::string& topic() const override { return topic_; }
  std::optional<Answer> Next() override { return std::nullopt; }
  Seconds timeout() const override { return Seconds(1000); }
  Answer TimeoutAnswer() override { return {}; }

 private:
  const std::string topic_ = "news";
};

// Numbers its peers, and answers by the target of the request.
class PeerHandler final : public RequestHandler {
 public:
  Reception Connected(const AcceptedConnection& connection) override {
    const std::lock_guard lock(mutex_);
    ++accepted_;
    is_unix_ = connection.transport == AcceptedConnection::Transport::kUnixSocket;
    valid_ = ::fcntl(connection.descriptor, F_GETFD) >= 0;
    if (refuses_) return {.refusal = "uid 1001 has too many connections"};
    return {.peer = std::make_shared<NumberedPeer>(accepted_), .counting_key = "uid:1001"};
  }
  void Disconnected(const ConnectionPeer& peer) override {
    const std::lock_guard lock(mutex_);
    gone_.push_back(dynamic_cast<const NumberedPeer&>(peer).number);
    changed_.notify_all();
  }

  Work Classify(const Request& request) const override {
    return request.target == "/slow" ? Work::kSlow : Work::kImmediate;
  }
  Admission Admit(const Request&) override { return {}; }
  Answer Handle(Request& request) override {
    if (request.target == "/slow") Wait();
    {
      const std::lock_guard lock(mutex_);
      ++handled_;
      changed_.notify_all();
    }
    if (request.target == "/stream") return {.events = std::make_shared<SilentEvents>()};
    if (request.target == "/awaited") return {.awaited = std::make_shared<NeverAnswer>()};
    if (request.target == "/begun") return Begun();
    if (request.target == "/pushed") return {.pushed = std::make_shared<PushedResponse>([] {})};
    const auto* peer = dynamic_cast<const NumberedPeer*>(request.peer.get());
    return {.body = (peer ? std::to_string(peer->number) : "nobody") + " " + request.address +
                    " hold=" + request.zeus_hold};
  }
  Answer Refusal(int status, const std::string& why) override {
    return RefusalAnswer(status, "refused", why);
  }
  void Finished(const FinishedRequest&) override {}

  void Refuse() { refuses_ = true; }
  void Release() {
    const std::lock_guard lock(mutex_);
    released_ = true;
    changed_.notify_all();
  }
  void WaitUntilHandled(int count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return handled_ >= count; });
  }
  void WaitUntilEntered() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return entered_; });
  }
  // Returns the numbers of all peers that are gone, once there are so many.
  std::vector<int> WaitUntilGone(std::size_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, std::chrono::seconds(30), [&] { return gone_.size() >= count; });
    return gone_;
  }
  std::vector<int> gone() {
    const std::lock_guard lock(mutex_);
    return gone_;
  }
  bool is_unix() const { return is_unix_; }
  bool valid() const { return valid_; }
  int accepted() const { return accepted_; }

  void WaitUntilLeft() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return left_; });
  }

 private:
  // A stream that has begun and never ends by itself.
  Answer Begun() {
    auto response = std::make_shared<PushedResponse>([this] {
      const std::lock_guard lock(mutex_);
      left_ = true;
      changed_.notify_all();
    });
    response->Start({.body = "news", .content_type = "text/event-stream"});
    return {.pushed = std::move(response)};
  }
  void Wait() {
    std::unique_lock lock(mutex_);
    entered_ = true;
    changed_.notify_all();
    changed_.wait(lock, [this] { return released_; });
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<int> gone_{};
  int accepted_ = 0;
  int handled_ = 0;
  bool refuses_ = false;
  bool released_ = false;
  bool entered_ = false;
  bool left_ = false;
  bool is_unix_ = false;
  bool valid_ = false;
};

// A client that decides itself when it closes.
class RawClient {
 public:
  explicit RawClient(const std::string& path) {
    ::sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof address.sun_path - 1);
    EXPECT_EQ(
        ::connect(socket_.get(), reinterpret_cast<const ::sockaddr*>(&address), sizeof address), 0);
  }
  void Ask(std::string_view target, std::string_view method = "GET") {
    const std::string text =
        std::string(method) + " " + std::string(target) + " HTTP/1.1\r\nHost: x\r\n\r\n";
    EXPECT_EQ(::send(socket_.get(), text.data(), text.size(), MSG_NOSIGNAL),
              static_cast<::ssize_t>(text.size()));
  }
  std::string Read() {
    char text[4096];
    const auto size = ::recv(socket_.get(), text, sizeof text, 0);
    return size <= 0 ? "" : std::string(text, static_cast<std::size_t>(size));
  }

 private:
  FileDescriptor socket_{::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)};
};

class ServerPeerTest : public ::testing::Test {
 protected:
  std::unique_ptr<Server> Start(ServerOptions options = {}) {
    options.listen = "unix:" + path_;
    auto server = Server::Start(options, handler_, counts_, clock_);
    EXPECT_TRUE(server.ok()) << server.error().message;
    return std::move(server).value();
  }

  zeus::testing::TemporaryDirectory directory_;
  const std::string path_ = (directory_.path() / "zeus.sock").string();
  SystemClock clock_;
  PeerHandler handler_;
  ConnectionCounts counts_;
};

TEST_F(ServerPeerTest, AConnectionHasOnePeerForAllItsRequests) {
  const auto server = Start();
  {
    const auto first = Client::Create({.url = server->url(), .keep_connection = true}).value();
    const auto second = Client::Create({.url = server->url(), .keep_connection = true}).value();
    const Call call{.path = "/", .headers = {{"Zeus-Hold", "forever"}}};
    EXPECT_EQ(first->Send(call).value().body, "1 uid:1001 hold=forever");
    EXPECT_EQ(second->Send({.path = "/"}).value().body, "2 uid:1001 hold=");
    EXPECT_EQ(first->Send({.path = "/"}).value().body, "1 uid:1001 hold=");
    EXPECT_TRUE(handler_.is_unix());
    EXPECT_TRUE(handler_.valid());
    EXPECT_THAT(handler_.gone(), IsEmpty());
  }
  EXPECT_EQ(handler_.WaitUntilGone(2).size(), 2U);
}

TEST_F(ServerPeerTest, TheHeadOfAStreamHasNoBodyAndAnEnd) {
  const auto server = Start();
  RawClient client(path_);
  client.Ask("/begun", "HEAD");
  handler_.WaitUntilLeft();
  client.Ask("/");
  std::string received;
  while (received.find("hold=") == std::string::npos) {
    const std::string piece = client.Read();
    ASSERT_NE(piece, "") << received;
    received += piece;
  }
  EXPECT_THAT(received, HasSubstr("Content-Type: text/event-stream"));
  EXPECT_THAT(received, HasSubstr("\r\n\r\nHTTP/1.1 200 OK"));
  EXPECT_EQ(received.find("news"), std::string::npos);
}

TEST_F(ServerPeerTest, AClientThatLeavesIsNoticedWhateverIsOpen) {
  const auto server = Start();
  int number = 0;
  for (const std::string target : {"/", "/stream", "/awaited", "/pushed"}) {
    {
      RawClient client(path_);
      client.Ask(target);
      handler_.WaitUntilHandled(++number);
    }
    const TimePoint left = clock_.Now();
    EXPECT_EQ(handler_.WaitUntilGone(static_cast<std::size_t>(number)).size(),
              static_cast<std::size_t>(number))
        << target;
    // A second is the period at which streams look for themselves.
    EXPECT_LT(clock_.Now() - left, Seconds(0.5)) << target;
  }
}

TEST_F(ServerPeerTest, AClientThatLeavesBehindUnreadRequestsIsNoticed) {
  const auto server = Start();
  {
    RawClient client(path_);
    client.Ask("/awaited");
    handler_.WaitUntilHandled(1);
    client.Ask("/");
  }
  EXPECT_THAT(handler_.WaitUntilGone(1), ElementsAre(1));
}

TEST_F(ServerPeerTest, AHandlerThatStillAnswersIsWaitedFor) {
  const auto server = Start();
  {
    RawClient client(path_);
    client.Ask("/slow");
    handler_.WaitUntilEntered();
  }
  {
    RawClient other(path_);
    other.Ask("/");
    EXPECT_THAT(other.Read(), HasSubstr("2 uid:1001"));
  }
  EXPECT_THAT(handler_.WaitUntilGone(1), ElementsAre(2));
  handler_.Release();
  EXPECT_THAT(handler_.WaitUntilGone(2), ElementsAre(2, 1));
}

TEST_F(ServerPeerTest, TheEndOfTheServerDisconnectsEverybodyOnce) {
  auto server = Start();
  RawClient idle(path_);
  RawClient stream(path_);
  RawClient awaited(path_);
  RawClient pushed(path_);
  stream.Ask("/stream");
  awaited.Ask("/awaited");
  pushed.Ask("/pushed");
  idle.Ask("/");
  handler_.WaitUntilHandled(4);
  server.reset();
  EXPECT_THAT(handler_.gone(), ::testing::UnorderedElementsAre(1, 2, 3, 4));
}

TEST_F(ServerPeerTest, ARefusedConnectionLearnsWhy) {
  handler_.Refuse();
  const auto server = Start();
  RawClient client(path_);
  client.Ask("/");
  const std::string text = client.Read();
  EXPECT_THAT(text, StartsWith("HTTP/1.1 503 "));
  EXPECT_THAT(text, HasSubstr("uid 1001 has too many connections"));
  EXPECT_EQ(client.Read(), "");
  EXPECT_EQ(counts_.refused, 1U);
  EXPECT_THAT(handler_.gone(), IsEmpty());
}

TEST_F(ServerPeerTest, ConnectionsAreCountedByTheKeyOfTheHandler) {
  const auto server = Start({.limits = {.connections = 100, .per_address = 2}});
  RawClient first(path_);
  RawClient second(path_);
  RawClient third(path_);
  third.Ask("/");
  EXPECT_THAT(third.Read(), StartsWith("HTTP/1.1 503 "));
  second.Ask("/");
  EXPECT_THAT(second.Read(), StartsWith("HTTP/1.1 200 "));
}

TEST_F(ServerPeerTest, TwoServersShareAHandler) {
  const auto local = Start();
  ConnectionCounts tcp_counts;
  const auto tcp = Server::Start({.listen = "127.0.0.1:0"}, handler_, tcp_counts, clock_).value();
  for (const std::string& url : {local->url(), tcp->url()}) {
    const auto client = Client::Create({.url = url}).value();
    EXPECT_THAT(client->Send({.path = "/"}).value().body, HasSubstr(" hold=")) << url;
  }
  EXPECT_FALSE(handler_.is_unix());
  EXPECT_EQ(handler_.WaitUntilGone(2).size(), 2U);
}

TEST_F(ServerPeerTest, ATcpClientThatLeavesAStreamIsNoticed) {
  const auto server = Server::Start({.listen = "127.0.0.1:0"}, handler_, counts_, clock_).value();
  {
    const auto client = Client::Create({.url = server->url()}).value();
    client->Cancel();
    EXPECT_FALSE(client->Send({.path = "/awaited"}).ok());
  }
  const auto client =
      Client::Create({.url = server->url(), .answer_timeout = Seconds(0.1)}).value();
  EXPECT_FALSE(client->Send({.path = "/awaited"}).ok());
  EXPECT_EQ(handler_.WaitUntilGone(1).size(), 1U);
}

TEST_F(ServerPeerTest, AnInheritedSocketOutlivesTheServer) {
  const auto file = SocketFile::Listen(path_, {}).value();
  const auto descriptor = file->TakeDescriptor();
  for (int round = 1; round <= 2; ++round) {
    RawClient early(path_);  // Its request waits until there is a server.
    early.Ask("/");
    {
      const auto server =
          Server::Start({.listening_descriptor = descriptor->get()}, handler_, counts_, clock_);
      ASSERT_TRUE(server.ok()) << server.error().message;
      EXPECT_EQ(server.value()->url(), "unix:" + path_);
      EXPECT_THAT(early.Read(), HasSubstr(std::to_string(round) + " uid:1001"));
    }
    EXPECT_TRUE(std::filesystem::exists(path_));
  }
}

TEST_F(ServerPeerTest, AnInheritedTcpSocketIsServed) {
  const FileDescriptor listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  EXPECT_FALSE(
      Server::Start({.listening_descriptor = listener.get()}, handler_, counts_, clock_).ok());
  ASSERT_EQ(::listen(listener.get(), 5), 0);  // On a port that the system chooses.
  const auto server =
      Server::Start({.listening_descriptor = listener.get()}, handler_, counts_, clock_);
  ASSERT_TRUE(server.ok()) << server.error().message;
  EXPECT_THAT(server.value()->url(), StartsWith("http://0.0.0.0:"));
  std::string url = server.value()->url();
  url.replace(url.find("0.0.0.0"), 7, "127.0.0.1");
  EXPECT_EQ(Client::Create({.url = url}).value()->Send({.path = "/"}).value().status, 200);
}

TEST_F(ServerPeerTest, AUnixSocketHasThePermissionsThatWereAskedFor) {
  const auto server = Start({.permissions = {.mode = 0666}});
  struct ::stat state {};
  ASSERT_EQ(::lstat(path_.c_str(), &state), 0);
  EXPECT_EQ(state.st_mode & 0777U, 0666U);
}

}  // namespace server_peer_test
}  // namespace zeus::http
