// JSON as a grammar: the parts that schemas are put together from.
//
// Blanks between tokens are at most one space, or one line break and an indentation of at most kMaxIndent: models that may write blanks without
// end sometimes do. Numbers have at most 16 digits on either side of the point and an exponent of at most 2 (any double
// parser takes them), for the same reason. Every answer is JSON.
#pragma once

#include "text/code_points.h"
#include "text/grammar.h"

namespace halfbyte::text {

class JsonGrammar {
 public:
  using Expr = GrammarBuilder::Expr;
  static constexpr int64_t kMaxIndent = 32;
  static constexpr int64_t kMaxDigits = 16;

  // Defines the rules in `builder`, which must outlive this.
  explicit JsonGrammar(GrammarBuilder& builder);

  Expr Blank() { return b_.CallRule(blank_); }
  Expr Value() { return b_.CallRule(value_); }    // any
  Expr Object() { return b_.CallRule(object_); }  // any
  Expr Array() { return b_.CallRule(array_); }    // any
  Expr String() { return b_.CallRule(string_); }  // any, with its quotes
  Expr Character() { return b_.CallRule(character_); }  // one code point of a string, escaped or not
  Expr Number() { return b_.CallRule(number_); }
  Expr Integer() { return b_.CallRule(integer_); }
  Expr Fraction();  // ".25"
  Expr Boolean() { return b_.Choice({b_.Literal("true"), b_.Literal("false")}); }
  Expr Null() { return b_.Literal("null"); }

  Expr Quoted(Expr characters) { return b_.Sequence({b_.Literal("\""), characters, b_.Literal("\"")}); }
  // "[" items "]" or "{" members "}" with blanks inside; the content brings the blanks between its own parts.
  Expr Enclosed(const char* open, Expr content, const char* close) { return b_.Sequence({b_.Literal(open), Blank(), content, Blank(), b_.Literal(close)}); }
  Expr Comma() { return b_.Sequence({Blank(), b_.Literal(","), Blank()}); }
  Expr Member(Expr key, Expr value) { return b_.Sequence({key, Blank(), b_.Literal(":"), Blank(), value}); }
  // min to max items (max < 0: any number) with commas between.
  Expr List(Expr item, int64_t min, int64_t max);

 private:
  GrammarBuilder& b_;
  GrammarBuilder::Rule blank_, value_, object_, array_, string_, character_, number_, integer_;
};

// Rule 0 is any JSON object: response_format json_object.
base::Result<Grammar> JsonObjectGrammar();

}  // namespace halfbyte::text
