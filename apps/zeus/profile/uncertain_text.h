#pragma once

#include <string>

namespace zeus::cli {

// "231.2 ± 0.5 W": as many digits as the uncertainty leaves meaning to. Small and large values get
// a prefix: "4.213 ± 0.012 ms".
std::string WithSigma(double value, double sigma, const char* unit);

// "-12.3 %", "+0.0 %": how far `value` is from `reference`.
std::string Change(double value, double reference);

}  // namespace zeus::cli
