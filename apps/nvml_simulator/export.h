#pragma once

// Marks a function of NVML's C interface. Everything else in the library stays hidden.
#define NVML_FUNCTION extern "C" __attribute__((visibility("default"))) zeus::nvml::Return
