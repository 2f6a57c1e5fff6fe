#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "zeus/device/gpu.h"
#include "zeus/device/testing/name_of_case.h"

namespace zeus::testing {

// A GPU to test, and how its time passes.
struct GpuHarness {
  std::shared_ptr<void> factory;  // The environment that the GPU under test needs.
  std::unique_ptr<Gpu> gpu;
  std::function<void(Seconds)> advance;  // Null where the test cannot let time pass.
};

struct GpuCase {
  std::string name;  // Letters and digits: the end of the tests' names.
  std::function<GpuHarness()> make;
};

// A case from a factory, which is constructed from `arguments` for each test and outlives its GPU:
//   struct SimulatedGpuFactory {
//     std::unique_ptr<Gpu> Make();
//     void Advance(Seconds by);  // Optional: lets the GPU's time pass.
//   };
template <class Factory, class... Arguments>
GpuCase GpuCaseOf(std::string name, Arguments... arguments) {
  return {std::move(name), [=] {
            auto factory = std::make_shared<Factory>(arguments...);
            GpuHarness harness{.factory = factory, .gpu = factory->Make(), .advance = nullptr};
            if constexpr (requires { factory->Advance(Seconds(1)); })
              harness.advance = [factory](Seconds by) { factory->Advance(by); };
            return harness;
          }};
}

// This suite checks what every Gpu promises. The tests are in gpu_conformance.cc, which a program
// lists once; any of its files can add a case:
//   INSTANTIATE_TEST_SUITE_P(Simulated, GpuConformance,
//                            ::testing::Values(GpuCaseOf<SimulatedGpuFactory>("V100", "V100")),
//                            NameOfCase());
//
// A GPU need not have every sensor and knob: kNotSupported, or kPermissionDenied for a knob, with
// a reason passes. Tests put back what they change.
class GpuConformance : public ::testing::TestWithParam<GpuCase> {
 protected:
  void SetUp() override { ASSERT_NE(gpu_, nullptr); }

  // A knob takes effect after a while: where the test cannot let time pass, it cannot look.
  bool TimePasses() const { return harness_.advance != nullptr; }

  void Advance(Seconds by) {
    if (TimePasses()) harness_.advance(by);
  }

  // Whether the device can do it at all. A refusal must carry a reason.
  template <class T>
  static bool Supports(const Result<T>& result) {
    if (result.ok()) return true;
    EXPECT_FALSE(result.error().message.empty());
    EXPECT_TRUE(result.error().code == ErrorCode::kNotSupported ||
                result.error().code == ErrorCode::kPermissionDenied)
        << result.error().message;
    return false;
  }

  // The batched reading and the single call are two ways to the same sensor.
  template <class T>
  static void ExpectSameSupport(const Result<T>& batched, const Result<T>& single) {
    EXPECT_EQ(Supports(batched), Supports(single));
  }

  GpuHarness harness_ = GetParam().make();
  Gpu* gpu_ = harness_.gpu.get();
};

}  // namespace zeus::testing
