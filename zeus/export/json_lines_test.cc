#include "zeus/export/json_lines.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "zeus/base/file.h"
#include "zeus/base/json.h"
#include "zeus/base/testing/temporary_directory.h"
#include "zeus/export/testing/records.h"

namespace zeus {
namespace json_lines_test {

using zeus::testing::ASample;
using zeus::testing::AWindow;
using zeus::testing::TemporaryDirectory;

TEST(JsonLinesTest, AWindowCarriesUncertaintySourceAndWhatItsTotalContains) {
  const Json json = ToJson(AWindow("epoch"));
  EXPECT_EQ(json["schema"], "zeus.window/1");
  EXPECT_EQ(json["window"], "epoch");
  EXPECT_EQ(json["start_time_seconds"], 1700000000.25);
  EXPECT_EQ(json["elapsed_seconds"], 10);
  EXPECT_EQ(json["stage"], "immediate");
  EXPECT_EQ(json["devices"][0]["energy_joules"], 100);
  EXPECT_EQ(json["devices"][0]["energy_sigma_joules"], 2);
  EXPECT_EQ(json["devices"][0]["source"], "counter");
  EXPECT_EQ(json["total"]["energy_joules"], 120);
  EXPECT_EQ(json["total"]["missing"], Json({"gpu:1"}));
}

TEST(JsonLinesTest, ADeviceWithoutANumberHasAReason) {
  const Json window = ToJson(AWindow("epoch"))["devices"][1];
  EXPECT_EQ(window["energy_joules"], nullptr);
  EXPECT_EQ(window["reason"], "GPU fell off the bus");
  const Json sample = ToJson(ASample())["devices"][1];
  EXPECT_EQ(sample["energy_joules"], nullptr);
  EXPECT_EQ(sample["reason"], "GPU fell off the bus");
  EXPECT_EQ(sample["power_watts"], nullptr);
  EXPECT_EQ(sample["reasons"]["temperature_celsius"], "GPU fell off the bus");
}

TEST(JsonLinesTest, WhatADeviceDoesNotHaveIsLeftOut) {
  const Json cpu = ToJson(ASample())["devices"][2];
  EXPECT_EQ(cpu["energy_joules"], 50);
  EXPECT_FALSE(cpu.contains("temperature_celsius"));
  EXPECT_FALSE(cpu.contains("reasons"));
}

TEST(JsonLinesTest, ASampleSaysEverythingOfAGpu) {
  const Json sample = ToJson(ASample());
  EXPECT_EQ(sample["schema"], "zeus.sample/1");
  EXPECT_EQ(sample["elapsed_seconds"], 4);
  const Json& gpu = sample["devices"][0];
  EXPECT_EQ(gpu["power_watts"], 250);
  EXPECT_EQ(gpu["power_sigma_watts"], 1.5);
  EXPECT_EQ(gpu["energy_sigma_joules"], 3);
  EXPECT_EQ(gpu["utilization_ratio"], 0.9);
  EXPECT_EQ(gpu["graphics_clock_hertz"], 1.41e9);
  EXPECT_EQ(gpu["enforced_limit_watts"], 280);
}

TEST(JsonLinesTest, BytesThatAreNoTextDoNotBreakALine) {
  EXPECT_TRUE(ParseJson(JsonText(ToJson(AWindow("\xff\n\"")))).ok());
}

TEST(JsonLinesTest, EachRecordIsALineOfTheFile) {
  const TemporaryDirectory directory;
  const auto path = directory.path() / "log.jsonl";
  for (const char* name : {"a", "b"})
    ASSERT_TRUE(JsonLines::Open(path).value()->Write(AWindow(name)).ok());
  const std::string content = ReadSmallFile(path).value();
  const auto newline = content.find('\n');
  EXPECT_EQ(ParseJson(content.substr(0, newline)).value()["window"], "a");
  EXPECT_EQ(ParseJson(content.substr(newline + 1)).value()["window"], "b");
}

TEST(JsonLinesTest, SomebodyElsesFileIsRefused) {
  TemporaryDirectory directory;
  EXPECT_FALSE(JsonLines::Open(directory.AddFile("notes.txt", "do not lose this\n")).ok());
}

}  // namespace json_lines_test
}  // namespace zeus
