#include "text/jinja_number_format.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "text/jinja_text.h"
#include "text/jinja_unicode.h"

namespace halfbyte::text::jinja {
namespace {

constexpr int64_t kMaxPrecision = 10'000;  // a double has 1,074 decimals at most; more are zeros that nobody asked for in earnest

std::string Print(const char* format, int precision, double d) {
  int size = std::snprintf(nullptr, 0, format, precision, d);
  std::string out(static_cast<size_t>(size), '\0');
  std::snprintf(out.data(), out.size() + 1, format, precision, d);
  return out;
}

// "1.500e+03" -> "1.5e+03"
std::string WithoutTrailingZeros(std::string s) {
  size_t e = s.find('e');
  std::string tail = s.substr(e);
  s.resize(e);
  if (s.find('.') != s.npos) {
    while (s.back() == '0') s.pop_back();
    if (s.back() == '.') s.pop_back();
  }
  return s + tail;
}

// A precision without a type: as %g, but an exponent already from 10**(precision - 1) on, and always with a decimal.
std::string GeneralWithDot(double d, int precision) {
  precision = std::max(precision, 1);
  std::string scientific = Print("%.*e", precision - 1, d);
  int exponent = std::atoi(scientific.c_str() + scientific.find('e') + 1);
  if (exponent + 1 <= -4 || exponent + 1 > precision - 1) return WithoutTrailingZeros(std::move(scientific));
  std::string out = Print("%.*g", precision, d);
  return out.find('.') == out.npos ? out + ".0" : out;
}

std::string FloatDigits(double d, const NumberFormat& format) {
  if (std::isnan(d) || std::isinf(d)) {
    bool upper = format.type == 'F' || format.type == 'E' || format.type == 'G';
    std::string word = std::isnan(d) ? (upper ? "NAN" : "nan") : (upper ? "INF" : "inf");
    return format.type == '%' ? word + "%" : word;
  }
  if (format.type == 0 && format.precision < 0) return FloatRepr(d);
  int precision = static_cast<int>(format.precision < 0 ? 6 : format.precision);
  switch (format.type) {
    case 0: return GeneralWithDot(d, precision);
    case 'e': return Print(format.alternate ? "%#.*e" : "%.*e", precision, d);
    case 'E': return Print(format.alternate ? "%#.*E" : "%.*E", precision, d);
    case 'f': case 'F': return Print(format.alternate ? "%#.*f" : "%.*f", precision, d);
    case '%': return Print(format.alternate ? "%#.*f" : "%.*f", precision, d * 100) + "%";
    case 'G': return Print(format.alternate ? "%#.*G" : "%.*G", precision, d);
    default: return Print(format.alternate ? "%#.*g" : "%.*g", precision, d);
  }
}

std::string Group(std::string_view digits, char separator, size_t every) {
  std::string out;
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % every == 0) out += separator;
    out += digits[i];
  }
  return out;
}

// Sign and prefix, whole digits (grouped), the rest; brought to the width.
std::string Assemble(Runtime& r, bool negative, std::string_view prefix, std::string whole, std::string_view rest,
                     const NumberFormat& format, size_t group) {
  std::string head = negative ? "-" : format.sign == '-' ? "" : std::string(1, format.sign);
  head += prefix;
  bool zeros = format.align == '=' && format.fill == "0";
  if (format.grouping != 0) {
    auto grouped = [&](size_t n) { return n + (n - 1) / group; };
    int64_t room = format.width - static_cast<int64_t>(head.size() + rest.size());
    if (zeros && room > 0) {
      r.heap().CheckRoom(static_cast<size_t>(room));
      size_t n = whole.size();
      while (static_cast<int64_t>(grouped(n)) < room) ++n;
      whole.insert(0, n - whole.size(), '0');
    }
    whole = Group(whole, format.grouping, group);
  }
  if (format.align != '=') return PadText(r, head + whole + std::string(rest), format, '>');
  auto size = static_cast<int64_t>(head.size() + whole.size() + rest.size());
  std::string padding;
  if (format.width > size) {
    r.heap().CheckRoom(static_cast<size_t>(format.width - size) * format.fill.size());
    for (int64_t i = size; i < format.width; ++i) padding += format.fill;
  }
  return head + padding + whole + std::string(rest);
}

}  // namespace

std::string PadText(Runtime& r, std::string_view text, const NumberFormat& format, char align) {
  auto size = static_cast<int64_t>(CountCodePoints(text));
  if (format.width <= size) return std::string(text);
  if (format.align != 0) align = format.align;
  int64_t pad = format.width - size;
  int64_t left = align == '<' ? 0 : align == '^' ? pad / 2 : pad;
  r.heap().CheckRoom(static_cast<size_t>(pad) * format.fill.size() + text.size());
  r.StepBytes(static_cast<size_t>(pad));
  std::string out;
  for (int64_t i = 0; i < left; ++i) out += format.fill;
  out += text;
  for (int64_t i = left; i < pad; ++i) out += format.fill;
  return out;
}

std::string FormatInt(Runtime& r, Int i, const NumberFormat& format) {
  if (format.type == 'c') {
    if (i < 0 || i > 0x10FFFF || (i >= 0xD800 && i <= 0xDFFF)) Fail("OverflowError", "%c arg not in range(0x110000)");
    std::string out;
    AppendUtf8(out, static_cast<uint32_t>(i));
    return PadText(r, out, format, '<');
  }
  int base = format.type == 'b' ? 2 : format.type == 'o' ? 8 : format.type == 'x' || format.type == 'X' ? 16 : 10;
  const char* symbols = format.type == 'X' ? "0123456789ABCDEF" : "0123456789abcdef";
  std::string digits;
  auto rest = static_cast<unsigned __int128>(i < 0 ? -i : i);
  do {
    digits.insert(digits.begin(), symbols[static_cast<int>(rest % static_cast<unsigned>(base))]);
    rest /= static_cast<unsigned>(base);
  } while (rest != 0);
  if (format.precision > static_cast<int64_t>(digits.size())) {  // only % conversions get here with a precision
    if (format.precision > kMaxPrecision) Fail("ValueError", "precision too big");
    digits.insert(0, static_cast<size_t>(format.precision) - digits.size(), '0');
  }
  std::string prefix;
  if (format.alternate && base != 10) prefix = std::string("0") + format.type;
  return Assemble(r, i < 0, prefix, std::move(digits), "", format, base == 10 ? 3 : 4);
}

std::string FormatFloat(Runtime& r, double d, const NumberFormat& format) {
  if (format.precision > kMaxPrecision) Fail("ValueError", "precision too big");
  std::string digits = FloatDigits(std::fabs(d), format);
  size_t whole = 0;
  while (whole < digits.size() && digits[whole] >= '0' && digits[whole] <= '9') ++whole;
  if (whole == 0) {  // inf, nan
    NumberFormat plain = format;
    plain.grouping = 0;
    return Assemble(r, std::signbit(d) && !std::isnan(d), "", digits, "", plain, 3);
  }
  return Assemble(r, std::signbit(d), "", digits.substr(0, whole), std::string_view(digits).substr(whole), format, 3);
}

}  // namespace halfbyte::text::jinja
