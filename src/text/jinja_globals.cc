// The names that a template has without being given them, and the values made from a context's JSON.
#include "text/jinja_arguments.h"
#include "text/jinja_compare.h"
#include "text/jinja_interpreter.h"
#include "text/jinja_iterate.h"
#include "text/jinja_macro.h"
#include "text/jinja_strftime.h"
#include "text/jinja_text.h"

namespace halfbyte::text::jinja {
namespace {

using Kind = Value::Kind;

constexpr int64_t kMaxRange = 100'000;  // jinja2's sandbox has the same

int64_t RangeBound(const Value& v) {
  if (!v.is_integral()) {
    FailIfUndefined(v);
    Fail("TypeError", "'", TypeName(v), "' object cannot be interpreted as an integer");
  }
  return Clamp64(v.integer());
}

Value Range(Runtime& r, const Arguments& arguments) {
  Bound a = Bound::Positional("range", arguments, 1, 3);
  bool one = !a.Has(1);
  int64_t start = one ? 0 : RangeBound(a[0]), stop = RangeBound(one ? a[0] : a[1]), step = a.Has(2) ? RangeBound(a[2]) : 1;
  if (step == 0) Fail("ValueError", "range() arg 3 must not be zero");
  Value range = Value::Of(Kind::kRange, new RangeObject(r.heap(), start, stop, step));
  if (range.As<RangeObject>().size > kMaxRange) {
    Fail("OverflowError", "Range too big. The sandbox blocks ranges larger than MAX_RANGE (", kMaxRange, ").");
  }
  return range;
}

// dict(), dict(mapping), dict(pairs), with keywords on top.
Value DictFrom(Runtime& r, const Arguments& arguments, const char* function) {
  if (arguments.positional.size() > 1) {
    Fail("TypeError", function, " expected at most 1 argument, got ", arguments.positional.size());
  }
  Value out = MakeDict(r.heap());
  auto& dict = out.As<DictObject>();
  if (!arguments.positional.empty()) {
    const Value& source = arguments.positional[0];
    FailIfUndefined(source);
    if (source.is(Kind::kDict)) {
      for (const auto& [key, value] : source.As<DictObject>().entries()) dict.Set(key, value);
      r.Step(static_cast<int64_t>(dict.size()));
    } else {
      Cursor cursor(r, source);
      for (Value pair; cursor.Next(pair);) {
        std::vector<Value> items = Collect(r, pair);
        if (items.size() != 2) Fail("ValueError", "a pair is wanted for a dict, not ", items.size(), " items");
        dict.Set(items[0], items[1]);
      }
    }
  }
  for (const auto& [name, value] : arguments.keyword) dict.Set(r.String(std::string(name)), value);
  return out;
}

Value Dict(Runtime& r, const Arguments& arguments) { return DictFrom(r, arguments, "dict"); }

Value Namespace(Runtime& r, const Arguments& arguments) {
  Value attributes = DictFrom(r, arguments, "dict");
  Value ns = Value::Of(Kind::kNamespace, new NamespaceObject(r.heap(), MakeDict(r.heap())));
  for (const auto& [name, value] : attributes.As<DictObject>().entries()) {
    if (name.is_string()) SetNamespaceItem(ns, name, value);
  }
  return ns;
}

Value MakeCycler(Runtime& r, const Arguments& arguments) {
  if (arguments.positional.empty()) Fail("RuntimeError", "at least one item has to be provided");
  if (!arguments.keyword.empty()) Fail("TypeError", "cycler() takes no keyword arguments");
  return Value::Of(Kind::kCycler, new CyclerObject(r.heap(), arguments.positional));
}

struct JoinerObject : CallableObject {
  JoinerObject(Heap& heap, Value s) : CallableObject(heap, sizeof(JoinerObject)), separator(std::move(s)) {}
  void Clear() override { separator = Value(); }
  Value Call(Runtime&, const Arguments& arguments) override {
    Bound::Positional("joiner", arguments, 0, 0);
    return std::exchange(used, true) ? separator : Value::Borrowed("");
  }
  std::string Describe() const override { return "<Joiner object>"; }
  const char* type_name() const override { return "Joiner"; }
  Value separator;
  bool used = false;
};

Value MakeJoiner(Runtime& r, const Arguments& arguments) {
  Bound a("joiner", arguments, {"sep"});
  return Value::Of(Kind::kCallable, new JoinerObject(r.heap(), a.Has(0) ? a[0] : Value::Borrowed(", ")));
}

Value RaiseException(Runtime& r, const Arguments& arguments) {
  Bound a("raise_exception", arguments, {"message"}, 1);
  std::string message;
  AppendStr(r, message, a[0]);
  throw TemplateError{TemplateError::Kind::kRaised, std::move(message)};
}

Value StrftimeNow(Runtime& r, const Arguments& arguments) {
  Bound a("strftime_now", arguments, {"format"}, 1);
  std::string_view format = a.Text(0, "");
  r.StepBytes(16 * format.size());
  return r.String(FormatTime(r.now() ? *r.now() : JinjaTime::Now(), format));
}

Value Lipsum(Runtime&, const Arguments&) { Fail("TemplateRuntimeError", "lipsum() is not supported"); }

struct Global {
  const char* name;
  BuiltinObject::Function function;
};
constexpr Global kGlobals[] = {
    {"range", Range},       {"dict", Dict},         {"namespace", Namespace},           {"cycler", MakeCycler},
    {"joiner", MakeJoiner}, {"lipsum", Lipsum},     {"raise_exception", RaiseException}, {"strftime_now", StrftimeNow},
};

}  // namespace

Value FindGlobal(Runtime& r, std::string_view name) {
  for (const Global& global : kGlobals) {
    if (name == global.name) return Value::Of(Kind::kCallable, new BuiltinObject(r.heap(), global.name, global.function));
  }
  return Value();
}

Value FromJson(Runtime& r, const base::Json& json) {
  DepthGuard guard(r);
  r.Step();
  switch (json.type()) {
    case base::Json::Type::kNull: return Value::None();
    case base::Json::Type::kBool: return Value::Bool(json.as_bool());
    case base::Json::Type::kInt: return Value::Integer(json.as_int());
    case base::Json::Type::kUint: return Value::Integer(json.as_uint());
    case base::Json::Type::kDouble: return Value::Float(json.as_double());
    case base::Json::Type::kString: return Value::Borrowed(json.as_string());
    case base::Json::Type::kArray: {
      std::vector<Value> items;
      items.reserve(json.as_array().size());
      for (const base::Json& item : json.as_array()) items.push_back(FromJson(r, item));
      return r.List(std::move(items));
    }
    case base::Json::Type::kObject: {
      Value out = MakeDict(r.heap());
      for (const auto& [key, value] : json.as_object()) out.As<DictObject>().Set(Value::Borrowed(key), FromJson(r, value));
      return out;
    }
  }
  return Value::None();
}

}  // namespace halfbyte::text::jinja
