#include "zeus/kubernetes/grpc_call.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cstring>
#include <functional>
#include <string>
#include <thread>

#include "zeus/base/clock.h"
#include "zeus/base/file_descriptor.h"
#include "zeus/base/testing/temporary_directory.h"
#include "zeus/kubernetes/grpc_exchange.h"

namespace zeus::kubernetes {
namespace grpc_call_test {

using std::string_literals::operator""s;
using ::testing::HasSubstr;

std::string BigEndian(std::size_t number, int bytes) {
  std::string text;
  for (int i = bytes - 1; i >= 0; --i)
    text += static_cast<char>((number >> static_cast<unsigned>(8 * i)) & 0xffU);
  return text;
}

// RFC 9113, section 4.1.
std::string Frame(char type, char flags, std::string_view content, std::size_t stream = 1) {
  return BigEndian(content.size(), 3) + type + flags + BigEndian(stream, 4) + std::string(content);
}

// A header that is not indexed and not compressed: RFC 7541, section 6.2.2.
std::string Header(std::string_view name, std::string_view value) {
  return '\0' + BigEndian(name.size(), 1) + std::string(name) + BigEndian(value.size(), 1) +
         std::string(value);
}

constexpr char kEndsHeaders = 4;
constexpr char kEndsStream = 1;

const std::string kSettings = Frame(4, 0, "", 0);

std::string Headers(const std::string& headers, int flags = kEndsHeaders) {
  return Frame(1, static_cast<char>(flags), headers);
}
std::string Data(std::string_view bytes) { return Frame(0, 0, bytes); }
std::string Message(std::string_view message, char compressed = 0) {
  return compressed + BigEndian(message.size(), 4) + std::string(message);
}

const std::string kStart = kSettings + Headers(Header(":status", "200"));
std::string Trailers(const std::string& status, const std::string& message = "") {
  return Headers(Header("grpc-status", status) + Header("grpc-message", message),
                 kEndsHeaders | kEndsStream);
}

// The outcome of an exchange with a server that says `bytes`: the message, or the error's text.
std::string Outcome(std::string_view bytes, std::size_t piece = 1, std::size_t limit = 1 << 20) {
  GrpcExchange exchange({.method = "/v1.PodResourcesLister/List", .limit = limit});
  for (std::size_t at = 0; at < bytes.size() && !exchange.done(); at += piece) {
    const auto output = exchange.TakeOutput();
    if (!output.ok()) return output.error().message;
    const Status taken = exchange.Receive(bytes.substr(at, piece));
    if (!taken.ok()) return taken.error().message;
  }
  if (!exchange.done()) return "not done";
  const auto answer = exchange.Answer();
  return answer.ok() ? answer.value() : answer.error().message;
}

TEST(GrpcExchangeTest, AnAnswerInPiecesOfAnySize) {
  const std::string said = kStart + Data(Message("pods")) + Trailers("0");
  for (std::size_t piece = 1; piece <= said.size(); ++piece)
    EXPECT_EQ(Outcome(said, piece), "pods") << piece;
  const std::string prefix = Message("pods").substr(0, 3);
  EXPECT_EQ(Outcome(kStart + Data(prefix) + Data(Message("pods").substr(3)) + Trailers("0")),
            "pods");
  EXPECT_EQ(Outcome(kStart + Data(Message("")) + Trailers("0")), "");
}

TEST(GrpcExchangeTest, TheRequestIsOneOfGrpc) {
  GrpcExchange exchange({.method = "/v1.PodResourcesLister/List"});
  ASSERT_TRUE(exchange.Receive(kSettings).ok());
  const auto output = exchange.TakeOutput();
  ASSERT_TRUE(output.ok());
  EXPECT_TRUE(output.value().starts_with("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"));
  EXPECT_THAT(output.value(), HasSubstr(Frame(0, kEndsStream, Message(""))));
}

TEST(GrpcExchangeTest, ErrorsOfTheServerKeepTheirText) {
  EXPECT_THAT(Outcome(kStart + Trailers("12", "unknown service")),
              HasSubstr("code 12: unknown service"));
  EXPECT_THAT(Outcome(kStart + Trailers("x")), HasSubstr("code 2"));
  EXPECT_THAT(Outcome(kSettings + Headers(Header(":status", "200") + Header("grpc-status", "8"),
                                          kEndsHeaders | kEndsStream)),
              HasSubstr("code 8"));
  EXPECT_THAT(Outcome(kSettings + Headers(Header(":status", "503"), kEndsHeaders | kEndsStream)),
              HasSubstr("status \"503\""));
}

TEST(GrpcExchangeTest, AnswersThatAreNoneOfAUnaryCallAreRefused) {
  EXPECT_THAT(Outcome(kStart + Trailers("0")), HasSubstr("has no message"));
  EXPECT_THAT(Outcome(kStart + Data(Message("pods", 1)) + Trailers("0")), HasSubstr("compressed"));
  EXPECT_THAT(Outcome(kStart + Data(Message("pods") + "x") + Trailers("0")),
              HasSubstr("says 4 bytes and has 5"));
  EXPECT_THAT(Outcome(kStart + Data("\0\xff\xff\xff\xff"s) + Trailers("0")),
              HasSubstr("and has 0"));
  EXPECT_THAT(Outcome(kStart + Frame(0, kEndsStream, Message("pods"))),
              HasSubstr("no gRPC status"));
  EXPECT_THAT(Outcome(kStart + Frame(3, 0, BigEndian(8, 4))), HasSubstr("reset"));
}

TEST(GrpcExchangeTest, ALargeAnswerIsCutOff) {
  EXPECT_EQ(Outcome(kStart + Data(Message(std::string(1000, 'x'))) + Trailers("0"), 7, 1000),
            std::string(1000, 'x'));
  EXPECT_THAT(Outcome(kStart + Data(Message(std::string(1001, 'x'))) + Trailers("0"), 7, 1000),
              HasSubstr("larger than 1000"));
}

TEST(GrpcExchangeTest, BytesThatAreNoHttp2AreAnError) {
  EXPECT_NE(Outcome("HTTP/1.1 400 Bad Request\r\n\r\n"), "not done");
  EXPECT_EQ(Outcome(kStart), "not done");
}

// Answers one connection with `bytes`, and keeps it open until the client has gone.
class OneAnswer {
 public:
  OneAnswer(const std::string& path, std::string bytes)
      : listening_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
    std::memcpy(address.sun_path, path.data(), path.size());
    EXPECT_EQ(::bind(listening_.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    EXPECT_EQ(::listen(listening_.get(), 1), 0);
    thread_ = std::thread([this, bytes = std::move(bytes)] {
      const FileDescriptor socket(::accept4(listening_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      (void)::send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      char buffer[256];
      while (::recv(socket.get(), buffer, sizeof(buffer), 0) > 0) {
      }
    });
  }
  ~OneAnswer() { thread_.join(); }

 private:
  FileDescriptor listening_;
  std::thread thread_;
};

class GrpcCallTest : public ::testing::Test {
 protected:
  Result<std::string> Call(Seconds timeout = Seconds(60)) {
    return CallGrpc({.socket = path_, .method = "/v1.PodResourcesLister/List", .timeout = timeout},
                    clock_);
  }

  SystemClock clock_;
  testing::TemporaryDirectory folder_;
  const std::string path_ = (folder_.path() / "kubelet.sock").string();
};

TEST_F(GrpcCallTest, AsksOverAUnixSocket) {
  const OneAnswer server(path_, kStart + Data(Message("pods")) + Trailers("0"));
  const auto answer = Call();
  ASSERT_TRUE(answer.ok()) << answer.error().message;
  EXPECT_EQ(answer.value(), "pods");
}

TEST_F(GrpcCallTest, AServerThatSaysNothingIsGivenUp) {
  const OneAnswer server(path_, "");
  const auto answer = Call(Seconds(0.05));
  ASSERT_FALSE(answer.ok());
  EXPECT_THAT(answer.error().message, HasSubstr(path_ + ": no answer in time"));
}

TEST_F(GrpcCallTest, AMissingSocketIsNotFoundAndALongPathSaysSo) {
  const auto missing = Call();
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().code, ErrorCode::kNotFound);
  EXPECT_THAT(missing.error().message, HasSubstr(path_));
  const auto answer = CallGrpc({.socket = std::string(200, 'x'), .method = "/a/b"}, clock_);
  ASSERT_FALSE(answer.ok());
  EXPECT_EQ(answer.error().code, ErrorCode::kInvalidArgument);
}

TEST_F(GrpcCallTest, AFileWithoutAServerIsUnavailable) {
  const FileDescriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  std::memcpy(address.sun_path, path_.data(), path_.size());
  ASSERT_EQ(::bind(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  const auto answer = Call();
  ASSERT_FALSE(answer.ok());
  EXPECT_EQ(answer.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(answer.error().message, HasSubstr("nobody listens"));
}

}  // namespace grpc_call_test
}  // namespace zeus::kubernetes
