#include "zeus/device/soc/soc_text.h"

#include <gtest/gtest.h>

#include <string>

namespace zeus::soc {
namespace soc_text_test {

TEST(SocTextTest, UeventsAreKeysAndValues) {
  const auto uevent = ParseUevent("DRIVER=xe\nPCI_SLOT_NAME=0000:03:00.0\nMODALIAS=a=b");
  EXPECT_EQ(uevent.at("DRIVER"), "xe");
  EXPECT_EQ(uevent.at("PCI_SLOT_NAME"), "0000:03:00.0");
  EXPECT_EQ(uevent.at("MODALIAS"), "a=b");
}

TEST(SocTextTest, UeventLinesThatAreNotTextAreLeftOut) {
  EXPECT_TRUE(ParseUevent("").empty());
  EXPECT_TRUE(ParseUevent("no equals sign\n\n").empty());
  EXPECT_TRUE(ParseUevent(std::string("A=\0B\nC=\x1b[2J\n", 12)).empty());
}

TEST(SocTextTest, GraceSensorsAreNamedWithTheirSocket) {
  EXPECT_EQ(ParseGraceSensorName("CPU Power Socket 1").value(),
            (GraceSensorName{.sensor = GraceSensor::kCpu, .socket = 1}));
  EXPECT_EQ(ParseGraceSensorName("Module Power Socket 0").value().sensor, GraceSensor::kModule);
  EXPECT_EQ(ParseGraceSensorName("Grace Power Socket 0").value().sensor, GraceSensor::kGrace);
  EXPECT_EQ(ParseGraceSensorName("SysIO Power Socket 0").value().sensor, GraceSensor::kSysIo);
  for (const char* wrong : {"", "CPU Power Socket ", "CPU Power Socket x", "Fan Power Socket 0",
                            "CPU Power Socket 99999999999999999999", "CPU Power Socket 1024"})
    EXPECT_FALSE(ParseGraceSensorName(wrong).ok()) << wrong;
}

TEST(SocTextTest, TheInputOfTheBoardIsItsTotal) {
  EXPECT_EQ(RailRole("VDD_IN"), PowerRail::Role::kTotal);
  EXPECT_EQ(RailRole("POM_5V_IN"), PowerRail::Role::kTotal);
  EXPECT_EQ(RailRole("VDD_CPU_GPU_CV"), PowerRail::Role::kPart);
  EXPECT_FALSE(RailRole("sum of shunt voltages").has_value());
  EXPECT_FALSE(RailRole("NC").has_value());
  EXPECT_FALSE(RailRole("").has_value());
}

}  // namespace soc_text_test
}  // namespace zeus::soc
