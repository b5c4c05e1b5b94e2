#include "text/json_grammar.h"

namespace halfbyte::text {
namespace {

using Expr = GrammarBuilder::Expr;

Expr Digit(GrammarBuilder& b) { return b.ByteRange('0', '9'); }

Expr HexDigit(GrammarBuilder& b) { return b.Choice({b.ByteRange('0', '9'), b.ByteRange('a', 'f'), b.ByteRange('A', 'F')}); }

// \uXXXX of a code point outside the surrogates, or of a pair of them.
Expr UnicodeEscape(GrammarBuilder& b) {
  const Expr hex = HexDigit(b), d = b.Choice({b.Literal("d"), b.Literal("D")});
  const Expr not_d = b.Choice({b.ByteRange('0', '9'), b.ByteRange('a', 'c'), b.ByteRange('A', 'C'), b.ByteRange('e', 'f'), b.ByteRange('E', 'F')});
  const Expr high = b.Choice({b.ByteRange('8', '9'), b.ByteRange('a', 'b'), b.ByteRange('A', 'B')});
  const Expr low = b.Choice({b.ByteRange('c', 'f'), b.ByteRange('C', 'F')});
  return b.Sequence({b.Literal("\\u"), b.Choice({b.Sequence({not_d, hex, hex, hex}), b.Sequence({d, b.ByteRange('0', '7'), hex, hex}),
                                                 b.Sequence({d, high, hex, hex, b.Literal("\\u"), d, low, hex, hex})})});
}

Expr CharacterExpr(GrammarBuilder& b) {
  static const CodePoints plain = CodePoints::All().Without(CodePoints({{0, 0x1F}, {'"', '"'}, {'\\', '\\'}}));
  std::vector<Expr> short_escapes;
  for (const char c : {'"', '\\', '/', 'b', 'f', 'n', 'r', 't'}) short_escapes.push_back(b.Literal(std::string("\\") + c));
  return b.Choice({Utf8Expr(b, plain), b.Choice(std::move(short_escapes)), UnicodeEscape(b)});
}

}  // namespace

JsonGrammar::JsonGrammar(GrammarBuilder& builder) : b_(builder) {
  for (GrammarBuilder::Rule* r : {&blank_, &value_, &object_, &array_, &string_, &character_, &number_, &integer_}) *r = b_.AddRule();
  b_.Define(blank_, b_.Choice({b_.Empty(), b_.Literal(" "), b_.Sequence({b_.Literal("\n"), b_.Repeat(b_.Choice({b_.Literal(" "), b_.Literal("\t")}), 0, kMaxIndent)})}));
  b_.Define(character_, CharacterExpr(b_));
  b_.Define(string_, Quoted(b_.Repeat(Character(), 0)));
  const Expr whole = b_.Choice({b_.Literal("0"), b_.Sequence({b_.ByteRange('1', '9'), b_.Repeat(Digit(b_), 0, kMaxDigits - 1)})});
  b_.Define(integer_, b_.Sequence({b_.Optional(b_.Literal("-")), whole}));
  const Expr exponent = b_.Sequence({b_.Choice({b_.Literal("e"), b_.Literal("E")}), b_.Optional(b_.Choice({b_.Literal("+"), b_.Literal("-")})), b_.Repeat(Digit(b_), 1, 2)});
  b_.Define(number_, b_.Sequence({Integer(), b_.Optional(Fraction()), b_.Optional(exponent)}));
  b_.Define(array_, Enclosed("[", List(Value(), 0, -1), "]"));
  b_.Define(object_, Enclosed("{", List(Member(String(), Value()), 0, -1), "}"));
  b_.Define(value_, b_.Choice({Object(), Array(), String(), Number(), Boolean(), Null()}));
}

Expr JsonGrammar::Fraction() { return b_.Sequence({b_.Literal("."), b_.Repeat(Digit(b_), 1, kMaxDigits)}); }

Expr JsonGrammar::List(Expr item, int64_t min, int64_t max) {
  if (max == 0) return b_.Empty();
  const Expr rest = b_.Repeat(b_.Sequence({Comma(), item}), min > 0 ? min - 1 : 0, max < 0 ? GrammarBuilder::kUnbounded : max - 1);
  const Expr some = b_.Sequence({item, rest});
  return min > 0 ? some : b_.Optional(some);
}

base::Result<Grammar> JsonObjectGrammar() {
  GrammarBuilder builder;
  const GrammarBuilder::Rule whole = builder.AddRule();
  JsonGrammar json(builder);
  builder.Define(whole, json.Object());
  return builder.Build();
}

}  // namespace halfbyte::text
