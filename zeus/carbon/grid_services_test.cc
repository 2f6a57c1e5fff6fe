#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <httplib.h>

#include <functional>
#include <mutex>
#include <thread>

#include "zeus/base/file.h"
#include "zeus/base/testing/temporary_directory.h"
#include "zeus/base/wall_time_text.h"
#include "zeus/carbon/carbon_accounting.h"
#include "zeus/carbon/electricity_maps.h"
#include "zeus/carbon/gb_carbon_intensity.h"
#include "zeus/carbon/watt_time.h"

namespace zeus {
namespace grid_services_test {

using std::chrono::hours;
using std::chrono::minutes;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// A real server on a free port of this machine. `answer` says what it answers to a request.
class GridServer {
 public:
  using Answer = std::function<void(const httplib::Request&, httplib::Response&)>;
  explicit GridServer(Answer answer) : answer_(std::move(answer)) {
    server_.Get(".*", [this](const httplib::Request& request, httplib::Response& response) {
      const std::lock_guard lock(mutex_);
      targets_.push_back(request.target);
      answer_(request, response);
    });
    port_ = server_.bind_to_any_port("127.0.0.1");
    thread_ = std::thread([this] { server_.listen_after_bind(); });
    while (!server_.is_running()) std::this_thread::yield();
  }
  ~GridServer() {
    server_.stop();
    thread_.join();
  }
  GridServer(const GridServer&) = delete;
  GridServer& operator=(const GridServer&) = delete;

  std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }
  void AnswerWith(Answer answer) {
    const std::lock_guard lock(mutex_);
    answer_ = std::move(answer);
  }
  std::vector<std::string> targets() const {
    const std::lock_guard lock(mutex_);
    return targets_;
  }

 private:
  mutable std::mutex mutex_;
  Answer answer_;
  std::vector<std::string> targets_;
  httplib::Server server_;
  int port_ = 0;
  std::thread thread_;
};

void Body(httplib::Response& response, const std::string& json) {
  response.set_content(json, "application/json");
}

class GridServicesTest : public ::testing::Test {
 protected:
  LiveOptions Live() const {
    return {.first_answer_timeout = Seconds(0.05),
            .cache_directory = directory_.path() / "cache",
            .with_forecast = true};
  }
  std::string Write(const std::string& text, const std::string& name = "secret") {
    directory_.AddFile(name, text);
    return (directory_.path() / name).string();
  }
  WallTime now() const { return clock_.WallNow(); }
  std::string TextAt(Seconds later) const {
    return ToText(now() + std::chrono::duration_cast<std::chrono::microseconds>(later));
  }

  zeus::testing::TemporaryDirectory directory_;
  VirtualClock clock_;  // Begins on 2023-04-17 at midnight.
};

// --- Electricity Maps ---

class ElectricityMapsForecastTest : public GridServicesTest {
 protected:
  std::unique_ptr<LiveIntensity> Make(const GridServer& server) {
    auto maps = ElectricityMaps::Create(clock_,
                                        {.base_url = server.url(),
                                         .zone = "DE",
                                         .token = "secret",
                                         .timeout = Seconds(0.5),
                                         .live = Live()},
                                        nullptr);
    EXPECT_TRUE(maps.ok());
    return std::move(maps).value();
  }

  // A service whose forecast says 300 now and 100 from the third hour on.
  void Serve(const httplib::Request& request, httplib::Response& response) const {
    if (request.get_header_value("auth-token") != "secret") response.status = 401;
    if (request.path.ends_with("/latest"))
      return Body(response, R"({"carbonIntensity":320,"datetime":")" + TextAt(hours(0)) + "\"}");
    if (request.path.ends_with("/history")) return Body(response, History());
    Body(response, fmt::format(R"({{"zone":"DE","forecast":[
      {{"carbonIntensity":300,"datetime":"{}"}},{{"carbonIntensity":null,"datetime":"{}"}},
      {{"carbonIntensity":"high","datetime":"{}"}},{{"carbonIntensity":100,"datetime":"{}"}}],
      "updatedAt":"{}"}})",
                               TextAt(hours(0)), TextAt(hours(1)), TextAt(hours(2)),
                               TextAt(hours(3)), TextAt(hours(0))));
  }

  // One day, with 50 g/kWh at noon.
  std::string History() const {
    std::string list;
    for (int hour = 24; hour > 0; --hour) {
      list += fmt::format(R"({}{{"carbonIntensity":{},"datetime":"{}","isEstimated":false}})",
                          list.empty() ? "" : ",", hour == 12 ? 50 : 250, TextAt(-hours(hour)));
    }
    return R"({"history":[)" + list + "]}";
  }
};

TEST_F(ElectricityMapsForecastTest, TheForecastArrivesInTheBackgroundWithItsError) {
  GridServer server([this](const auto& q, auto& a) { Serve(q, a); });
  const auto maps = Make(server);
  EXPECT_EQ(maps->Step(), clock_.Now() + minutes(15));
  EXPECT_THAT(server.targets(), ElementsAre("/v3/carbon-intensity/latest?zone=DE",
                                            "/v3/carbon-intensity/history?zone=DE",
                                            "/v3/carbon-intensity/forecast?zone=DE"));
  const auto forecast = maps->Get(now(), now() + hours(24));
  ASSERT_TRUE(forecast.ok()) << forecast.error().message;
  EXPECT_EQ(forecast.value().source, "electricity maps DE");
  EXPECT_EQ(forecast.value().signal.At(now() + hours(2)), 300);
  EXPECT_EQ(forecast.value().signal.At(now() + hours(3)), 100);
  EXPECT_EQ(forecast.value().signal.end(), now() + hours(4));
  EXPECT_DOUBLE_EQ(forecast.value().signal.steps()[0].sigma, 30);
  EXPECT_FALSE(forecast.value().assumed);
  EXPECT_THAT(forecast.value().notes,
              ElementsAre(HasSubstr("the forecast of electricity maps ends at")));
}

TEST_F(ElectricityMapsForecastTest, ATokenWithoutForecastsMeansTheMeanOfTheLastDays) {
  GridServer server([this](const auto& q, auto& a) {
    if (q.path.ends_with("/forecast")) {
      a.status = 403;
    } else {
      Serve(q, a);
    }
  });
  const auto maps = Make(server);
  EXPECT_EQ(maps->Step(), clock_.Now() + minutes(15));
  const auto forecast = maps->Get(now(), now() + hours(48));
  ASSERT_TRUE(forecast.ok()) << forecast.error().message;
  EXPECT_TRUE(forecast.value().assumed);
  EXPECT_EQ(forecast.value().signal.At(now() + hours(12)), 50);
  EXPECT_EQ(forecast.value().signal.At(now() + hours(36)), 50);
  EXPECT_THAT(forecast.value().notes,
              ElementsAre(HasSubstr("the token was refused (status 403): check it; the mean of "
                                    "the last days at each hour is assumed")));
  // The values are asked for again as ever, the forecast only after the long pause.
  for (int step = 0; step < 3; ++step) {
    clock_.Advance(minutes(15));
    maps->Step();
  }
  int asked = 0;
  for (const std::string& target : server.targets())
    if (target.find("forecast") != std::string::npos) ++asked;
  EXPECT_EQ(asked, 1);
}

TEST_F(ElectricityMapsForecastTest, AForecastOutlivesItsServiceAndThisProcess) {
  GridServer server([this](const auto& q, auto& a) { Serve(q, a); });
  Make(server)->Step();
  server.AnswerWith([](const auto&, auto& a) { a.status = 500; });
  clock_.Advance(hours(1));
  const auto maps = Make(server);
  maps->Step();
  const auto forecast = maps->Get(now(), now() + hours(3));
  ASSERT_TRUE(forecast.ok()) << forecast.error().message;
  EXPECT_EQ(forecast.value().signal.At(now() + hours(2)), 100);
  EXPECT_THAT(forecast.value().notes,
              ElementsAre(HasSubstr("the server failed (status 500); its forecast is from "
                                    "2023-04-17T00:00:00Z")));
  clock_.Advance(hours(5));  // Now it is over.
  const auto over = maps->Get(now(), now() + hours(3));
  ASSERT_TRUE(over.ok()) << over.error().message;
  EXPECT_TRUE(over.value().assumed);
  EXPECT_THAT(over.value().notes, ElementsAre(HasSubstr("status 500); the mean of the last days")));
}

TEST_F(ElectricityMapsForecastTest, TooManyRequestsAreRepeatedWhenTheServerAllowsIt) {
  GridServer server([this](const auto& q, auto& a) {
    if (!q.path.ends_with("/forecast")) return Serve(q, a);
    a.status = 429;
    a.set_header("Retry-After", "300");
  });
  const auto maps = Make(server);
  EXPECT_EQ(maps->Step(), clock_.Now() + minutes(5));
}

// --- Great Britain ---

class GbTest : public GridServicesTest {
 protected:
  std::unique_ptr<LiveIntensity> Make(const GridServer& server) {
    return GbCarbonIntensity::Create(
               clock_, {.base_url = server.url(), .timeout = Seconds(0.5), .live = Live()}, nullptr)
        .value();
  }

  std::string Minute(Seconds later) const { return TextAt(later).substr(0, 16) + "Z"; }

  std::string Entry(Seconds from, const std::string& forecast, const std::string& actual) const {
    return fmt::format(
        R"({{"from":"{}","to":"{}","intensity":{{"forecast":{},"actual":{},"index":"moderate"}}}})",
        Minute(from), Minute(from + minutes(30)), forecast, actual);
  }

  // The forecasts for the last day were 20 % too high.
  std::string Past() const {
    std::string list;
    for (int i = 48; i > 0; --i)
      list += (list.empty() ? "" : ",") + Entry(-i * minutes(30), "240", i == 1 ? "null" : "200");
    return R"({"data":[)" + list + "]}";
  }
  std::string Future() const {
    return R"({"data":[)" + Entry(hours(0), "150", "null") + "," +
           Entry(minutes(30), "null", "null") + "," + Entry(hours(1), "100", "null") + "]}";
  }
};

TEST_F(GbTest, ReadsHalfHoursAndLearnsTheErrorOfTheForecast) {
  GridServer server(
      [this](const auto& q, auto& a) { Body(a, q.path.ends_with("fw48h") ? Future() : Past()); });
  const auto gb = Make(server);
  gb->Step();
  EXPECT_THAT(server.targets(), ElementsAre("/intensity/2023-04-17T00:00Z/pt24h",
                                            "/intensity/2023-04-17T00:00Z/fw48h"));
  const auto forecast = gb->Get(now(), now() + hours(2));
  ASSERT_TRUE(forecast.ok()) << forecast.error().message;
  EXPECT_EQ(forecast.value().signal.At(now() + minutes(45)), 150);
  EXPECT_EQ(forecast.value().signal.At(now() + hours(1)), 100);
  EXPECT_NEAR(forecast.value().signal.steps()[0].sigma, 0.2 * 150, 1e-9);
  const auto actual = gb->At(now() - hours(3));
  ASSERT_TRUE(actual.ok());
  EXPECT_EQ(actual.value().intensity, CarbonIntensity(200));
  EXPECT_FALSE(actual.value().estimated);
  EXPECT_TRUE(gb->At(now() - minutes(10)).value().estimated);
}

TEST_F(GbTest, AnswersWithoutSenseAreReasons) {
  GridServer server([](const auto&, auto& a) { Body(a, "<html>"); });
  const auto gb = Make(server);
  for (
      const char* garbage :
      {"", "[]", "{\"data\":3}", "{\"data\":[{\"from\":\"x\"}]}", "{\"data\":[{}]}",
       "{\"data\":[]}",
       R"({"data":[{"from":"2023-04-17T00:00Z","to":"2023-04-17T00:30Z","intensity":7}]})",
       R"({"data":[{"from":"2023-04-17T00:00Z","to":"2023-04-17T00:30Z","intensity":{"forecast":-4}}]})"}) {
    server.AnswerWith([garbage](const auto&, auto& a) { Body(a, garbage); });
    EXPECT_EQ(gb->Step(), clock_.Now() + minutes(1));
    const auto forecast = gb->Get(now(), now() + hours(2));
    ASSERT_FALSE(forecast.ok()) << garbage;
    EXPECT_THAT(forecast.error().message, HasSubstr("without sense")) << garbage;
    clock_.Advance(minutes(1));
  }
}

// --- WattTime ---

class WattTimeTest : public GridServicesTest {
 protected:
  std::unique_ptr<LiveIntensity> Make(const GridServer& server) {
    auto watt_time = WattTime::Create(clock_,
                                      {.base_url = server.url(),
                                       .region = "CAISO_NORTH",
                                       .user = {"ada", "love:lace"},
                                       .timeout = Seconds(0.5),
                                       .live = Live()},
                                      nullptr);
    EXPECT_TRUE(watt_time.ok());
    return std::move(watt_time).value();
  }

  void Serve(const httplib::Request& q, httplib::Response& a) {
    if (q.path == "/login") {
      ++logins_;
      // "ada:love:lace"
      if (q.get_header_value("Authorization") != "Basic YWRhOmxvdmU6bGFjZQ==") a.status = 401;
      return Body(a, fmt::format(R"({{"token":"t{}"}})", logins_));
    }
    if (q.get_header_value("Authorization") != fmt::format("Bearer t{}", logins_)) {
      a.status = 401;
      return;
    }
    const Seconds first = q.path == "/v3/historical" ? -minutes(10) : minutes(0);
    Body(a, fmt::format(R"({{"data":[{{"point_time":"{}","value":1000}},
                             {{"point_time":"{}","value":500.5}}],
                            "meta":{{"region":"CAISO_NORTH","signal_type":"co2_moer",
                             "units":"{}","generated_at":"{}"}}}})",
                        TextAt(first), TextAt(first + minutes(5)), units_, TextAt(skew_)));
  }

  int logins_ = 0;
  std::string units_ = "lbs_co2_per_mwh";
  Seconds skew_{0};
};

TEST_F(WattTimeTest, LogsInAndTurnsPoundsIntoGrams) {
  GridServer server([this](const auto& q, auto& a) { Serve(q, a); });
  const auto watt_time = Make(server);
  watt_time->Step();
  const auto targets = server.targets();
  ASSERT_EQ(targets.size(), 3);
  EXPECT_EQ(targets[0], "/login");
  EXPECT_EQ(targets[1],
            "/v3/historical?region=CAISO_NORTH&signal_type=co2_moer&start=2023-04-16T00:00:00Z"
            "&end=2023-04-17T00:00:00Z");
  EXPECT_EQ(targets[2], "/v3/forecast?region=CAISO_NORTH&signal_type=co2_moer&horizon_hours=72");
  const auto forecast = watt_time->Get(now(), now() + hours(2));
  ASSERT_TRUE(forecast.ok()) << forecast.error().message;
  EXPECT_TRUE(forecast.value().marginal);
  EXPECT_NEAR(forecast.value().signal.At(now()), 453.59237, 1e-6);
  EXPECT_NEAR(watt_time->At(now() - minutes(3)).value().intensity.value(), 0.5005 * 453.59237,
              1e-6);
}

TEST_F(WattTimeTest, ATokenThatExpiredIsReplacedOnce) {
  GridServer server([this](const auto& q, auto& a) { Serve(q, a); });
  const auto watt_time = Make(server);
  watt_time->Step();
  clock_.Advance(minutes(31));
  server.AnswerWith([this, first = true](const auto& q, auto& a) mutable {
    if (q.path != "/login" && std::exchange(first, false)) {
      a.status = 401;  // As a token of half an hour ago.
    } else {
      Serve(q, a);
    }
  });
  watt_time->Step();
  EXPECT_EQ(logins_, 2);
  EXPECT_THAT(watt_time->At(now() - minutes(3)).value().note, IsEmpty());
}

TEST_F(WattTimeTest, AWrongPasswordIsAReasonAndIsNotShown) {
  GridServer server([](const auto&, auto& a) { a.status = 401; });
  const auto watt_time = Make(server);
  EXPECT_EQ(watt_time->Step(), clock_.Now() + hours(1));
  const auto forecast = watt_time->Get(now(), now() + hours(2));
  EXPECT_THAT(forecast.error().message, HasSubstr("the user or the password was refused"));
  EXPECT_THAT(forecast.error().message, Not(HasSubstr("lace")));
}

TEST_F(WattTimeTest, ValuesInOtherUnitsAreRefused) {
  units_ = "kg_per_mwh";
  GridServer server([this](const auto& q, auto& a) { Serve(q, a); });
  const auto watt_time = Make(server);
  watt_time->Step();
  EXPECT_THAT(watt_time->Get(now(), now() + hours(1)).error().message,
              HasSubstr("values in \"kg_per_mwh\" instead of lbs_co2_per_mwh"));
}

TEST_F(WattTimeTest, AForecastFromTheFutureSaysThatClocksDiffer) {
  skew_ = hours(2);
  GridServer server([this](const auto& q, auto& a) { Serve(q, a); });
  const auto watt_time = Make(server);
  watt_time->Step();
  const auto forecast = watt_time->Get(now(), now() + minutes(10));
  ASSERT_TRUE(forecast.ok());
  EXPECT_THAT(forecast.value().notes,
              ElementsAre("watttime made its forecast at 2023-04-17T02:00:00Z, and here it is "
                          "2023-04-17T00:00:00Z: one of the clocks is wrong"));
}

// --- the words of users ---

TEST_F(GridServicesTest, TheWordsOfUsersOpenServices) {
  const auto mistake = [this](const CarbonOptions& options) {
    const auto accounting = CarbonAccounting::Open(clock_, options);
    return accounting.ok() ? "" : accounting.error().message;
  };
  EXPECT_THAT(mistake({.carbon = "watttime:A B", .token_file = Write("ada:lovelace\n")}),
              HasSubstr("is no region like CAISO_NORTH"));
  EXPECT_THAT(mistake({.carbon = "watttime:CAISO_NORTH", .token_file = Write("lovelace\n")}),
              HasSubstr("must contain NAME:PASSWORD"));
  EXPECT_THAT(mistake({.carbon = "carbonintensity.org.uk", .token_file = "t"}),
              HasSubstr("needs no token"));
  EXPECT_THAT(mistake({.carbon = "carbonintensity.org.uk", .url = "http://example.org"}),
              HasSubstr("in the clear"));
}

TEST_F(GridServicesTest, AccountingForecastsWhatItAccounts) {
  const std::string spot = Write("time,EUR_per_kwh\n1681689600,0.1\n1681693200,0.2\n", "spot.csv");
  const auto accounting =
      CarbonAccounting::Open(clock_, {.carbon = "350g/kWh", .price = spot, .forecast_error = 0.3});
  ASSERT_TRUE(accounting.ok()) << accounting.error().message;
  EXPECT_EQ(accounting.value().UnitOf(ShiftGoal::kPrice), "EUR");
  EXPECT_EQ(accounting.value().UnitOf(ShiftGoal::kCarbon), "g");
  const auto price = accounting.value().ForecastFor(ShiftGoal::kPrice, now(), now() + hours(2));
  ASSERT_TRUE(price.ok()) << price.error().message;
  EXPECT_DOUBLE_EQ(price.value().signal.At(now() + hours(1)), 0.2);
  EXPECT_DOUBLE_EQ(price.value().signal.steps()[0].sigma, 0.03);
  const auto carbon = accounting.value().ForecastFor(ShiftGoal::kCarbon, now(), now() + hours(2));
  EXPECT_DOUBLE_EQ(carbon.value().signal.At(now()), 350);
  const auto none = CarbonAccounting::Open(clock_, {});
  EXPECT_THAT(none.value().ForecastFor(ShiftGoal::kPrice, now(), now()).error().message,
              HasSubstr("no source of prices"));
}

}  // namespace grid_services_test
}  // namespace zeus
