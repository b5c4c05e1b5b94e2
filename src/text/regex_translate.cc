#include "text/regex_translate.h"

#include <cctype>
#include <cstdio>

#include "text/code_set.h"

namespace halfbyte::text {
namespace {

using base::ErrorCode;
using base::Fail;
using base::Result;
using base::Status;

constexpr int kMaxDepth = 200;  // nested groups or classes; PCRE2's own limit is 250
constexpr std::string_view kMeta = "\\^$.[]|()?*+{}-#";

void AppendLiteral(std::string& out, char32_t code) {
  if (code < 0x80 && kMeta.find(static_cast<char>(code)) != kMeta.npos) out.push_back('\\');
  if (code == 0) out += "\\x{0}";
  else AppendUtf8(out, code);
}

void AppendSet(std::string& out, const CodeSet& set, bool negated) {
  std::span<const CodeRange> ranges = set.ranges();
  if (ranges.empty()) { out += negated ? "(?s:.)" : "(?!)"; return; }
  out += negated ? "[^" : "[";
  char range[40];
  for (const CodeRange& r : ranges) {
    std::snprintf(range, sizeof range, r.first == r.last ? "\\x{%X}" : "\\x{%X}-\\x{%X}", static_cast<unsigned>(r.first),
                  static_cast<unsigned>(r.last));
    out += range;
  }
  out += ']';
}

class Translator {
 public:
  explicit Translator(std::string_view pattern) : in_(pattern) {}

  Result<std::string> Run() {
    HB_RETURN_IF_ERROR(Alternatives(0));
    if (at_ < in_.size()) return Bad("an unmatched )");
    return std::move(out_);
  }

 private:
  // ---- reading ----
  bool More() const { return at_ < in_.size(); }
  char Peek(size_t ahead = 0) const { return at_ + ahead < in_.size() ? in_[at_ + ahead] : '\0'; }
  bool Take(std::string_view word) {
    if (!in_.substr(at_).starts_with(word)) return false;
    at_ += word.size();
    return true;
  }
  char32_t TakeCharacter() {
    Decoded d = DecodeValid(in_.data() + at_);
    at_ += d.size;
    return d.code;
  }
  tl::unexpected<base::Error> Bad(std::string_view what) const {
    return Fail(ErrorCode::kUnsupported, "the regular expression ", in_.substr(0, 200), " has ", what, " at byte ", at_,
                ", which is not supported");
  }

  // ---- structure ----
  Status Alternatives(int depth) {
    if (depth > kMaxDepth) return Bad("groups nested too deeply");
    while (More() && Peek() != ')') {
      if (Take("|")) { out_ += '|'; at_start_ = true; continue; }
      HB_RETURN_IF_ERROR(Item(depth));
      at_start_ = false;
    }
    return {};
  }

  Status Item(int depth) {
    switch (Peek()) {
      case '(': ++at_; return Group(depth);
      case '[': ++at_; return Brackets();
      case '\\': ++at_; return Escape();
      case '*': case '+': case '?': return Quantifier();
      case '{': return Interval();
      case '^': case '$': case '.': out_ += Peek(); ++at_; return {};
      default: AppendLiteral(out_, TakeCharacter()); return {};
    }
  }

  Status Group(int depth) {
    if (Take("?#")) {
      while (More() && Peek() != ')') at_ += Peek() == '\\' ? 2 : 1;
      return Take(")") ? Status{} : Bad("an open comment");
    }
    bool ignore_case = ignore_case_;
    if (Peek() == '*') return Bad("(*");
    if (!Take("?")) out_ += '(';
    else if (Take(":")) out_ += "(?:";
    else if (Take("=")) out_ += "(?=";
    else if (Take("!")) out_ += "(?!";
    else if (Take(">")) out_ += "(?>";
    else if (Take("<=")) out_ += "(?<=";
    else if (Take("<!")) out_ += "(?<!";
    else if (Peek() == '<') {
      size_t end = in_.find('>', at_);
      if (end == in_.npos) return Bad("an open group name");
      out_ += base::StrCat("(?", in_.substr(at_, end + 1 - at_));
      at_ = end + 1;
    } else {
      HB_RETURN_IF_ERROR(Options());
      if (Take(")")) { out_ += ')'; return {}; }  // (?i) holds until the surrounding group ends
      if (!Take(":")) return Bad("an unknown kind of group");
      out_ += ':';
    }
    at_start_ = true;
    HB_RETURN_IF_ERROR(Alternatives(depth + 1));
    ignore_case_ = ignore_case;
    if (!Take(")")) return Bad("an open group");
    out_ += ')';
    return {};
  }

  // "i", "-i", "m" (dot matches newline: PCRE2's s); appended without the closing ':' or ')'.
  Status Options() {
    bool at_start = at_start_;
    bool off = false;
    out_ += "(?";
    for (; Peek() != ':' && Peek() != ')'; ++at_) {
      if (Peek() == '-' && !off) { off = true; out_ += '-'; }
      else if (Peek() == 'i') { ignore_case_ = !off; out_ += 'i'; }
      else if (Peek() == 'm') out_ += 's';
      else return Bad("an option other than i and m");
    }
    // In the middle of a branch the engines disagree on whether the option reaches into the following branches.
    if (Peek() == ')' && !at_start) return Bad("an option in the middle of a branch");
    return {};
  }

  Status Quantifier() {
    if (at_start_) return Bad("a quantifier without anything to repeat");
    out_ += Peek();
    ++at_;
    if (Peek() == '?' || Peek() == '+') { out_ += Peek(); ++at_; }
    if (Peek() == '*' || Peek() == '+' || Peek() == '?') return Bad("a quantifier of a quantifier");
    return {};
  }

  // {n}, {n,}, {n,m} and {,m} repeat; any other brace is a brace.
  Status Interval() {
    size_t i = at_ + 1, comma = 0;
    std::string low, high;
    for (; i < in_.size() && (std::isdigit(static_cast<unsigned char>(in_[i])) || (in_[i] == ',' && !comma)); ++i) {
      if (in_[i] == ',') comma = i;
      else (comma ? high : low).push_back(in_[i]);
    }
    if (i == in_.size() || in_[i] != '}' || (low.empty() && high.empty())) { out_ += "\\{"; ++at_; return {}; }
    if (at_start_) return Bad("a quantifier without anything to repeat");
    out_ += base::StrCat("{", low.empty() ? "0" : low, comma ? "," : "", high, "}");
    at_ = i + 1;
    if (Peek() == '+' || (Peek() == '?' && !comma)) return Bad("a quantifier after {n}");
    if (Take("?")) out_ += '?';
    return {};
  }

  // ---- escapes ----
  Status Escape() {
    if (!More()) return Bad("a backslash at the end");
    if (std::string_view("dDsSwWhH").find(Peek()) != std::string_view::npos) {
      char letter = Peek();
      ++at_;
      bool upper = std::isupper(static_cast<unsigned char>(letter)) != 0;
      AppendSet(out_, ShorthandSet(static_cast<char>(std::tolower(letter)), /*in_brackets=*/false), upper);
      return {};
    }
    switch (Peek()) {
      case 'p': case 'P': {
        HB_ASSIGN_OR_RETURN(CodeSet set, Property());
        AppendSet(out_, set, false);
        return {};
      }
      case 'b': case 'B': WordBoundary(Peek() == 'B'); ++at_; return {};
      case 'A': case 'z': case 'Z': out_ += '\\'; out_ += Peek(); ++at_; return {};
      case 'R': ++at_; out_ += "(?>\\r\\n|[\\x{A}-\\x{D}\\x{85}\\x{2028}\\x{2029}])"; return {};
      case 'G': case 'K': case 'X': case 'y': case 'Y': case 'O': case 'N': case 'g': case 'k': case 'C': case 'M': case 'c':
        return Bad(base::StrCat("\\", Peek()));
      case '1': case '2': case '3': case '4': case '5': case '6': case '7': case '8': case '9':
        out_ += base::StrCat("\\g{", Peek(), "}");
        ++at_;
        return std::isdigit(static_cast<unsigned char>(Peek())) ? Status(Bad("a group number above 9")) : Status{};
      default: {
        HB_ASSIGN_OR_RETURN(char32_t code, EscapedCharacter());
        AppendLiteral(out_, code);
        return {};
      }
    }
  }

  void WordBoundary(bool negated) {
    CodeSet word = ShorthandSet('w', false);
    std::string set;
    AppendSet(set, word, false);
    out_ += negated ? base::StrCat("(?:(?<=", set, ")(?=", set, ")|(?<!", set, ")(?!", set, "))")
                    : base::StrCat("(?:(?<=", set, ")(?!", set, ")|(?<!", set, ")(?=", set, "))");
  }

  Result<CodeSet> Property() {  // at 'p' or 'P'
    bool negated = Peek() == 'P';
    ++at_;
    if (Peek() != '{') return Bad("\\p without braces");
    size_t end = in_.find('}', at_);
    if (end == in_.npos) return Bad("\\p without a closing brace");
    HB_ASSIGN_OR_RETURN(CodeSet set, NamedSet(in_.substr(at_ + 1, end - at_ - 1)));
    at_ = end + 1;
    return negated ? set.Complement() : set;
  }

  // One character after a backslash; the same inside and outside brackets.
  Result<char32_t> EscapedCharacter() {
    char32_t c = TakeCharacter();
    switch (c) {
      case 'n': return U'\n';
      case 't': return U'\t';
      case 'r': return U'\r';
      case 'f': return U'\f';
      case 'v': return U'\v';
      case 'a': return U'\a';
      case 'e': return U'\x1B';
      case 'x': return Peek() == '{' ? Braced() : Digits(16, 2, 1);
      case 'u': return Digits(16, 4, 4);
      case '0': --at_; return Digits(8, 3, 1);
      default: return c;
    }
  }
  Result<char32_t> Braced() {
    ++at_;
    HB_ASSIGN_OR_RETURN(char32_t code, Digits(16, 8, 1));
    if (!Take("}")) return Bad("\\x{ without a closing brace");
    return code;
  }
  Result<char32_t> Digits(int base, int most, int least) {
    char32_t value = 0;
    int n = 0;
    for (; n < most; ++n, ++at_) {
      char c = Peek();
      int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : 99;
      if (digit >= base) break;
      value = value * static_cast<char32_t>(base) + static_cast<char32_t>(digit);
    }
    if (n < least || value > 0x10FFFF || (value >= 0xD800 && value < 0xE000)) return Bad("a number that is no character");
    return value;
  }

  // ---- [...] ----
  Status Brackets() {
    bool negated = Take("^");
    HB_ASSIGN_OR_RETURN(CodeSet set, Class(0));
    AppendSet(out_, set, negated);
    return {};
  }

  // The members up to the closing bracket, which is taken; '[' and '^' have been taken by the caller.
  Result<CodeSet> Class(int depth) {
    if (depth > kMaxDepth) return Bad("classes nested too deeply");
    CodeSet all, part;
    bool intersected = false;
    for (bool first = true;; first = false) {
      if (!More()) return Bad("an open character class");
      if (Peek() == ']' && !first) { ++at_; break; }
      if (Take("&&")) {
        if (intersected) all.IntersectWith(part); else all = std::move(part);
        part = CodeSet();
        intersected = true;
        continue;
      }
      HB_RETURN_IF_ERROR(ClassMember(part, depth));
    }
    if (!intersected) return part;
    all.IntersectWith(part);
    return all;
  }

  Status ClassMember(CodeSet& set, int depth) {
    if (Peek() == '[' && Peek(1) == ':') {
      if (size_t end = in_.find(":]", at_ + 2); end != in_.npos) return PosixClass(set, end);
    }
    if (Take("[")) {
      bool negated = Take("^");
      if (negated && ignore_case_) return Bad("a negated class inside another under (?i)");
      HB_ASSIGN_OR_RETURN(CodeSet inner, Class(depth + 1));
      set.AddAll(negated ? inner.Complement() : inner);
      return {};
    }
    if (Peek() == '\\' && at_ + 1 < in_.size()) {
      char letter = Peek(1);
      if (letter == 'p' || letter == 'P') {
        ++at_;
        HB_ASSIGN_OR_RETURN(CodeSet named, Property());
        set.AddAll(named);
        return {};
      }
      if (std::string_view("dDsSwWhH").find(letter) != std::string_view::npos) {
        at_ += 2;
        CodeSet shorthand = ShorthandSet(static_cast<char>(std::tolower(letter)), /*in_brackets=*/true);
        set.AddAll(std::isupper(static_cast<unsigned char>(letter)) ? shorthand.Complement() : shorthand);
        return {};
      }
    }
    return ClassRange(set);
  }

  Status PosixClass(CodeSet& set, size_t end) {
    std::string_view name = in_.substr(at_ + 2, end - at_ - 2);
    bool negated = name.starts_with('^');
    if (negated) name.remove_prefix(1);
    HB_ASSIGN_OR_RETURN(CodeSet named, PosixSet(name));
    set.AddAll(negated ? named.Complement() : named);
    at_ = end + 2;
    return {};
  }

  Result<char32_t> ClassCharacter() {
    if (!Take("\\")) return TakeCharacter();
    if (!More()) return Bad("a backslash at the end");
    if (Peek() == 'b') { ++at_; return U'\b'; }
    if (std::string_view("cCMRX").find(Peek()) != std::string_view::npos) return Bad(base::StrCat("\\", Peek(), " in a class"));
    return EscapedCharacter();
  }
  Status ClassRange(CodeSet& set) {
    HB_ASSIGN_OR_RETURN(char32_t first, ClassCharacter());
    char32_t last = first;
    // "a-]" and "a-[" are a letter and a minus; "a-\d" too.
    bool to_shorthand = Peek(1) == '\\' && std::string_view("dDsSwWhHpP").find(Peek(2)) != std::string_view::npos;
    if (Peek() == '-' && at_ + 1 < in_.size() && Peek(1) != ']' && Peek(1) != '[' && !to_shorthand) {
      ++at_;
      HB_ASSIGN_OR_RETURN(last, ClassCharacter());
      if (last < first) return Bad("a range that runs backwards");
    }
    set.Add(first, last);
    return {};
  }

  std::string_view in_;
  size_t at_ = 0;
  std::string out_;
  bool at_start_ = true;      // nothing of this branch has been written
  bool ignore_case_ = false;
};

}  // namespace

Result<std::string> TranslateRegex(std::string_view pattern) {
  if (!IsValidUtf8(pattern)) return Fail(ErrorCode::kBadFile, "a regular expression is not UTF-8");
  return Translator(pattern).Run();
}

std::string EscapeRegex(std::string_view literal) {
  std::string out;
  for (const char* p = literal.data(); p < literal.data() + literal.size();) {
    Decoded d = DecodeValid(p);
    AppendLiteral(out, d.code);
    p += d.size;
  }
  return out;
}

}  // namespace halfbyte::text
