#pragma once

#include <gtest/gtest.h>

#include <cctype>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "zeus/base/units.h"
#include "zeus/device/cpu_package.h"
#include "zeus/device/testing/name_of_case.h"

namespace zeus::testing {

// Owns one package over something that the test moves.
class CpuHarness {
 public:
  virtual ~CpuHarness() = default;
  virtual CpuPackage& package() = 0;

  // Makes the package's counter grow, or that of its memory. Unused where there is no counter.
  virtual void Use(Joules energy) = 0;
  virtual void UseDram(Joules energy) = 0;

  // From now on the kernel answers every read with an error.
  virtual void Break() = 0;
};

struct CpuCase {
  std::string name;  // Letters and digits: the end of the tests' names.
  std::function<std::unique_ptr<CpuHarness>()> make;
};

template <class Harness>
CpuCase CpuCaseOf(std::string name) {
  return {std::move(name), [] { return std::make_unique<Harness>(); }};
}

// This suite checks what every CpuPackage promises. The tests are in cpu_conformance.cc, which a
// program lists once; any of its files can add a case:
//   INSTANTIATE_TEST_SUITE_P(Rapl, CpuConformance,
//                            ::testing::Values(CpuCaseOf<PowercapHarness>("Powercap")),
//                            NameOfCase());
//
// A promise about something that the package does not have is checked the other way round: the
// refusal must be kNotSupported with a reason.
class CpuConformance : public ::testing::TestWithParam<CpuCase> {
 protected:
  CpuPackage& package() { return harness_->package(); }

  bool HasCounter() { return package().Energy().ok(); }
  bool HasLimit() { return package().CurrentPowerLimit().ok(); }

  static void ExpectRefusal(const Error& error) {
    EXPECT_EQ(error.code, ErrorCode::kNotSupported) << error.message;
    ASSERT_FALSE(error.message.empty());
    EXPECT_FALSE(std::isupper(static_cast<unsigned char>(error.message.front()))) << error.message;
  }

  std::unique_ptr<CpuHarness> harness_ = GetParam().make();
};

}  // namespace zeus::testing
