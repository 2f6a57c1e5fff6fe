#pragma once

#include <string>
#include <string_view>

#include "zeus/base/json_fwd.h"
#include "zeus/base/result.h"

// Errors in answers: {"error": {"code": "invalid_argument", "message": "…", "field": "…" | null}}.
namespace zeus::wire {

// Returns "invalid_argument", "not_found" and so on.
std::string_view Name(ErrorCode code);

// The HTTP status of an error, in both directions. No other place maps them.
int StatusOf(ErrorCode code);
ErrorCode ErrorCodeFor(int status);

// Returns the field that an error is about, or an empty string. Messages about a field begin with
// its name and a colon.
std::string FieldOf(const Error& error);

Json ToJson(const Error& error);

// Returns the error that an answer stands for, also when its body is not of the form above, as that
// of a proxy.
Error ErrorFromAnswer(int status, std::string_view body);

}  // namespace zeus::wire
