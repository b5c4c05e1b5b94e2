// The --jsonl form of a command: every line on stdin is a JSON object and gives exactly one line on stdout, in order.
#pragma once

#include <functional>

#include "base/json.h"
#include "base/result.h"
#include "input.h"
#include "output.h"

namespace halfbyte::app {

// A line that is no JSON, or whose handler fails, gives {"error": text}; only a failing stdin or stdout fails the command.
base::Status RunJsonLines(Output& out, const std::function<base::Result<base::Json>(const base::Json& line)>& handler);

}  // namespace halfbyte::app
