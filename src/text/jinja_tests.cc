#include "text/jinja_tests.h"

#include <algorithm>

#include "text/jinja_arguments.h"
#include "text/jinja_compare.h"
#include "text/jinja_filters.h"
#include "text/jinja_iterate.h"
#include "text/jinja_methods.h"
#include "text/jinja_operations.h"
#include "text/jinja_text.h"

namespace halfbyte::text::jinja {
namespace {

using Kind = Value::Kind;

void NoArguments(const Arguments& a) { Bound::Positional("test", a, 0, 0); }

// `v is remainder-of-n`: v % divisor compared with `remainder`.
bool Remainder(Runtime& r, const Value& v, const Value& divisor, int remainder) {
  Value rest = Binary(r, BinaryOperator::kModulo, v, divisor);
  return Equal(r, rest, Value::Integer(remainder));
}

bool HasCase(Runtime& r, const Value& v, const char* method) {
  return FindStringMethod(method)->function(r, ToStr(r, v), Arguments()).boolean();
}

bool IsSequence(const Value& v) {
  switch (v.kind()) {
    case Kind::kUndefined: case Kind::kString: case Kind::kTuple: case Kind::kList: case Kind::kDict: case Kind::kRange:
      return true;
    default: return false;
  }
}

template <bool (*kCompare)(Runtime&, const Value&, const Value&)>
bool Pair(Runtime& r, const Value& v, const Arguments& arguments) {
  Bound a = Bound::Positional("test", arguments, 1, 1);
  return kCompare(r, v, a[0]);
}
bool NotEqual(Runtime& r, const Value& a, const Value& b) { return !Equal(r, a, b); }
bool IsIn(Runtime& r, const Value& item, const Value& container) { return Contains(r, container, item); }
bool IsSame(Runtime&, const Value& a, const Value& b) { return SameObject(a, b); }
bool IsDivisible(Runtime& r, const Value& a, const Value& b) { return Remainder(r, a, b, 0); }
template <Order kOrder>
bool InOrder(Runtime& r, const Value& a, const Value& b) { return Ordered(r, kOrder, a, b); }

struct TestEntry {
  std::string_view name;
  TestFunction function;
};
#define HB_TEST(condition) \
  [](Runtime& r, const Value& v, const Arguments& a) -> bool { (void)r; NoArguments(a); return condition; }
constexpr TestEntry kTests[] = {
    {"!=", Pair<NotEqual>},
    {"<", Pair<InOrder<Order::kLess>>},
    {"<=", Pair<InOrder<Order::kLessEqual>>},
    {"==", Pair<Equal>},
    {">", Pair<InOrder<Order::kGreater>>},
    {">=", Pair<InOrder<Order::kGreaterEqual>>},
    {"boolean", HB_TEST(v.is(Kind::kBool))},
    {"callable", HB_TEST(IsCallable(v))},
    {"defined", HB_TEST(!v.is_undefined())},
    {"divisibleby", Pair<IsDivisible>},
    {"eq", Pair<Equal>},
    {"equalto", Pair<Equal>},
    {"escaped", HB_TEST(v.is_markup())},
    {"even", HB_TEST(Remainder(r, v, Value::Integer(2), 0))},
    {"false", HB_TEST(v.is(Kind::kBool) && !v.boolean())},
    {"filter", HB_TEST(v.is_string() && FindFilter(v.text()) != nullptr)},
    {"float", HB_TEST(v.is(Kind::kFloat))},
    {"ge", Pair<InOrder<Order::kGreaterEqual>>},
    {"greaterthan", Pair<InOrder<Order::kGreater>>},
    {"gt", Pair<InOrder<Order::kGreater>>},
    {"in", Pair<IsIn>},
    {"integer", HB_TEST(v.is(Kind::kInt))},
    {"iterable", HB_TEST(IsIterable(v) || v.is(Kind::kLoop))},
    {"le", Pair<InOrder<Order::kLessEqual>>},
    {"lessthan", Pair<InOrder<Order::kLess>>},
    {"lower", HB_TEST(HasCase(r, v, "islower"))},
    {"lt", Pair<InOrder<Order::kLess>>},
    {"mapping", HB_TEST(v.is(Kind::kDict))},
    {"ne", Pair<NotEqual>},
    {"none", HB_TEST(v.is_none())},
    {"number", HB_TEST(v.is_number())},
    {"odd", HB_TEST(Remainder(r, v, Value::Integer(2), 1))},
    {"sameas", Pair<IsSame>},
    {"sequence", HB_TEST(IsSequence(v))},
    {"string", HB_TEST(v.is_string())},
    {"test", HB_TEST(v.is_string() && FindTest(v.text()) != nullptr)},
    {"true", HB_TEST(v.is(Kind::kBool) && v.boolean())},
    {"undefined", HB_TEST(v.is_undefined())},
    {"upper", HB_TEST(HasCase(r, v, "isupper"))},
};
#undef HB_TEST

}  // namespace

TestFunction FindTest(std::string_view name) {
  auto it = std::find_if(std::begin(kTests), std::end(kTests), [&](const TestEntry& t) { return t.name == name; });
  return it == std::end(kTests) ? nullptr : it->function;
}

}  // namespace halfbyte::text::jinja
