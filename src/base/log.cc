#include "base/log.h"

#include <atomic>
#include <memory>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

namespace halfbyte::base {
namespace {

std::atomic<LogLevel> g_level{LogLevel::kInfo};

spdlog::logger& Logger() {
  static spdlog::logger* logger = [] {
    auto* l = new spdlog::logger("halfbyte", std::make_shared<spdlog::sinks::stderr_color_sink_mt>());
    l->set_pattern("%H:%M:%S.%e %^%l%$ %v");
    l->set_level(spdlog::level::trace);
    l->flush_on(spdlog::level::trace);
    return l;
  }();
  return *logger;
}

}  // namespace

void SetLogLevel(LogLevel level) { g_level = level; }
LogLevel GetLogLevel() { return g_level; }

Result<LogLevel> ParseLogLevel(std::string_view name) {
  if (name == "debug") return LogLevel::kDebug;
  if (name == "info") return LogLevel::kInfo;
  if (name == "warning") return LogLevel::kWarning;
  if (name == "error") return LogLevel::kError;
  if (name == "off") return LogLevel::kOff;
  return Fail(ErrorCode::kInvalidArgument, "log level \"", name, "\" is none of debug, info, warning, error, off");
}

void LogLine(LogLevel level, const std::string& line) {
  switch (level) {
    case LogLevel::kDebug: Logger().debug("{}", line); return;
    case LogLevel::kInfo: Logger().info("{}", line); return;
    case LogLevel::kWarning: Logger().warn("{}", line); return;
    case LogLevel::kError: Logger().error("{}", line); return;
    case LogLevel::kOff: return;
  }
}

}  // namespace halfbyte::base
