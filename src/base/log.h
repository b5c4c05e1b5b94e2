// The log: lines on stderr, never on stdout (stdout is a command's result). Thread-safe.
#pragma once

#include "base/result.h"

namespace halfbyte::base {

enum class LogLevel { kDebug, kInfo, kWarning, kError, kOff };

void SetLogLevel(LogLevel level);
LogLevel GetLogLevel();
// "debug", "info", "warning", "error", "off"
Result<LogLevel> ParseLogLevel(std::string_view name);

void LogLine(LogLevel level, const std::string& line);

template <typename... Parts> void LogDebug(const Parts&... p) { if (GetLogLevel() <= LogLevel::kDebug) LogLine(LogLevel::kDebug, StrCat(p...)); }
template <typename... Parts> void LogInfo(const Parts&... p) { if (GetLogLevel() <= LogLevel::kInfo) LogLine(LogLevel::kInfo, StrCat(p...)); }
template <typename... Parts> void LogWarning(const Parts&... p) { if (GetLogLevel() <= LogLevel::kWarning) LogLine(LogLevel::kWarning, StrCat(p...)); }
template <typename... Parts> void LogError(const Parts&... p) { if (GetLogLevel() <= LogLevel::kError) LogLine(LogLevel::kError, StrCat(p...)); }

}  // namespace halfbyte::base
