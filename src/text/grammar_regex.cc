#include "text/grammar_regex.h"

#include <map>
#include <optional>

namespace halfbyte::text {
namespace {

using Expr = GrammarBuilder::Expr;

constexpr int kMaxNesting = 100;         // groups in groups
constexpr int64_t kMaxRepeat = 100'000;  // {m,n}; the network's size is limited as well

const CodePoints& Digits() { static const CodePoints s({{'0', '9'}}); return s; }
const CodePoints& WordCharacters() { static const CodePoints s({{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}}); return s; }
const CodePoints& Spaces() { static const CodePoints s({{'\t', '\r'}, {' ', ' '}}); return s; }
const CodePoints& NoLineEnd() { static const CodePoints s = CodePoints({{'\n', '\n'}, {'\r', '\r'}, {0x2028, 0x2029}}).Complement(); return s; }

class Parser {
 public:
  Parser(GrammarBuilder& b, std::string_view pattern, const std::function<Expr(GrammarBuilder&, const CodePoints&)>& encode) : b_(b), p_(pattern), encode_(encode) {}

  base::Result<Expr> Whole(RegexMatch match) {
    std::vector<Expr> alternatives;
    do {
      const bool from_start = Take('^');
      HB_ASSIGN_OR_RETURN(const Expr body, Sequence(0));
      const bool to_end = Take('$');
      if (!AtEnd() && p_[at_] != '|') return Refuse(p_[at_] == ')' ? "an unmatched )" : "something after $");
      std::vector<Expr> parts;
      if (match == RegexMatch::kSearch && !from_start) parts.push_back(Anything());
      parts.push_back(body);
      if (match == RegexMatch::kSearch && !to_end) parts.push_back(Anything());
      alternatives.push_back(b_.Sequence(std::move(parts)));
    } while (Take('|'));
    return b_.Choice(std::move(alternatives));
  }

 private:
  bool AtEnd() const { return at_ >= p_.size(); }
  bool Take(char c) {
    if (AtEnd() || p_[at_] != c) return false;
    ++at_;
    return true;
  }
  tl::unexpected<base::Error> Refuse(std::string_view what) const {
    return base::Fail(base::ErrorCode::kInvalidArgument, "regular expression \"", p_, "\": ", what, " at byte ", at_);
  }
  Expr Anything() { return b_.Repeat(encode_(b_, CodePoints::All()), 0); }

  Expr Set(const CodePoints& set) { return encode_(b_, set); }

  base::Result<Expr> Alternatives(int depth) {
    std::vector<Expr> alternatives;
    do {
      HB_ASSIGN_OR_RETURN(const Expr e, Sequence(depth));
      alternatives.push_back(e);
    } while (Take('|'));
    return b_.Choice(std::move(alternatives));
  }

  base::Result<Expr> Sequence(int depth) {
    std::vector<Expr> parts;
    while (!AtEnd() && p_[at_] != '|' && p_[at_] != ')') {
      if (p_[at_] == '$' && depth == 0) break;
      HB_ASSIGN_OR_RETURN(const Expr atom, Atom(depth));
      HB_ASSIGN_OR_RETURN(const Expr repeated, Quantified(atom));
      parts.push_back(repeated);
    }
    return b_.Sequence(std::move(parts));
  }

  base::Result<Expr> Quantified(Expr atom) {
    if (AtEnd()) return atom;
    int64_t min = 0, max = GrammarBuilder::kUnbounded;
    if (Take('*')) {
    } else if (Take('+')) {
      min = 1;
    } else if (Take('?')) {
      max = 1;
    } else if (p_[at_] == '{') {
      ++at_;
      const std::optional<int64_t> low = Number();
      if (!low) return Refuse("a { that begins no {m,n}; write \\{ for the character");
      min = max = *low;
      if (Take(',')) max = Number().value_or(GrammarBuilder::kUnbounded);
      if (!Take('}')) return Refuse("a { that begins no {m,n}; write \\{ for the character");
      if (min > kMaxRepeat || max > kMaxRepeat) return Refuse(base::StrCat("a repetition of more than ", kMaxRepeat));
      if (max != GrammarBuilder::kUnbounded && max < min) return Refuse("a repetition whose end is below its beginning");
    } else {
      return atom;
    }
    Take('?');  // lazy: the same language
    if (!AtEnd() && (p_[at_] == '*' || p_[at_] == '+' || p_[at_] == '?' || p_[at_] == '{')) return Refuse("a repetition of a repetition");
    return b_.Repeat(atom, min, max);
  }

  std::optional<int64_t> Number() {
    std::optional<int64_t> n;
    for (; !AtEnd() && p_[at_] >= '0' && p_[at_] <= '9'; ++at_) n = std::min<int64_t>(n.value_or(0) * 10 + (p_[at_] - '0'), kMaxRepeat + 1);
    return n;
  }

  base::Result<Expr> Atom(int depth) {
    const char c = p_[at_];
    switch (c) {
      case '(': return Group(depth);
      case '[': return Class();
      case '.': ++at_; return Set(NoLineEnd());
      case '^': case '$': return Refuse(base::StrCat(c, " that is not at the end of the whole"));
      case '*': case '+': case '?': case '{': return Refuse("a repetition of nothing");
      case '\\': {
        HB_ASSIGN_OR_RETURN(const CodePoints set, Escape(false));
        return Set(set);
      }
      default: {
        HB_ASSIGN_OR_RETURN(const uint32_t code, CodePoint());
        return Set(CodePoints({{code, code}}));
      }
    }
  }

  base::Result<Expr> Group(int depth) {
    if (depth >= kMaxNesting) return Refuse(base::StrCat("groups nested deeper than ", kMaxNesting));
    ++at_;
    if (Take('?')) {
      if (Take('<') || (Take('P') && Take('<'))) {
        if (!AtEnd() && (p_[at_] == '=' || p_[at_] == '!')) return Refuse("look-behind");
        while (!AtEnd() && p_[at_] != '>') ++at_;
        if (!Take('>')) return Refuse("a group's name without its end");
      } else if (!Take(':')) {
        return Refuse("look-ahead or a flag");
      }
    }
    HB_ASSIGN_OR_RETURN(const Expr e, Alternatives(depth + 1));
    if (!Take(')')) return Refuse("a group without its )");
    return e;
  }

  base::Result<Expr> Class() {
    ++at_;
    const bool negated = Take('^');
    CodePoints set;
    while (AtEnd() || p_[at_] != ']') {
      if (AtEnd()) return Refuse("a class without its ]");
      HB_ASSIGN_OR_RETURN(const CodePoints low, ClassItem());
      const bool single = low.ranges().size() == 1 && low.ranges()[0].low == low.ranges()[0].high;
      if (single && at_ + 1 < p_.size() && p_[at_] == '-' && p_[at_ + 1] != ']') {
        ++at_;
        HB_ASSIGN_OR_RETURN(const CodePoints high, ClassItem());
        if (high.ranges().size() != 1 || high.ranges()[0].low != high.ranges()[0].high || high.ranges()[0].low < low.ranges()[0].low) return Refuse("a range out of order");
        set.Add(CodePoints({{low.ranges()[0].low, high.ranges()[0].low}}));
      } else {
        set.Add(low);
      }
    }
    ++at_;
    if (negated) set = set.Complement();
    if (set.empty()) return Refuse("a class of no character");
    return Set(set);
  }

  base::Result<CodePoints> ClassItem() {
    if (p_[at_] == '\\') return Escape(true);
    HB_ASSIGN_OR_RETURN(const uint32_t c, CodePoint());
    return CodePoints({{c, c}});
  }

  base::Result<CodePoints> Escape(bool in_class) {
    ++at_;
    if (AtEnd()) return Refuse("a \\ at the end");
    const char c = p_[at_];
    static const std::map<char, uint32_t> controls = {{'n', '\n'}, {'t', '\t'}, {'r', '\r'}, {'f', '\f'}, {'v', '\v'}, {'0', 0}};
    ++at_;
    switch (c) {
      case 'd': return Digits();
      case 'D': return Digits().Complement();
      case 'w': return WordCharacters();
      case 'W': return WordCharacters().Complement();
      case 's': return Spaces();
      case 'S': return Spaces().Complement();
      case 'x': return HexEscape(2);
      case 'u': return HexEscape(4);
      default: break;
    }
    if (in_class && c == 'b') return CodePoints({{8, 8}});
    if (const auto it = controls.find(c); it != controls.end()) return CodePoints({{it->second, it->second}});
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9')) return Refuse(base::StrCat("\\", c, ", which is not supported,"));
    --at_;
    HB_ASSIGN_OR_RETURN(const uint32_t code, CodePoint());
    return CodePoints({{code, code}});
  }

  base::Result<CodePoints> HexEscape(int digits) {
    const bool braces = digits == 4 && Take('{');
    uint32_t value = 0;
    int n = 0;
    for (; !AtEnd() && n < (braces ? 6 : digits); ++n, ++at_) {
      const char c = p_[at_];
      const int d = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
      if (d < 0) break;
      value = value * 16 + static_cast<uint32_t>(d);
    }
    if ((braces && (n == 0 || !Take('}'))) || (!braces && n != digits)) return Refuse("an escape without its hexadecimal digits");
    const CodePoints set({{value, value}});
    if (set.empty()) return Refuse("a surrogate or a number beyond Unicode");
    return set;
  }

  // The next character of the pattern, which must be UTF-8.
  base::Result<uint32_t> CodePoint() {
    const auto byte = [&](size_t i) { return i < p_.size() ? static_cast<uint8_t>(p_[i]) : 0u; };
    const uint32_t b = byte(at_);
    const int n = b < 0x80 ? 1 : b >= 0xC2 && b < 0xE0 ? 2 : b >= 0xE0 && b < 0xF0 ? 3 : b >= 0xF0 && b < 0xF5 ? 4 : 0;
    if (n == 0) return Refuse("bytes that are not UTF-8");
    uint32_t c = n == 1 ? b : b & (0x7Fu >> n);
    for (int i = 1; i < n; ++i) {
      if ((byte(at_ + static_cast<size_t>(i)) & 0xC0) != 0x80) return Refuse("bytes that are not UTF-8");
      c = c << 6 | (byte(at_ + static_cast<size_t>(i)) & 63);
    }
    if (CodePoints({{c, c}}).empty()) return Refuse("bytes that are not UTF-8");
    at_ += static_cast<size_t>(n);
    return c;
  }

  GrammarBuilder& b_;
  std::string_view p_;
  const std::function<Expr(GrammarBuilder&, const CodePoints&)>& encode_;
  size_t at_ = 0;
};

}  // namespace

base::Result<Expr> RegexExpr(GrammarBuilder& builder, std::string_view pattern, RegexMatch match,
                             const std::function<Expr(GrammarBuilder&, const CodePoints&)>& encode) {
  return Parser(builder, pattern, encode).Whole(match);
}

base::Result<Grammar> RegexGrammar(std::string_view pattern) {
  GrammarBuilder builder;
  const GrammarBuilder::Rule whole = builder.AddRule();
  HB_ASSIGN_OR_RETURN(const Expr e, RegexExpr(builder, pattern, RegexMatch::kWhole, Utf8Expr));
  builder.Define(whole, e);
  return builder.Build();
}

}  // namespace halfbyte::text
