#include "server/structured_output.h"

#include "engine/grammar_constraint.h"
#include "server/context.h"
#include "text/grammar_regex.h"
#include "text/json_grammar.h"
#include "text/json_schema.h"

namespace halfbyte::server {

using ConstraintPtr = std::shared_ptr<engine::TokenConstraint>;

Grammars::Grammars(std::vector<std::string> bytes, std::vector<int32_t> ends) : trie_(std::make_shared<text::TokenTrie>(bytes)), ends_(std::move(ends)) {}

template <typename Make>
base::Result<ConstraintPtr> Grammars::Get(const std::string& key, const Make& make) {
  {
    std::lock_guard lock(mutex_);
    // An automaton that ran into its limits is made anew, so that one hostile answer does not spoil those that follow.
    kept_.remove_if([&](const auto& entry) { return entry.first == key && entry.second->overflowed(); });
    for (auto it = kept_.begin(); it != kept_.end(); ++it)
      if (it->first == key) {
        kept_.splice(kept_.begin(), kept_, it);
        return ConstraintPtr(std::make_shared<engine::GrammarConstraint>(it->second));
      }
  }
  HB_ASSIGN_OR_RETURN(text::Grammar grammar, make());
  auto automaton = std::make_shared<text::GrammarAutomaton>(std::move(grammar), trie_, ends_);
  std::lock_guard lock(mutex_);
  kept_.emplace_front(key, automaton);
  if (kept_.size() > kKept) kept_.pop_back();
  return ConstraintPtr(std::make_shared<engine::GrammarConstraint>(std::move(automaton)));
}

base::Result<ConstraintPtr> Grammars::JsonObject() {
  return Get("object", [] { return text::JsonObjectGrammar(); });
}
base::Result<ConstraintPtr> Grammars::JsonSchema(const base::Json& schema) {
  return Get("schema " + schema.Dump(), [&] { return text::JsonSchemaGrammar(schema); });
}
base::Result<ConstraintPtr> Grammars::Regex(const std::string& pattern) {
  return Get("regex " + pattern, [&] { return text::RegexGrammar(pattern); });
}

namespace {

ConstraintPtr Take(Fields& f, std::string_view name, base::Result<ConstraintPtr> made) {
  if (made) return std::move(*made);
  f.Fail(name, made.error().ToString());
  return nullptr;
}

// A schema is an object, or its JSON text.
ConstraintPtr FromSchema(Fields& f, std::string_view name, const base::Json& schema, Grammars& grammars) {
  if (!schema.is_string()) {
    if (schema.is_object() || schema.is_bool()) return Take(f, name, grammars.JsonSchema(schema));
    f.Fail(name, base::StrCat("has type ", schema.type_name(), ", a JSON schema is wanted"));
    return nullptr;
  }
  auto parsed = base::Json::Parse(schema.as_string());
  if (!parsed) {
    f.Fail(name, base::StrCat("is not JSON: ", parsed.error().message()));
    return nullptr;
  }
  return Take(f, name, grammars.JsonSchema(*parsed));
}

ConstraintPtr FromFormat(Fields& f, const base::Json& format, Grammars& grammars) {
  Fields inner(format, "response_format.");
  std::string type;
  inner.String("type", type);
  if (inner.error()) return f.Fail(*inner.error()), nullptr;
  if (type == "text") return nullptr;
  if (type == "json_object") return Take(f, "response_format", grammars.JsonObject());
  if (type == "json_schema") {
    const base::Json* outer = format.Find("json_schema");
    const base::Json* schema = outer ? outer->Find("schema") : nullptr;
    if (!schema) return f.Fail("response_format.json_schema.schema", "is missing"), nullptr;
    return FromSchema(f, "response_format.json_schema.schema", *schema, grammars);
  }
  if (type == "regex") {
    const base::Json* pattern = format.Find("pattern");
    if (!pattern || !pattern->is_string()) return f.Fail("response_format.pattern", "a string is wanted"), nullptr;
    return Take(f, "response_format.pattern", grammars.Regex(pattern->as_string()));
  }
  return f.Fail("response_format.type", base::StrCat("is \"", type.substr(0, 40), "\"; text, json_object, json_schema or regex is wanted")), nullptr;
}

Grammars* GrammarsOf(Fields& f, Context& context, std::string_view name) {
  if (context.grammars) return context.grammars.get();
  f.Fail(name, "needs a tokenizer, and this server runs without");
  return nullptr;
}

}  // namespace

ConstraintPtr ReadResponseFormat(Fields& f, Context& context) {
  ConstraintPtr found;
  auto add = [&](std::string_view name, auto make) {
    const base::Json* value = f.Get(name);
    if (!value) return;
    Grammars* grammars = GrammarsOf(f, context, name);
    if (!grammars) return;
    ConstraintPtr made = make(*value, *grammars);
    if (made && found) f.Fail(name, "only one description of the answer can be honoured");
    if (made) found = std::move(made);
  };
  add("response_format", [&](const base::Json& v, Grammars& g) -> ConstraintPtr {
    if (!v.is_object()) return f.Fail("response_format", base::StrCat("has type ", v.type_name(), ", an object is wanted")), nullptr;
    return FromFormat(f, v, g);
  });
  add("guided_json", [&](const base::Json& v, Grammars& g) { return FromSchema(f, "guided_json", v, g); });
  add("guided_regex", [&](const base::Json& v, Grammars& g) -> ConstraintPtr {
    if (!v.is_string()) return f.Fail("guided_regex", "a string is wanted"), nullptr;
    return Take(f, "guided_regex", g.Regex(v.as_string()));
  });
  for (const char* name : {"guided_choice", "guided_grammar", "structured_outputs"}) f.Refuse(name, base::Json(), "is not supported: use response_format");
  return found;
}

ConstraintPtr ReadSglangFormat(Fields& f, Context& context) {
  ConstraintPtr found;
  if (const base::Json* schema = f.Get("json_schema"))
    if (Grammars* g = GrammarsOf(f, context, "json_schema")) found = FromSchema(f, "json_schema", *schema, *g);
  if (const base::Json* regex = f.Get("regex")) {
    Grammars* g = GrammarsOf(f, context, "regex");
    if (!regex->is_string()) f.Fail("regex", "a string is wanted");
    else if (found) f.Fail("regex", "not together with json_schema");
    else if (g) found = Take(f, "regex", g->Regex(regex->as_string()));
  }
  f.Refuse("ebnf", base::Json(), "is not supported: use json_schema or regex");
  f.Refuse("structural_tag", base::Json(), "is not supported");
  return found;
}

}  // namespace halfbyte::server
