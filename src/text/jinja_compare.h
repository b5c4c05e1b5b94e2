// Truth, equality, order, membership and identity of values, as Python has them.
#pragma once

#include <optional>

#include "text/jinja_runtime.h"

namespace halfbyte::text::jinja {

bool Truthy(const Value& v);

// ==. Numbers compare across int, bool and float; every undefined equals every other.
bool Equal(Runtime& r, const Value& a, const Value& b);

enum class Order { kLess, kLessEqual, kGreater, kGreaterEqual };
// <, <=, >, >=; a TypeError where Python has none.
bool Ordered(Runtime& r, Order order, const Value& a, const Value& b);
inline bool Less(Runtime& r, const Value& a, const Value& b) { return Ordered(r, Order::kLess, a, b); }

bool Contains(Runtime& r, const Value& container, const Value& item);  // item in container
bool SameObject(const Value& a, const Value& b);                       // a is b

// len(); none for what has no length.
std::optional<int64_t> Size(const Value& v);

// Dict keys: an order over all hashable values in which equal keys (1, 1.0 and True) compare equal.
void CheckHashable(const Value& key);
int CompareKeys(const Value& a, const Value& b);

// -1, 0, 1, or 2 where a NaN is involved; exact, also between a large int and a float.
int CompareNumbers(const Value& a, const Value& b);

}  // namespace halfbyte::text::jinja
