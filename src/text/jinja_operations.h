// What the operators of an expression do: arithmetic, attribute and item access, slices, calls.
#pragma once

#include "text/jinja_runtime.h"

namespace halfbyte::text::jinja {

enum class BinaryOperator { kAdd, kSubtract, kMultiply, kDivide, kFloorDivide, kModulo, kPower };

Value Binary(Runtime& r, BinaryOperator op, const Value& a, const Value& b);
Value Negate(Runtime& r, const Value& v);
Value Plus(Runtime& r, const Value& v);
// str() of each, joined: the ~ operator.
Value Concatenate(Runtime& r, const std::vector<Value>& parts);

// The parts of Binary, for other callers. Ints past 128 bits are an OverflowError.
Int AddInts(Int a, Int b);
Int MultiplyInts(Int a, Int b);
Int FloorDivideInts(Int a, Int b);  // b != 0
Int ModuloInts(Int a, Int b);       // b != 0
Value PowerOf(const Value& a, const Value& b);
// A sequence or string `times` over.
Value Repeat(Runtime& r, const Value& v, Int times);

// x.name: Python's attribute first, then the item; an undefined where there is neither or the sandbox refuses.
Value GetAttribute(Runtime& r, const Value& v, const Value& name);  // `name` is a string
// x[key]: the item first, then (a string key) the attribute.
Value GetItem(Runtime& r, const Value& v, const Value& key);
// x[start:stop:step]; None or missing for what is left out.
Value GetSlice(Runtime& r, const Value& v, const Value& start, const Value& stop, const Value& step);
// Only the attribute; false where the type has none of that name. The sandbox is asked, so `out` may be an undefined.
bool FindAttribute(Runtime& r, const Value& v, const Value& name, Value& out);
// Whether dicts have an attribute of this name, which then hides an item of that name from the dot.
bool IsDictAttribute(std::string_view name);

bool IsCallable(const Value& v);
Value CallValue(Runtime& r, const Value& callee, const Arguments& arguments);

}  // namespace halfbyte::text::jinja
