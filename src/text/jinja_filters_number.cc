#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "text/jinja_arguments.h"
#include "text/jinja_compare.h"
#include "text/jinja_filters.h"
#include "text/jinja_literal.h"
#include "text/jinja_operations.h"
#include "text/jinja_sort.h"
#include "text/jinja_text.h"

namespace halfbyte::text::jinja {
namespace {

using Kind = Value::Kind;

Value Abs(Runtime&, const Value& v, const Arguments& arguments) {
  Bound("abs", arguments, {});
  if (v.is_integral()) return Value::Integer(v.integer() < 0 ? -v.integer() : v.integer());
  if (v.is(Kind::kFloat)) return Value::Float(std::fabs(v.real()));
  FailIfUndefined(v);
  Fail("TypeError", "bad operand type for abs(): '", TypeName(v), "'");
}

bool FitsInt(double d) { return std::fabs(d) < 1.7e38; }

Value IntOf(double d) {
  if (!FitsInt(d)) Fail("OverflowError", "cannot convert float ", FloatRepr(d), " to integer");
  return Value::Integer(static_cast<Int>(d));
}

Value IntFilter(Runtime& r, const Value& v, const Arguments& arguments) {
  Bound a("int", arguments, {"default", "base"});
  Value otherwise = a.Has(0) ? a[0] : Value::Integer(0);
  FailIfUndefined(v);
  if (v.is_integral()) return Value::Integer(v.integer());
  if (v.is(Kind::kFloat)) return std::isnan(v.real()) ? otherwise : IntOf(v.real());
  if (!v.is_string()) return otherwise;
  r.StepBytes(8 * v.text().size());
  Int base = a.Integer(1, 10), i = 0;
  bool usable = base == 0 || (base >= 2 && base <= 36);
  if (usable && ParseInt(v.text(), static_cast<int>(base), i)) return Value::Integer(i);
  double d = 0;
  if (!ParseFloat(v.text(), d) || !FitsInt(d)) return otherwise;
  return IntOf(d);
}

Value FloatFilter(Runtime& r, const Value& v, const Arguments& arguments) {
  Bound a("float", arguments, {"default"});
  FailIfUndefined(v);
  if (v.is_number()) return Value::Float(v.AsDouble());
  double d = 0;
  if (v.is_string()) {
    r.StepBytes(8 * v.text().size());
    if (ParseFloat(v.text(), d)) return Value::Float(d);
  }
  return a.Has(0) ? a[0] : Value::Float(0);
}

// A decimal text without exponent ("1234.5"), rounded to even at 10**places (places > 0).
double RoundTens(double d, int64_t places) {
  if (places > 308) return std::copysign(0.0, d);
  char buffer[1500];
  std::snprintf(buffer, sizeof buffer, "%.1074f", std::fabs(d));  // exact
  std::string_view text = buffer;
  std::string_view whole = text.substr(0, text.find('.'));
  auto kept = static_cast<int64_t>(whole.size()) - places;
  if (kept < 0) return std::copysign(0.0, d);
  std::string head(whole.substr(0, static_cast<size_t>(kept)));
  std::string_view tail = whole.substr(static_cast<size_t>(kept));
  bool above = tail[0] > '5' || (tail[0] == '5' && (tail.find_first_not_of('0', 1) != tail.npos ||
                                                    text.substr(whole.size() + 1).find_first_not_of('0') != text.npos));
  bool half = tail[0] == '5' && !above;
  if (above || (half && !head.empty() && (head.back() - '0') % 2 == 1)) {
    size_t i = head.size();
    while (i > 0 && head[i - 1] == '9') head[--i] = '0';
    if (i > 0) ++head[i - 1];
    else head.insert(0, "1");
  }
  double rounded = std::strtod((head + "e" + std::to_string(places)).c_str(), nullptr);
  return std::copysign(head.empty() ? 0.0 : rounded, d);
}

double RoundFloat(double d, int64_t precision) {
  if (!std::isfinite(d) || precision > 323) return d;
  if (precision < 0) return RoundTens(d, -precision);
  char buffer[800];
  std::snprintf(buffer, sizeof buffer, "%.*f", static_cast<int>(precision), d);  // correctly rounded, ties to even
  return std::strtod(buffer, nullptr);
}

Value RoundInt(Int i, int64_t precision) {
  if (precision >= 0) return Value::Integer(i);
  if (precision < -38) return Value::Integer(0);
  Int unit = PowerOf(Value::Integer(10), Value::Integer(-precision)).integer();
  Int down = FloorDivideInts(i, unit), rest = i - down * unit;
  bool up = rest > unit - rest || (rest == unit - rest && down % 2 != 0);
  return Value::Integer(MultiplyInts(down + up, unit));
}

Value RoundFilter(Runtime& r, const Value& v, const Arguments& arguments) {
  Bound a("round", arguments, {"precision", "method"});
  std::string_view method = a.Text(1, "common");
  if (method != "common" && method != "ceil" && method != "floor") {
    Fail("FilterArgumentError", "method must be common, ceil or floor");
  }
  FailIfUndefined(v);
  if (!v.is_number()) Fail("TypeError", "type ", TypeName(v), " doesn't define __round__ method");
  int64_t precision = Clamp64(a.Integer(0, 0));
  if (method == "common") {
    return v.is_integral() ? RoundInt(v.integer(), precision) : Value::Float(RoundFloat(v.real(), precision));
  }
  Value scale = PowerOf(Value::Integer(10), Value::Integer(precision));
  Value scaled = Binary(r, BinaryOperator::kMultiply, v, scale);
  if (scaled.is(Kind::kFloat)) {
    scaled = IntOf(method == "ceil" ? std::ceil(scaled.real()) : std::floor(scaled.real()));
  }
  return Binary(r, BinaryOperator::kDivide, scaled, scale);
}

Value FileSizeFormat(Runtime& r, const Value& v, const Arguments& arguments) {
  Bound a("filesizeformat", arguments, {"binary"});
  bool binary = a.Truth(0, false);
  FailIfUndefined(v);
  double bytes = 0;
  if (v.is_number()) bytes = v.AsDouble();
  else if (!v.is_string() || !ParseFloat(v.text(), bytes)) Fail("ValueError", "could not convert to float: ", Repr(r, v));
  double base = binary ? 1024 : 1000;
  char buffer[400];
  if (bytes == 1) return Value::Borrowed("1 Byte");
  if (bytes < base) {
    std::snprintf(buffer, sizeof buffer, "%.0f Bytes", std::trunc(bytes) + 0.0);  // + 0.0: no "-0"
    return r.String(buffer);
  }
  static constexpr const char* kUnits = "kMGTPEZY";
  double unit = base * base;
  int i = 0;
  for (; i < 7 && bytes >= unit; ++i) unit *= base;
  char letter = binary && i == 0 ? 'K' : kUnits[i];
  std::snprintf(buffer, sizeof buffer, "%.1f %c%s", base * bytes / unit, letter, binary ? "iB" : "B");
  return r.String(buffer);
}

Value Sum(Runtime& r, const Value& v, const Arguments& arguments) {
  Bound a("sum", arguments, {"attribute", "start"});
  Value total = a.Has(1) ? a[1] : Value::Integer(0);
  if (total.is_string()) Fail("TypeError", "sum() can't sum strings [use ''.join(seq) instead]");
  AttributePath path(r, a[0], false);
  Cursor cursor(r, v);
  for (Value item; cursor.Next(item);) total = Binary(r, BinaryOperator::kAdd, total, path.Get(r, item, Value(), false));
  return total;
}

Value Extreme(Runtime& r, const Value& v, const Arguments& arguments, bool largest) {
  Bound a(largest ? "max" : "min", arguments, {"case_sensitive", "attribute"});
  bool fold = !a.Truth(0, false);
  AttributePath path(r, a[1], false);
  Cursor cursor(r, v);
  Value best, best_key;
  for (Value item; cursor.Next(item);) {
    Value key = path.Get(r, item, Value(), fold);
    if (!best.is_missing() && !(largest ? Less(r, best_key, key) : Less(r, key, best_key))) continue;
    best = std::move(item);
    best_key = std::move(key);
  }
  return best.is_missing() ? MakeUndefined(r.heap(), "No aggregated item, sequence was empty.") : best;
}

constexpr FilterEntry kFilters[] = {
    {"abs", Abs},
    {"filesizeformat", FileSizeFormat},
    {"float", FloatFilter},
    {"int", IntFilter},
    {"max", [](Runtime& r, const Value& v, const Arguments& a) { return Extreme(r, v, a, true); }},
    {"min", [](Runtime& r, const Value& v, const Arguments& a) { return Extreme(r, v, a, false); }},
    {"round", RoundFilter},
    {"sum", Sum},
};

}  // namespace

FilterTable NumberFilters() { return {kFilters, std::size(kFilters)}; }

}  // namespace halfbyte::text::jinja
