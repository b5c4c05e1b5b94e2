#include "text/json_schema.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <set>
#include <string>

#include "text/grammar_regex.h"
#include "text/json_grammar.h"
#include "text/json_schema_number.h"

namespace halfbyte::text {
namespace {

using base::Json;
using Expr = GrammarBuilder::Expr;

constexpr int kMaxNesting = 64;          // schemas in schemas
constexpr size_t kMaxSchemas = 10'000;   // schema objects met, $ref targets once each
constexpr int64_t kMaxCount = 100'000;   // minItems, maxLength, ...
constexpr int64_t kMaxBound = 999'999'999'999'999;

const std::set<std::string_view> kAnnotations = {"title", "description", "default", "examples", "example", "$schema", "$id", "id", "$comment", "deprecated", "readOnly", "writeOnly",
                                                 "$defs", "definitions", "$anchor", "discriminator", "contentMediaType", "contentEncoding"};
const std::map<std::string_view, std::set<std::string_view>> kKeywordsOfType = {
    {"object", {"properties", "required", "additionalProperties"}},
    {"array", {"items", "prefixItems", "minItems", "maxItems"}},
    {"string", {"minLength", "maxLength", "pattern", "format"}},
    {"integer", {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"}},
    {"number", {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"}},
    {"boolean", {}},
    {"null", {}},
};
const std::map<std::string_view, const char*> kFormats = {
    {"date", "\\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\\d|3[01])"},
    {"time", "([01]\\d|2[0-3]):[0-5]\\d:[0-5]\\d(\\.\\d{1,6})?(Z|[+-]([01]\\d|2[0-3]):[0-5]\\d)"},
    {"date-time", "\\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\\d|3[01])T([01]\\d|2[0-3]):[0-5]\\d:[0-5]\\d(\\.\\d{1,6})?(Z|[+-]([01]\\d|2[0-3]):[0-5]\\d)"},
    {"uuid", "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"},
    {"ipv4", "((25[0-5]|2[0-4]\\d|1\\d\\d|[1-9]?\\d)\\.){3}(25[0-5]|2[0-4]\\d|1\\d\\d|[1-9]?\\d)"},
};

class Compiler {
 public:
  explicit Compiler(const Json& root) : root_(root), whole_(b_.AddRule()), json_(b_) {}

  base::Result<Grammar> Run() {
    HB_ASSIGN_OR_RETURN(const Expr e, Schema(root_, "#", 0));
    b_.Define(whole_, e);
    // $ref targets are rules, compiled when the first reference to them is met; their own references may add more.
    for (size_t i = 0; i < references_.size(); ++i) {
      const Reference r = references_[i];
      HB_ASSIGN_OR_RETURN(const Expr target, Schema(*r.schema, r.path, 0));
      b_.Define(r.rule, target);
    }
    return b_.Build();
  }

 private:
  struct Reference { const Json* schema; std::string path; GrammarBuilder::Rule rule; };

  static tl::unexpected<base::Error> Refuse(const std::string& path, std::string_view what) {
    return base::Fail(base::Error(base::ErrorCode::kUnsupported, base::StrCat("schema ", path, ": ", what)));
  }
  static tl::unexpected<base::Error> Wrong(const std::string& path, std::string_view what) {
    return base::Fail(base::Error(base::ErrorCode::kInvalidArgument, base::StrCat("schema ", path, ": ", what)));
  }

  base::Result<Expr> Schema(const Json& s, const std::string& path, int depth) {
    if (depth > kMaxNesting) return Refuse(path, base::StrCat("nested deeper than ", kMaxNesting));
    if (++schemas_ > kMaxSchemas) return Refuse(path, base::StrCat("more than ", kMaxSchemas, " schemas"));
    if (s.is_bool() && s.as_bool()) return json_.Value();
    if (s.is_bool()) return Wrong(path, "false: no value satisfies it");
    if (!s.is_object()) return Wrong(path, base::StrCat("is a ", s.type_name(), ", an object or a boolean is wanted"));
    for (const char* key : {"$ref", "const", "enum", "anyOf", "oneOf", "allOf"}) {
      const Json* value = s.Find(key);
      if (!value) continue;
      HB_RETURN_IF_ERROR(Alone(s, key, path));
      if (std::string_view(key) == "$ref") return Ref(*value, path);
      if (std::string_view(key) == "const") return b_.Literal(value->Dump());
      if (std::string_view(key) == "enum") return Enum(s, *value, path);
      return Alternatives(key, *value, path, depth);
    }
    HB_ASSIGN_OR_RETURN(const std::vector<std::string> types, Types(s, path));
    HB_RETURN_IF_ERROR(CheckKeywords(s, types, path));
    std::vector<Expr> alternatives;
    for (const std::string& type : types) {
      HB_ASSIGN_OR_RETURN(const Expr e, OfType(type, s, path, depth));
      alternatives.push_back(e);
    }
    return alternatives.empty() ? json_.Value() : b_.Choice(std::move(alternatives));
  }

  // A keyword that decides alone may stand beside annotations only, but `type` beside enum and const is checked rather than refused.
  base::Status Alone(const Json& s, std::string_view key, const std::string& path) const {
    for (const auto& [other, value] : s.as_object()) {
      if (other == key || kAnnotations.contains(other)) continue;
      if (other == "type" && (key == "enum" || key == "const")) continue;
      return Refuse(path, base::StrCat("\"", other, "\" beside \"", key, "\" is not supported"));
    }
    return {};
  }

  // The types that the schema names, or means by its keywords; none: any value.
  base::Result<std::vector<std::string>> Types(const Json& s, const std::string& path) const {
    std::vector<std::string> types;
    if (const Json* type = s.Find("type")) {
      const Json::Array one = {*type};
      for (const Json& t : type->is_array() ? type->as_array() : one) {
        if (!t.is_string() || !kKeywordsOfType.contains(t.as_string())) return Wrong(path, base::StrCat("\"type\": ", t.Dump(), " is no type"));
        types.push_back(t.as_string());
      }
      if (types.empty()) return Wrong(path, "\"type\" is an empty list");
      return types;
    }
    for (const char* type : {"object", "array", "string", "number"})
      for (const auto& [key, value] : s.as_object())
        if (kKeywordsOfType.at(type).contains(key)) return std::vector<std::string>{type};
    return types;
  }

  base::Status CheckKeywords(const Json& s, const std::vector<std::string>& types, const std::string& path) const {
    for (const auto& [key, value] : s.as_object()) {
      if (key == "type" || kAnnotations.contains(key)) continue;
      const bool honoured = std::any_of(types.begin(), types.end(), [&, &k = key](const std::string& t) { return kKeywordsOfType.at(t).contains(k); });
      if (honoured) continue;
      // A keyword about another type says nothing about this one ({"type": "string", "minimum": 1}).
      const bool of_other_type = std::any_of(kKeywordsOfType.begin(), kKeywordsOfType.end(), [&, &k = key](const auto& t) { return t.second.contains(k); });
      if (!of_other_type || types.empty()) return Refuse(path, base::StrCat("\"", key, "\" is not supported"));
    }
    return {};
  }

  base::Result<Expr> OfType(const std::string& type, const Json& s, const std::string& path, int depth) {
    if (type == "object") return Object(s, path, depth);
    if (type == "array") return Array(s, path, depth);
    if (type == "string") return String(s, path);
    if (type == "integer" || type == "number") return Number(s, type == "integer", path);
    return type == "boolean" ? json_.Boolean() : json_.Null();
  }

  base::Result<Expr> Ref(const Json& ref, const std::string& path) {
    if (!ref.is_string() || ref.as_string().empty() || ref.as_string()[0] != '#') return Refuse(path, base::StrCat("$ref ", ref.Dump(), ": only references into this document (#/...) are"));
    const std::string& pointer = ref.as_string();
    if (const auto it = rules_.find(pointer); it != rules_.end()) return b_.CallRule(it->second);
    HB_ASSIGN_OR_RETURN(const Json* target, Resolve(pointer, path));
    const GrammarBuilder::Rule rule = b_.AddRule();
    rules_.emplace(pointer, rule);
    references_.push_back({target, pointer, rule});
    return b_.CallRule(rule);
  }

  base::Result<const Json*> Resolve(const std::string& pointer, const std::string& path) const {
    const Json* at = &root_;
    for (size_t i = 1; i < pointer.size();) {
      if (pointer[i] != '/') return Refuse(path, base::StrCat("$ref \"", pointer, "\" is no JSON pointer and"));
      const size_t end = std::min(pointer.find('/', i + 1), pointer.size());
      std::string key = pointer.substr(i + 1, end - i - 1);
      for (size_t t; (t = key.find("~1")) != std::string::npos;) key.replace(t, 2, "/");
      for (size_t t; (t = key.find("~0")) != std::string::npos;) key.replace(t, 2, "~");
      at = at->Find(key);
      if (!at) return Wrong(path, base::StrCat("$ref \"", pointer, "\" leads nowhere"));
      i = end;
    }
    return at;
  }

  base::Result<Expr> Enum(const Json& s, const Json& values, const std::string& path) {
    if (!values.is_array() || values.as_array().empty()) return Wrong(path, "\"enum\" must be a list with at least one value");
    HB_ASSIGN_OR_RETURN(const std::vector<std::string> types, Types(s, path));
    std::vector<Expr> alternatives;
    for (const Json& v : values.as_array()) {
      const bool of_type = types.empty() || std::any_of(types.begin(), types.end(), [&](const std::string& t) { return IsOfType(v, t); });
      if (of_type) alternatives.push_back(b_.Literal(v.Dump()));
    }
    if (alternatives.empty()) return Wrong(path, "no value of \"enum\" is of its \"type\"");
    return b_.Choice(std::move(alternatives));
  }

  static bool IsOfType(const Json& v, const std::string& type) {
    if (type == "object") return v.is_object();
    if (type == "array") return v.is_array();
    if (type == "string") return v.is_string();
    if (type == "boolean") return v.is_bool();
    if (type == "null") return v.is_null();
    return v.is_number() && (type == "number" || v.type() != Json::Type::kDouble || v.as_double() == std::floor(v.as_double()));
  }

  base::Result<Expr> Alternatives(std::string_view key, const Json& list, const std::string& path, int depth) {
    if (!list.is_array() || list.as_array().empty()) return Wrong(path, base::StrCat("\"", key, "\" must be a list with at least one schema"));
    if (key == "allOf" && list.as_array().size() > 1) return Refuse(path, "\"allOf\" of more than one schema is not supported");
    if (key == "oneOf" && !Disjoint(list.as_array())) return Refuse(path, "\"oneOf\" whose alternatives do not differ in type or in a constant is not supported; say \"anyOf\"");
    std::vector<Expr> alternatives;
    for (size_t i = 0; i < list.as_array().size(); ++i) {
      HB_ASSIGN_OR_RETURN(const Expr e, Schema(list.as_array()[i], base::StrCat(path, "/", key, "/", i), depth + 1));
      alternatives.push_back(e);
    }
    return b_.Choice(std::move(alternatives));
  }

  // Whether no value can satisfy two of the schemas: they differ in type, in their constant, or in the constant of a required property.
  bool Disjoint(const Json::Array& schemas) const {
    for (size_t i = 0; i < schemas.size(); ++i)
      for (size_t j = i + 1; j < schemas.size(); ++j)
        if (!Differ(Target(schemas[i]), Target(schemas[j]))) return false;
    return true;
  }
  const Json& Target(const Json& s) const {
    const Json* ref = s.Find("$ref");
    if (!ref || !ref->is_string() || ref->as_string().empty() || ref->as_string()[0] != '#') return s;
    const auto target = Resolve(ref->as_string(), "");
    return target ? **target : s;
  }
  static bool Differ(const Json& a, const Json& b) {
    const Json *ta = a.Find("type"), *tb = b.Find("type");
    if (ta && tb && ta->is_string() && tb->is_string() && ta->as_string() != tb->as_string() &&
        !(ta->as_string() == "integer" && tb->as_string() == "number") && !(ta->as_string() == "number" && tb->as_string() == "integer")) return true;
    const Json *ca = a.Find("const"), *cb = b.Find("const");
    if (ca && cb) return !(*ca == *cb);
    const Json *pa = a.Find("properties"), *pb = b.Find("properties");
    if (!pa || !pb || !pa->is_object() || !pb->is_object()) return false;
    for (const auto& [name, schema] : pa->as_object()) {
      const Json* other = pb->Find(name);
      const Json *x = schema.Find("const"), *y = other ? other->Find("const") : nullptr;
      if (x && y && !(*x == *y) && Requires(a, name) && Requires(b, name)) return true;
    }
    return false;
  }
  static bool Requires(const Json& s, std::string_view name) {
    const Json* required = s.Find("required");
    if (!required || !required->is_array()) return false;
    return std::any_of(required->as_array().begin(), required->as_array().end(), [&](const Json& r) { return r.is_string() && r.as_string() == name; });
  }

  base::Result<Expr> Object(const Json& s, const std::string& path, int depth) {
    const Json* properties = s.Find("properties");
    const Json* further = s.Find("additionalProperties");
    const Json* required = s.Find("required");
    if (properties && !properties->is_object()) return Wrong(path, "\"properties\" must be an object");
    if (required && !required->is_array()) return Wrong(path, "\"required\" must be a list");
    if (required) {
      for (const Json& name : required->as_array()) {
        if (!name.is_string()) return Wrong(path, "\"required\" must be a list of strings");
        if (!properties || !properties->Find(name.as_string())) return Refuse(path, base::StrCat("\"required\" names \"", name.as_string(), "\", which is not among \"properties\"; that is not supported"));
      }
    }
    if (!properties || properties->as_object().empty()) {
      const bool none = further && further->is_bool() && !further->as_bool();
      if (none || (properties && !further)) return b_.Sequence({b_.Literal("{"), json_.Blank(), b_.Literal("}")});
      if (!further || further->is_bool()) return json_.Object();
      HB_ASSIGN_OR_RETURN(const Expr value, Schema(*further, path + "/additionalProperties", depth + 1));
      return json_.Enclosed("{", json_.List(json_.Member(json_.String(), value), 0, -1), "}");
    }
    return Members(s, properties->as_object(), path, depth);
  }

  // Members in order; an optional one may be left out. Going backwards, `first` is what may come from here on where nothing came yet, `later` where
  // something did.
  base::Result<Expr> Members(const Json& s, const Json::Object& members, const std::string& path, int depth) {
    Expr first = b_.Empty(), later = b_.Empty();
    for (size_t i = members.size(); i-- > 0;) {
      const auto& [name, schema] = members[i];
      HB_ASSIGN_OR_RETURN(const Expr value, Schema(schema, base::StrCat(path, "/properties/", name), depth + 1));
      const Expr member = json_.Member(b_.Literal(Json(name).Dump()), value);
      const bool needed = Requires(s, name);
      // Rules, because both are used twice in the next round and would double the network every time.
      const GrammarBuilder::Rule with = b_.AddRule(), rest = b_.AddRule();
      b_.Define(rest, later);
      const Expr here = b_.Sequence({member, b_.CallRule(rest)});
      b_.Define(with, here);
      const Expr with_comma = b_.Sequence({json_.Comma(), b_.CallRule(with)});
      first = needed ? b_.CallRule(with) : b_.Choice({b_.CallRule(with), first});
      later = needed ? with_comma : b_.Choice({with_comma, b_.CallRule(rest)});
    }
    return json_.Enclosed("{", first, "}");
  }

  base::Result<int64_t> Count(const Json& s, const char* key, int64_t otherwise, const std::string& path) const {
    const Json* v = s.Find(key);
    if (!v) return otherwise;
    if (!v->is_int() || v->as_int() < 0) return Wrong(path, base::StrCat("\"", key, "\" must be a whole number, 0 or more"));
    // Beyond this an upper bound is none: no answer is that long.
    if (v->as_int() > kMaxCount && otherwise < 0) return -1;
    if (v->as_int() > kMaxCount) return Refuse(path, base::StrCat("\"", key, "\" above ", kMaxCount, " is not supported"));
    return v->as_int();
  }

  base::Result<Expr> Array(const Json& s, const std::string& path, int depth) {
    HB_ASSIGN_OR_RETURN(const int64_t min, Count(s, "minItems", 0, path));
    HB_ASSIGN_OR_RETURN(const int64_t max, Count(s, "maxItems", -1, path));
    if (max >= 0 && max < min) return Wrong(path, "\"maxItems\" is below \"minItems\"");
    const Json* prefix = s.Find("prefixItems");
    const Json* items = s.Find("items");
    if (!prefix) {
      if (items && items->is_bool() && !items->as_bool()) {
        if (min > 0) return Wrong(path, "\"items\" is false and \"minItems\" is not 0");
        return b_.Sequence({b_.Literal("["), json_.Blank(), b_.Literal("]")});
      }
      Expr item = json_.Value();
      if (items) { HB_ASSIGN_OR_RETURN(item, AsRule(*items, path + "/items", depth)); }
      return json_.Enclosed("[", json_.List(item, min, max), "]");
    }
    if (!prefix->is_array() || prefix->as_array().empty()) return Wrong(path, "\"prefixItems\" must be a list with at least one schema");
    // A tuple: exactly its items, nothing after them; shorter ones are not generated.
    const int64_t n = static_cast<int64_t>(prefix->as_array().size());
    const bool closed = items && items->is_bool() && !items->as_bool();
    if (min > n || (max >= 0 && max < n) || (items && !closed)) return Refuse(path, "\"prefixItems\" with further items, or with another \"minItems\" or \"maxItems\" than its length, is not supported");
    std::vector<Expr> parts;
    for (int64_t i = 0; i < n; ++i) {
      if (i > 0) parts.push_back(json_.Comma());
      HB_ASSIGN_OR_RETURN(const Expr e, Schema(prefix->as_array()[static_cast<size_t>(i)], base::StrCat(path, "/prefixItems/", i), depth + 1));
      parts.push_back(e);
    }
    return json_.Enclosed("[", b_.Sequence(std::move(parts)), "]");
  }

  // An item is written into the network many times; as a rule it is written once and called.
  base::Result<Expr> AsRule(const Json& s, const std::string& path, int depth) {
    HB_ASSIGN_OR_RETURN(const Expr e, Schema(s, path, depth + 1));
    const GrammarBuilder::Rule rule = b_.AddRule();
    b_.Define(rule, e);
    return b_.CallRule(rule);
  }

  base::Result<Expr> String(const Json& s, const std::string& path) {
    HB_ASSIGN_OR_RETURN(const int64_t min, Count(s, "minLength", 0, path));
    HB_ASSIGN_OR_RETURN(const int64_t max, Count(s, "maxLength", -1, path));
    if (max >= 0 && max < min) return Wrong(path, "\"maxLength\" is below \"minLength\"");
    const Json* pattern = s.Find("pattern");
    const Json* format = s.Find("format");
    if ((pattern || format) && (s.Find("minLength") || s.Find("maxLength"))) return Refuse(path, "\"pattern\" or \"format\" beside a length is not supported");
    if (pattern && format) return Refuse(path, "\"pattern\" beside \"format\" is not supported");
    if (pattern || format) {
      const Json& text = pattern ? *pattern : *format;
      if (!text.is_string()) return Wrong(path, "\"pattern\" and \"format\" must be strings");
      std::string expression = text.as_string();
      if (format) {
        const auto it = kFormats.find(expression);
        if (it == kFormats.end()) return Refuse(path, base::StrCat("\"format\": \"", expression, "\" is not supported"));
        expression = it->second;
      }
      auto e = RegexExpr(b_, expression, pattern ? RegexMatch::kSearch : RegexMatch::kWhole, JsonStringExpr);
      if (!e) return base::Fail(std::move(e).error().At(base::StrCat("schema ", path)));
      return json_.Quoted(*e);
    }
    if (min == 0 && max < 0) return json_.String();
    return json_.Quoted(b_.Repeat(json_.Character(), min, max < 0 ? GrammarBuilder::kUnbounded : max));
  }

  base::Result<Expr> Number(const Json& s, bool integer, const std::string& path) {
    NumberBounds bounds;
    bool any = false;
    for (const char* key : {"minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum"}) {
      const Json* v = s.Find(key);
      if (!v) continue;
      any = true;
      if (!v->is_number()) return Wrong(path, base::StrCat("\"", key, "\" must be a number"));
      double bound = v->as_double();
      const std::string_view k = key;
      const bool low = k == "minimum" || k == "exclusiveMinimum", exclusive = k.starts_with("exclusive");
      if (integer) bound = low ? (exclusive ? std::floor(bound) + 1 : std::ceil(bound)) : (exclusive ? std::ceil(bound) - 1 : std::floor(bound));
      if (bound != std::floor(bound)) return Refuse(path, base::StrCat("\"", key, "\": ", bound, " on a number; only whole bounds are"));
      if (std::abs(bound) > static_cast<double>(kMaxBound)) {
        // A bound outside of what is generated at all changes nothing on its own side, and leaves nothing on the other.
        if ((bound < 0) == low) continue;
        return Refuse(path, base::StrCat("\"", key, "\" beyond 15 digits"));
      }
      const int64_t whole = static_cast<int64_t>(bound);
      std::optional<int64_t>& mine = low ? bounds.low : bounds.high;
      bool& excluded = low ? bounds.above_low : bounds.below_high;
      const bool tighter = !mine || (low ? whole > *mine : whole < *mine);
      if (tighter) { mine = whole; excluded = exclusive && !integer; }
      else if (whole == *mine) excluded |= exclusive && !integer;
    }
    if (!any) return integer ? json_.Integer() : json_.Number();
    const auto e = integer ? BoundedInteger(b_, bounds) : BoundedNumber(b_, bounds);
    if (!e) return Wrong(path, "no number lies between its bounds");
    return *e;
  }

  const Json& root_;
  GrammarBuilder b_;
  GrammarBuilder::Rule whole_;  // rule 0
  JsonGrammar json_;
  std::map<std::string, GrammarBuilder::Rule> rules_;  // of $ref targets
  std::vector<Reference> references_;
  size_t schemas_ = 0;
};

}  // namespace

base::Result<Grammar> JsonSchemaGrammar(const Json& schema) { return Compiler(schema).Run(); }

}  // namespace halfbyte::text
