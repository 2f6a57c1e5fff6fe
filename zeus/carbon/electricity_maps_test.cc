#include "zeus/carbon/electricity_maps.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <httplib.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <mutex>
#include <optional>
#include <thread>

#include "zeus/base/file.h"
#include "zeus/base/file_descriptor.h"
#include "zeus/base/testing/temporary_directory.h"
#include "zeus/base/wall_time_text.h"
#include "zeus/carbon/country_intensity.h"

namespace zeus {
namespace electricity_maps_test {

using std::chrono::hours;
using std::chrono::minutes;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr const char* kToken = "secret-token-1";

// The virtual clock begins on 2023-04-17 at midnight.
constexpr const char* kLatest =
    R"({"zone":"DE","carbonIntensity":384,"datetime":"2023-04-17T00:00:00.000Z",
        "emissionFactorType":"lifecycle","isEstimated":true})";
constexpr const char* kHistory = R"({"zone":"DE","history":[
    {"zone":"DE","carbonIntensity":300,"datetime":"2023-04-16T22:00:00.000Z","isEstimated":false},
    {"zone":"DE","carbonIntensity":null,"datetime":"2023-04-16T23:00:00.000Z"}]})";

// A real server on a free port of this machine, with what it shall answer.
class GridServer {
 public:
  GridServer() {
    const auto answer = [this](const std::string& body) {
      return [this, body](const httplib::Request& request, httplib::Response& response) {
        const std::lock_guard lock(mutex_);
        ++requests_;
        token_ = request.get_header_value("auth-token");
        target_ = request.target;
        response.status = status_;
        if (status_ == 429) response.set_header("Retry-After", "120");
        response.set_content(garbage_.value_or(body), "application/json");
      };
    };
    server_.Get("/v3/carbon-intensity/latest", answer(kLatest));
    server_.Get("/v3/carbon-intensity/history", answer(kHistory));
    port_ = server_.bind_to_any_port("127.0.0.1");
    thread_ = std::thread([this] { server_.listen_after_bind(); });
    while (!server_.is_running()) std::this_thread::yield();
  }
  ~GridServer() { Stop(); }
  GridServer(const GridServer&) = delete;
  GridServer& operator=(const GridServer&) = delete;

  void Stop() {
    if (!thread_.joinable()) return;
    server_.stop();
    thread_.join();
  }
  std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }

  void SetStatus(int status) {
    const std::lock_guard lock(mutex_);
    status_ = status;
  }
  void AnswerWith(std::string garbage) {
    const std::lock_guard lock(mutex_);
    garbage_ = std::move(garbage);
  }
  int requests() const { return Locked(requests_); }
  std::string token() const { return Locked(token_); }  // These two are of the last request.
  std::string target() const { return Locked(target_); }

 private:
  template <class T>
  T Locked(const T& value) const {
    const std::lock_guard lock(mutex_);
    return value;
  }

  mutable std::mutex mutex_;
  int status_ = 200;
  std::optional<std::string> garbage_;
  int requests_ = 0;
  std::string token_;
  std::string target_;

  httplib::Server server_;
  int port_ = 0;
  std::thread thread_;
};

// Takes connections, through the kernel, and never says a word.
class SilentServer {
 public:
  SilentServer() : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* generic = reinterpret_cast<sockaddr*>(&address);
    if (::bind(socket_.get(), generic, size) == 0 && ::listen(socket_.get(), 8) == 0 &&
        ::getsockname(socket_.get(), generic, &size) == 0)
      url_ = "http://127.0.0.1:" + std::to_string(ntohs(address.sin_port));
  }
  const std::string& url() const { return url_; }

 private:
  FileDescriptor socket_;
  std::string url_;
};

class ElectricityMapsTest : public ::testing::Test {
 protected:
  std::unique_ptr<LiveIntensity> Make(const std::string& url, Clock& clock) {
    auto maps =
        ElectricityMaps::Create(clock,
                                {.base_url = url,
                                 .zone = "DE",
                                 .token = kToken,
                                 .timeout = Seconds(0.2),
                                 .live = {.first_answer_timeout = Seconds(0.05),
                                          .cache_directory = directory_.path() / "cache"}},
                                std::make_unique<CountryAverage>(*FindCountry("DE").value()));
    EXPECT_TRUE(maps.ok());
    return std::move(maps).value();
  }
  std::unique_ptr<LiveIntensity> Make(const std::string& url) { return Make(url, clock_); }

  std::filesystem::path CacheFile() const {
    return directory_.path() / "cache" / "electricity-maps-DE.json";
  }

  zeus::testing::TemporaryDirectory directory_;
  VirtualClock clock_;
};

TEST_F(ElectricityMapsTest, W19SendsTheTokenAndAsksForTheZone) {
  GridServer server;
  const auto maps = Make(server.url());
  EXPECT_EQ(maps->Step(), clock_.Now() + minutes(15));
  EXPECT_EQ(server.token(), kToken);
  EXPECT_EQ(server.target(), "/v3/carbon-intensity/history?zone=DE");
  const auto now = maps->At(clock_.WallNow() + minutes(59));
  ASSERT_TRUE(now.ok());
  EXPECT_EQ(now.value().intensity, CarbonIntensity(384));
  EXPECT_EQ(now.value().source, "electricity maps DE");
  EXPECT_TRUE(now.value().estimated);
  EXPECT_EQ(now.value().note, "");
  const auto before = maps->At(clock_.WallNow() - minutes(90));
  EXPECT_EQ(before.value().intensity, CarbonIntensity(300));
  EXPECT_FALSE(before.value().estimated);
}

TEST_F(ElectricityMapsTest, W19TheDefaultAddressIsTheServiceOfToday) {
  EXPECT_EQ(ElectricityMapsOptions{.token = "t"}.base_url, "https://api.electricitymaps.com");
}

TEST_F(ElectricityMapsTest, W17AnHourWithoutAValueIsAnsweredAndSaidSo) {
  GridServer server;
  const auto maps = Make(server.url());
  maps->Step();
  const auto gap = maps->At(clock_.WallNow() - minutes(30));  // null in the history.
  ASSERT_TRUE(gap.ok());
  EXPECT_EQ(gap.value().intensity, CarbonIntensity(300));
  EXPECT_THAT(gap.value().note, HasSubstr("no value after 2023-04-16T22:00:00Z"));
  const auto later = maps->At(clock_.WallNow() + hours(8));
  ASSERT_TRUE(later.ok());
  EXPECT_THAT(later.value().source, StartsWith("mean of Germany"));
  EXPECT_THAT(later.value().note, HasSubstr("is used instead"));
}

TEST_F(ElectricityMapsTest, ByCoordinatesItAsksForThePlace) {
  GridServer server;
  auto maps = ElectricityMaps::Create(clock_,
                                      {.base_url = server.url(),
                                       .coordinates = {{.latitude = 52.52, .longitude = 13.405}},
                                       .token = kToken,
                                       .live = {.cache_directory = std::nullopt}},
                                      nullptr);
  ASSERT_TRUE(maps.ok());
  maps.value()->Step();
  EXPECT_THAT(server.target(), HasSubstr("?lat=52.5200&lon=13.4050"));
  EXPECT_TRUE(maps.value()->At(clock_.WallNow()).ok());
}

TEST_F(ElectricityMapsTest, ARefusedTokenMeansTheFallbackAndALongPause) {
  GridServer server;
  server.SetStatus(401);
  const auto maps = Make(server.url());
  EXPECT_EQ(maps->Step(), clock_.Now() + hours(1));
  const auto reading = maps->At(clock_.WallNow());
  ASSERT_TRUE(reading.ok());
  EXPECT_EQ(reading.value().intensity, CarbonIntensity(345));
  EXPECT_THAT(reading.value().note, HasSubstr("token was refused (status 401)"));
  EXPECT_THAT(reading.value().note, HasSubstr("mean of Germany in 2024 (Ember) is used instead"));
  EXPECT_THAT(reading.value().note, Not(HasSubstr(kToken)));
  EXPECT_EQ(server.requests(), 1);
}

TEST_F(ElectricityMapsTest, TooManyRequestsWaitsAsLongAsTheServerSays) {
  GridServer server;
  server.SetStatus(429);
  const auto maps = Make(server.url());
  EXPECT_EQ(maps->Step(), clock_.Now() + minutes(2));
  EXPECT_THAT(maps->At(clock_.WallNow()).value().note, HasSubstr("too many requests"));
}

TEST_F(ElectricityMapsTest, AnAnswerWithoutSenseIsAReason) {
  GridServer server;
  const auto maps = Make(server.url());
  for (const char* garbage :
       {"<html>", "", "[]", "{\"history\": 3}", "{\"carbonIntensity\": \"x\"}",
        "{\"carbonIntensity\": -1, \"datetime\": \"2023-04-17T00:00:00Z\"}"}) {
    server.AnswerWith(garbage);
    maps->Step();
    const auto reading = maps->At(clock_.WallNow());
    ASSERT_TRUE(reading.ok()) << garbage;
    EXPECT_THAT(reading.value().source, StartsWith("mean of Germany")) << garbage;
    EXPECT_THAT(reading.value().note, HasSubstr("without sense")) << garbage;
  }
}

TEST_F(ElectricityMapsTest, AfterAFailureItRecovers) {
  GridServer server;
  server.SetStatus(500);
  const auto maps = Make(server.url());
  EXPECT_EQ(maps->Step(), clock_.Now() + minutes(1));
  server.SetStatus(200);
  clock_.Advance(minutes(1));
  maps->Step();
  EXPECT_EQ(maps->At(clock_.WallNow()).value().source, "electricity maps DE");
}

TEST_F(ElectricityMapsTest, W19AServerThatNeverAnswersMeansTheFallback) {
  const SilentServer server;
  const auto maps = Make(server.url());
  maps->Step();
  const auto reading = maps->At(clock_.WallNow());
  ASSERT_TRUE(reading.ok());
  EXPECT_THAT(reading.value().note, HasSubstr("no answer from http://127.0.0.1"));
  EXPECT_THAT(reading.value().source, StartsWith("mean of Germany"));
}

TEST_F(ElectricityMapsTest, W17InTheBackgroundNobodyWaitsForAServerThatNeverAnswers) {
  const SilentServer server;
  SystemClock clock;
  const auto maps = Make(server.url(), clock);
  maps->Start();
  const auto reading = maps->At(clock.WallNow());
  ASSERT_TRUE(reading.ok());
  EXPECT_THAT(reading.value().source, StartsWith("mean of Germany"));
}

TEST_F(ElectricityMapsTest, WithoutAFallbackThereIsAReasonAndNoNumber) {
  auto maps = ElectricityMaps::Create(clock_,
                                      {.base_url = SilentServer().url(),
                                       .zone = "XX",
                                       .token = kToken,
                                       .timeout = Seconds(0.2),
                                       .live = {.cache_directory = std::nullopt}},
                                      nullptr);
  maps.value()->Step();
  const auto reading = maps.value()->At(clock_.WallNow());
  EXPECT_EQ(reading.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(reading.error().message, HasSubstr("there is no fallback for XX"));
}

TEST_F(ElectricityMapsTest, TheCacheServesWhenTheServerIsDown) {
  GridServer server;
  Make(server.url())->Step();
  server.Stop();
  clock_.Advance(minutes(30));  // No longer fresh: the server is asked, in vain.
  const auto maps = Make(server.url());
  maps->Step();
  const auto reading = maps->At(clock_.WallNow());
  ASSERT_TRUE(reading.ok());
  EXPECT_EQ(reading.value().intensity, CarbonIntensity(384));
  EXPECT_THAT(reading.value().note, HasSubstr("values are from the cache: no answer"));
}

TEST_F(ElectricityMapsTest, AStaleCacheServesForSomeHoursAndThenTheFallback) {
  GridServer server;
  Make(server.url())->Step();
  server.Stop();
  clock_.Advance(hours(6));
  auto maps = Make(server.url());
  maps->Step();
  EXPECT_THAT(maps->At(clock_.WallNow()).value().note,
              HasSubstr("no value after 2023-04-17T00:00:00Z"));
  clock_.Advance(hours(2));
  EXPECT_THAT(maps->At(clock_.WallNow()).value().source, StartsWith("mean of Germany"));
}

TEST_F(ElectricityMapsTest, AFreshCacheSparesTheServer) {
  GridServer server;
  Make(server.url())->Step();
  EXPECT_EQ(server.requests(), 2);
  clock_.Advance(minutes(5));
  const auto maps = Make(server.url());
  EXPECT_EQ(maps->Step(), clock_.Now() + minutes(10));
  EXPECT_EQ(server.requests(), 2);
  EXPECT_EQ(maps->At(clock_.WallNow()).value().note, "");
}

TEST_F(ElectricityMapsTest, ADamagedCacheIsAsGoodAsNone) {
  GridServer server;
  for (const char* content :
       {"", "{", "[]", "{\"format\": 2}",
        "{\"format\": 1, \"fetched_at\": \"2023-04-17T00:00:00Z\", \"values\": [{}]}"}) {
    directory_.AddFile("cache/electricity-maps-DE.json", content);
    const auto maps = Make(server.url());
    maps->Step();
    EXPECT_EQ(maps->At(clock_.WallNow()).value().source, "electricity maps DE") << content;
  }
}

TEST_F(ElectricityMapsTest, TheCacheIsPrivateAndHoldsNoToken) {
  GridServer server;
  Make(server.url())->Step();
  const auto mode = [](const std::filesystem::path& path) {
    return std::filesystem::status(path).permissions();
  };
  using std::filesystem::perms;
  EXPECT_EQ(mode(CacheFile()), perms::owner_read | perms::owner_write);
  EXPECT_EQ(mode(CacheFile().parent_path()), perms::owner_all);
  EXPECT_THAT(ReadSmallFile(CacheFile()).value(), Not(HasSubstr(kToken)));
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(CacheFile().parent_path()))
    files.push_back(entry.path().filename());
  EXPECT_THAT(files, ElementsAre("electricity-maps-DE.json"));
}

TEST_F(ElectricityMapsTest, ACacheThatCannotBeWrittenChangesNothing) {
  GridServer server;
  directory_.AddFile("cache", "a file where a directory should be");
  const auto maps = Make(server.url());
  maps->Step();
  EXPECT_EQ(maps->At(clock_.WallNow()).value().source, "electricity maps DE");
}

TEST_F(ElectricityMapsTest, RefusesWhatCannotWorkBeforeAnythingIsMeasured) {
  const auto mistake = [&](ElectricityMapsOptions options) {
    const auto maps = ElectricityMaps::Create(clock_, std::move(options), nullptr);
    return maps.ok() ? "" : maps.error().message;
  };
  EXPECT_THAT(mistake({.zone = "D&E", .token = "t"}), HasSubstr("\"D&E\" is no zone"));
  EXPECT_THAT(mistake({.zone = "DE", .token = "a b"}), HasSubstr("one word"));
  EXPECT_THAT(mistake({.zone = "DE", .token = "a\r\nHost: x"}), HasSubstr("one word"));
  EXPECT_THAT(mistake({.coordinates = {{.latitude = 91, .longitude = 0}}, .token = "t"}),
              HasSubstr("latitude"));
  EXPECT_THAT(mistake({.base_url = "http://grid.example.org", .zone = "DE", .token = "t"}),
              HasSubstr("in the clear"));
  EXPECT_THAT(mistake({.base_url = "http://127.grid.example", .zone = "DE", .token = "t"}),
              HasSubstr("in the clear"));
  EXPECT_THAT(mistake({.base_url = "https://grid.example/v3", .zone = "DE", .token = "t"}),
              HasSubstr("is no address"));
  EXPECT_THAT(mistake({.base_url = "grid.example.org", .zone = "DE", .token = "t"}),
              HasSubstr("is no address"));
}

}  // namespace electricity_maps_test
}  // namespace zeus
