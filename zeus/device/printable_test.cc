#include "zeus/device/printable.h"

#include <gtest/gtest.h>

namespace zeus {
namespace {

TEST(PrintableTest, OrdinaryTextStaysAsItIs) {
  EXPECT_EQ(Printable("/usr/lib/libnvidia-ml.so.1"), "/usr/lib/libnvidia-ml.so.1");
  EXPECT_EQ(Printable(""), "");
}

TEST(PrintableTest, WhatATerminalWouldObeyIsEscaped) {
  EXPECT_EQ(Printable("a\x1b[2J\n\x7f\x9b"), "a\\x1b[2J\\x0a\\x7f\\x9b");
}

TEST(PrintableTest, LongTextIsCut) {
  EXPECT_EQ(Printable(std::string(200, 'x')), std::string(200, 'x'));
  EXPECT_EQ(Printable(std::string(5000, 'x')), std::string(200, 'x') + "...");
}

}  // namespace
}  // namespace zeus
