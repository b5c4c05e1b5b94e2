#include <cmath>

#include "text/jinja_compare.h"
#include "text/jinja_operations.h"
#include "text/jinja_percent_format.h"
#include "text/jinja_text.h"

namespace halfbyte::text::jinja {
namespace {

using Kind = Value::Kind;

constexpr Int kMaxInt = static_cast<Int>((static_cast<unsigned __int128>(1) << 127) - 1);
constexpr const char* kSymbols[] = {"+", "-", "*", "/", "//", "%", "** or pow()"};

[[noreturn]] void FailOverflow() { Fail("OverflowError", "an integer of more than 128 bits"); }

[[noreturn]] void FailOperands(BinaryOperator op, const Value& a, const Value& b) {
  FailIfUndefined(a);
  FailIfUndefined(b);
  if (op == BinaryOperator::kAdd && (a.is_string() || a.is_sequence())) {
    Fail("TypeError", "can only concatenate ", TypeName(a), " (not \"", TypeName(b), "\") to ", TypeName(a));
  }
  const char* symbol = kSymbols[static_cast<int>(op)];
  Fail("TypeError", "unsupported operand type(s) for ", symbol, ": '", TypeName(a), "' and '", TypeName(b), "'");
}

Int Magnitude(Int i) { return i < 0 ? -i : i; }

Value IntArithmetic(BinaryOperator op, Int a, Int b) {
  switch (op) {
    case BinaryOperator::kAdd: return Value::Integer(AddInts(a, b));
    case BinaryOperator::kSubtract: return Value::Integer(AddInts(a, MultiplyInts(b, -1)));
    case BinaryOperator::kMultiply: return Value::Integer(MultiplyInts(a, b));
    case BinaryOperator::kDivide:
      if (b == 0) Fail("ZeroDivisionError", "division by zero");
      return Value::Float(static_cast<double>(a) / static_cast<double>(b));
    case BinaryOperator::kFloorDivide:
      if (b == 0) Fail("ZeroDivisionError", "integer division or modulo by zero");
      return Value::Integer(FloorDivideInts(a, b));
    case BinaryOperator::kModulo:
      if (b == 0) Fail("ZeroDivisionError", "integer modulo by zero");
      return Value::Integer(ModuloInts(a, b));
    case BinaryOperator::kPower: return PowerOf(Value::Integer(a), Value::Integer(b));
  }
  return Value();
}

double FloatModulo(double a, double b) {
  double m = std::fmod(a, b);
  if (m != 0) {
    if ((b < 0) != (m < 0)) m += b;
  } else {
    m = std::copysign(0.0, b);
  }
  return m;
}

double FloatFloorDivide(double a, double b) {
  double quotient = (a - FloatModulo(a, b)) / b;
  if (quotient == 0) return std::copysign(0.0, a / b);
  double whole = std::floor(quotient);
  return quotient - whole > 0.5 ? whole + 1 : whole;
}

Value FloatArithmetic(BinaryOperator op, double a, double b) {
  switch (op) {
    case BinaryOperator::kAdd: return Value::Float(a + b);
    case BinaryOperator::kSubtract: return Value::Float(a - b);
    case BinaryOperator::kMultiply: return Value::Float(a * b);
    case BinaryOperator::kDivide:
      if (b == 0) Fail("ZeroDivisionError", "float division by zero");
      return Value::Float(a / b);
    case BinaryOperator::kFloorDivide:
      if (b == 0) Fail("ZeroDivisionError", "float floor division by zero");
      return Value::Float(FloatFloorDivide(a, b));
    case BinaryOperator::kModulo:
      if (b == 0) Fail("ZeroDivisionError", "float modulo");
      return Value::Float(FloatModulo(a, b));
    case BinaryOperator::kPower: return PowerOf(Value::Float(a), Value::Float(b));
  }
  return Value();
}

Value AddStrings(Runtime& r, const Value& a, const Value& b) {
  r.heap().CheckRoom(a.text().size() + b.text().size());
  bool markup = a.is_markup() || b.is_markup();
  std::string out;
  out.reserve(a.text().size() + b.text().size());
  for (const Value* part : {&a, &b}) {
    if (markup && !part->is_markup()) AppendEscaped(out, part->text());
    else out += part->text();
  }
  return r.String(std::move(out)).WithMarkup(markup);
}

Value AddSequences(Runtime& r, const Value& a, const Value& b) {
  std::vector<Value> items = a.As<SequenceObject>().items;
  const auto& more = b.As<SequenceObject>().items;
  items.insert(items.end(), more.begin(), more.end());
  r.Step(static_cast<int64_t>(items.size()));
  return a.is(Kind::kList) ? r.List(std::move(items)) : r.Tuple(std::move(items));
}

bool IsRepeatable(const Value& v) { return v.is_string() || v.is_sequence(); }

}  // namespace

Int AddInts(Int a, Int b) {
  if ((b > 0 && a > kMaxInt - b) || (b < 0 && a < -kMaxInt - b)) FailOverflow();
  return a + b;
}

Int MultiplyInts(Int a, Int b) {
  // By division: __builtin_mul_overflow on 128 bits needs a run-time function that libgcc does not have.
  if (a != 0 && Magnitude(b) > kMaxInt / Magnitude(a)) FailOverflow();
  return a * b;
}

Int FloorDivideInts(Int a, Int b) {
  Int q = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? q - 1 : q;
}

Int ModuloInts(Int a, Int b) {
  Int m = a % b;
  return m != 0 && (m < 0) != (b < 0) ? m + b : m;
}

Value PowerOf(const Value& a, const Value& b) {
  if (a.is_integral() && b.is_integral() && b.integer() >= 0) {
    Int base = a.integer(), exponent = b.integer(), result = 1;
    if (Magnitude(base) <= 1) return Value::Integer(base == -1 ? (exponent % 2 == 0 ? 1 : -1) : exponent == 0 ? 1 : base);
    if (exponent > 127) FailOverflow();
    for (; exponent > 0; --exponent) result = MultiplyInts(result, base);
    return Value::Integer(result);
  }
  double x = a.AsDouble(), y = b.AsDouble();
  if (x == 0 && y < 0) Fail("ZeroDivisionError", "0.0 cannot be raised to a negative power");
  if (x < 0 && std::isfinite(x) && std::isfinite(y) && y != std::floor(y)) Fail("TypeError", "complex numbers are not supported");
  double result = std::pow(x, y);
  if (std::isinf(result) && std::isfinite(x) && std::isfinite(y)) Fail("OverflowError", "Numerical result out of range");
  return Value::Float(result);
}

Value Repeat(Runtime& r, const Value& v, Int times) {
  if (times <= 0) times = 0;
  size_t size = v.is_string() ? v.text().size() : v.As<SequenceObject>().items.size() * sizeof(Value);
  bool fits = size == 0 || times <= static_cast<Int>(r.limits().max_memory / size);
  if (!fits) FailLimit("a repetition of ", size, " bytes is too large");
  auto count = static_cast<size_t>(size == 0 ? 0 : times);
  r.heap().CheckRoom(size * count);
  if (v.is_string()) {
    std::string out;
    out.reserve(size * count);
    for (size_t i = 0; i < count; ++i) out += v.text();
    return r.String(std::move(out)).WithMarkup(v.is_markup());
  }
  const auto& source = v.As<SequenceObject>().items;
  r.Step(static_cast<int64_t>(source.size() * count));
  std::vector<Value> items;
  items.reserve(source.size() * count);
  for (size_t i = 0; i < count; ++i) items.insert(items.end(), source.begin(), source.end());
  return v.is(Kind::kList) ? r.List(std::move(items)) : r.Tuple(std::move(items));
}

Value Binary(Runtime& r, BinaryOperator op, const Value& a, const Value& b) {
  r.Step();
  if (op == BinaryOperator::kAdd) {
    if (a.is_string() && b.is_string()) return AddStrings(r, a, b);
    if (a.is_sequence() && a.kind() == b.kind()) return AddSequences(r, a, b);
  }
  if (a.is_integral() && b.is_integral()) return IntArithmetic(op, a.integer(), b.integer());
  if (a.is_number() && b.is_number()) return FloatArithmetic(op, a.AsDouble(), b.AsDouble());
  if (op == BinaryOperator::kMultiply) {
    if (IsRepeatable(a) && b.is_integral()) return Repeat(r, a, b.integer());
    if (IsRepeatable(b) && a.is_integral()) return Repeat(r, b, a.integer());
  }
  if (op == BinaryOperator::kModulo && a.is_string()) return PercentFormat(r, a, b);
  FailOperands(op, a, b);
}

Value Negate(Runtime&, const Value& v) {
  if (v.is_integral()) return Value::Integer(-v.integer());
  if (v.is(Kind::kFloat)) return Value::Float(-v.real());
  FailIfUndefined(v);
  Fail("TypeError", "bad operand type for unary -: '", TypeName(v), "'");
}

Value Plus(Runtime&, const Value& v) {
  if (v.is_integral()) return Value::Integer(v.integer());
  if (v.is(Kind::kFloat)) return v;
  FailIfUndefined(v);
  Fail("TypeError", "bad operand type for unary +: '", TypeName(v), "'");
}

Value Concatenate(Runtime& r, const std::vector<Value>& parts) {
  bool markup = false;
  if (r.autoescape) {
    for (const Value& part : parts) markup |= part.is_markup();
  }
  std::string out;
  for (const Value& part : parts) {
    r.CheckGrowth(out);
    if (markup && !part.is_markup()) AppendEscaped(out, ToStr(r, part).text());
    else AppendStr(r, out, part);
  }
  return r.String(std::move(out)).WithMarkup(markup);
}

}  // namespace halfbyte::text::jinja
