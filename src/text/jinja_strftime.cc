#include "text/jinja_strftime.h"

#include <charconv>
#include <chrono>
#include <cstdio>
#include <ctime>

namespace halfbyte::text {
namespace {

using base::ErrorCode;
using base::Fail;

// `digits` digits at the start of s.
bool TakeDigits(std::string_view& s, size_t digits, int& out) {
  if (s.size() < digits) return false;
  auto [end, error] = std::from_chars(s.data(), s.data() + digits, out);
  if (error != std::errc() || end != s.data() + digits || out < 0) return false;
  s.remove_prefix(digits);
  return true;
}

bool TakeOne(std::string_view& s, std::string_view of) {
  if (s.empty() || of.find(s[0]) == of.npos) return false;
  s.remove_prefix(1);
  return true;
}

bool TakeTimeOfDay(std::string_view& s, JinjaTime& time) {
  std::tm& t = time.fields;
  if (!TakeDigits(s, 2, t.tm_hour) || !TakeOne(s, ":") || !TakeDigits(s, 2, t.tm_min)) return false;
  if (!s.starts_with(':')) return true;
  if (!TakeOne(s, ":") || !TakeDigits(s, 2, t.tm_sec)) return false;
  if (!TakeOne(s, ".,")) return true;
  int scale = 100'000, digits = 0;
  for (; !s.empty() && s[0] >= '0' && s[0] <= '9'; s.remove_prefix(1), ++digits, scale /= 10) {
    time.microsecond += (s[0] - '0') * scale;
  }
  return digits > 0;
}

bool TakeZone(std::string_view& s) {
  if (s.empty() || TakeOne(s, "Zz")) return true;
  int ignored = 0;
  if (!TakeOne(s, "+-") || !TakeDigits(s, 2, ignored)) return false;
  TakeOne(s, ":");
  return s.empty() || TakeDigits(s, 2, ignored);
}

bool InRange(const std::tm& t) {
  static constexpr int kDays[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  if (t.tm_mon < 0 || t.tm_mon > 11 || t.tm_hour > 23 || t.tm_min > 59 || t.tm_sec > 59) return false;
  int year = t.tm_year + 1900;
  bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
  return year >= 1 && t.tm_mday >= 1 && t.tm_mday <= kDays[t.tm_mon] + (leap && t.tm_mon == 1);
}

}  // namespace

base::Result<JinjaTime> JinjaTime::Parse(std::string_view iso) {
  JinjaTime time;
  std::tm& t = time.fields;
  std::string_view s = iso;
  bool good = TakeDigits(s, 4, t.tm_year) && TakeOne(s, "-") && TakeDigits(s, 2, t.tm_mon) && TakeOne(s, "-") &&
              TakeDigits(s, 2, t.tm_mday);
  t.tm_year -= 1900;
  t.tm_mon -= 1;
  if (good && !s.empty()) good = TakeOne(s, "Tt ") && TakeTimeOfDay(s, time) && TakeZone(s) && s.empty();
  if (!good || !InRange(t)) return Fail(ErrorCode::kInvalidArgument, "\"", iso, "\" is no ISO time; 2025-07-04T12:34:56 is one");
  std::tm copy = t;
  timegm(&copy);  // fills the weekday and the day of the year
  t.tm_wday = copy.tm_wday;
  t.tm_yday = copy.tm_yday;
  return time;
}

JinjaTime JinjaTime::Now() {
  using std::chrono::microseconds;
  auto now = std::chrono::system_clock::now();
  std::time_t seconds = std::chrono::system_clock::to_time_t(now);
  JinjaTime time;
  localtime_r(&seconds, &time.fields);
  time.microsecond = static_cast<int>(std::chrono::duration_cast<microseconds>(now.time_since_epoch()).count() % 1'000'000);
  return time;
}

namespace jinja {
namespace {

// One directive at a time: a text without one passes as it is, and Python's own directives are put in.
std::string OneDirective(const JinjaTime& time, const std::string& directive) {
  char kind = directive.back();
  if (kind == 'f') {
    char buffer[16];
    std::snprintf(buffer, sizeof buffer, "%06d", time.microsecond);
    return buffer;
  }
  if (kind == 'z' || kind == 'Z') return {};  // a time without a zone
  // A field of at most 255 characters; a wider one ("%999d") gives nothing.
  char buffer[256];
  size_t n = std::strftime(buffer, sizeof buffer, directive.c_str(), &time.fields);
  return std::string(buffer, n);
}

}  // namespace

std::string FormatTime(const JinjaTime& time, std::string_view format) {
  std::string out;
  for (size_t i = 0; i < format.size(); ++i) {
    if (format[i] != '%') { out += format[i]; continue; }
    // %, flags and width as glibc has them, a modifier, the letter.
    size_t end = format.find_first_not_of("-_0^#123456789EO", i + 1);
    if (end == format.npos) { out += format.substr(i); break; }
    out += OneDirective(time, std::string(format.substr(i, end - i + 1)));
    i = end;
  }
  return out;
}

}  // namespace jinja
}  // namespace halfbyte::text
