#pragma once

#include "zeus/base/json_fwd.h"
#include "zeus/base/result.h"
#include "zeus/monitor/measurement.h"

// The JSON of a measurement, the same in log files, in reports of `zeus run` and in Python. Names
// carry units; docs/formats.md promises them.
namespace zeus {

// "schema": "zeus.window/1". A number that is not known is null.
Json ToJson(const Measurement& measurement);
// The elements of its list `devices`, and its `total`.
Json ToJson(const DeviceMeasurement& device);
Json ToJson(const Measurement::Total& total);

// Reads ToJson() back; `id` and `begin`, which mean nothing in another process, are not there. Also
// reads the names without units that Python pickled before ("energy" for "energy_joules"). Unknown
// numbers become NaN. kInvalidArgument names the field that is missing or wrong.
Result<Measurement> MeasurementFromJson(const Json& json);

}  // namespace zeus
