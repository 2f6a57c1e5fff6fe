#pragma once

#include <string>
#include <string_view>

#include "zeus/base/json_fwd.h"
#include "zeus/base/result.h"

// How errors travel: {"error": {"code": "invalid_argument", "message": "…", "field": "…" | null}}.
namespace zeus::wire {

// invalid_argument, not_found, …
std::string_view Name(ErrorCode code);

// The one place that knows the HTTP status of an error, in both directions.
int StatusOf(ErrorCode code);
ErrorCode CodeOf(int status);

// The field that an error is about: such messages begin with its name and a colon. Empty when it
// is about none.
std::string FieldOf(const Error& error);

Json ToJson(const Error& error);

// The error that an answer with this status and body stands for; of servers that answer something
// else, too.
Error ErrorFromAnswer(int status, std::string_view body);

}  // namespace zeus::wire
