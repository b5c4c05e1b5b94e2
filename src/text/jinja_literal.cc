#include "text/jinja_literal.h"

#include <charconv>
#include <cmath>
#include <limits>

#include "text/jinja_error.h"
#include "text/jinja_unicode.h"

namespace halfbyte::text::jinja {
namespace {

constexpr Int kMaxInt = static_cast<Int>((static_cast<unsigned __int128>(1) << 127) - 1);

bool IsNumeral(char c) { return c >= '0' && c <= '9'; }

int DigitOf(char c) {
  if (IsNumeral(c)) return c - '0';
  char lower = static_cast<char>(c | 32);
  return lower >= 'a' && lower <= 'z' ? lower - 'a' + 10 : 99;
}

// Digits of a base with single underscores between them; how many bytes from `at` on.
size_t Digits(std::string_view s, size_t at, int base) {
  size_t i = at;
  while (i < s.size()) {
    if (DigitOf(s[i]) < base) ++i;
    else if (s[i] == '_' && i > at && i + 1 < s.size() && DigitOf(s[i + 1]) < base) i += 2;
    else break;
  }
  return i - at;
}

std::string WithoutUnderscores(std::string_view s) {
  std::string out;
  for (char c : s) {
    if (c != '_') out += c;
  }
  return out;
}

int BaseOfPrefix(std::string_view s) {
  if (s.size() < 2 || s[0] != '0') return 0;
  switch (s[1] | 32) {
    case 'x': return 16;
    case 'o': return 8;
    case 'b': return 2;
    default: return 0;
  }
}

// Reads the digits of a whole text; false on overflow or anything else.
bool Accumulate(std::string_view digits, int base, Int& out) {
  out = 0;
  if (digits.empty()) return false;
  for (char c : digits) {
    int d = DigitOf(c);
    if (d >= base || out > (kMaxInt - d) / base) return false;
    out = out * base + d;
  }
  return true;
}

uint32_t HexEscape(std::string_view s, size_t at, size_t digits, int line) {
  uint32_t code = 0;
  for (size_t i = at; i < at + digits; ++i) {
    if (i >= s.size() || DigitOf(s[i]) >= 16) FailSyntax(line, "truncated \\", s[at - 1], " escape in a string");
    code = code * 16 + static_cast<uint32_t>(DigitOf(s[i]));
  }
  if (code > 0x10FFFF || (code >= 0xD800 && code <= 0xDFFF)) FailSyntax(line, "illegal Unicode character in a string");
  return code;
}

}  // namespace

size_t FloatLength(std::string_view s, bool after_dot) {
  if (after_dot) return 0;
  size_t whole = Digits(s, 0, 10);
  if (whole == 0) return 0;
  size_t size = whole;
  if (size + 1 < s.size() && s[size] == '.') {
    if (size_t fraction = Digits(s, size + 1, 10); fraction > 0) size += 1 + fraction;
  }
  size_t exponent = size;
  if (exponent < s.size() && (s[exponent] | 32) == 'e') {
    ++exponent;
    if (exponent < s.size() && (s[exponent] == '+' || s[exponent] == '-')) ++exponent;
    if (size_t digits = Digits(s, exponent, 10); digits > 0) return exponent + digits;
  }
  return size > whole ? size : 0;
}

size_t IntegerLength(std::string_view s) {
  if (s.empty() || !IsNumeral(s[0])) return 0;
  if (int base = BaseOfPrefix(s); base != 0) {
    size_t at = s.size() > 2 && s[2] == '_' ? 3 : 2;
    if (size_t digits = Digits(s, at, base); digits > 0) return at + digits;
    return 1;
  }
  if (s[0] != '0') return Digits(s, 0, 10);
  size_t size = 1;
  while (size < s.size() && (s[size] == '0' || (s[size] == '_' && size + 1 < s.size() && s[size + 1] == '0'))) ++size;
  return size;
}

double ParseFloatLiteral(std::string_view s) {
  double d = 0;
  ParseFloat(s, d);
  return d;
}

Int ParseIntegerLiteral(std::string_view s, int line) {
  Int i = 0;
  if (!ParseInt(s, 0, i)) FailSyntax(line, "the integer ", s, " has more than 128 bits");
  return i;
}

std::string UnescapeLiteral(std::string_view s, int line) {
  std::string out;
  out.reserve(s.size());
  for (size_t i = 0; i < s.size(); ++i) {
    if (s[i] != '\\' || i + 1 >= s.size()) { out += s[i]; continue; }
    char c = s[++i];
    switch (c) {
      case '\n': break;  // a line that goes on
      case '\\': case '\'': case '"': out += c; break;
      case 'a': out += '\a'; break;
      case 'b': out += '\b'; break;
      case 'f': out += '\f'; break;
      case 'n': out += '\n'; break;
      case 'r': out += '\r'; break;
      case 't': out += '\t'; break;
      case 'v': out += '\v'; break;
      case 'x': AppendUtf8(out, HexEscape(s, i + 1, 2, line)); i += 2; break;
      case 'u': AppendUtf8(out, HexEscape(s, i + 1, 4, line)); i += 4; break;
      case 'U': AppendUtf8(out, HexEscape(s, i + 1, 8, line)); i += 8; break;
      case 'N': FailSyntax(line, "\\N{...} escapes are not supported");
      case '0': case '1': case '2': case '3': case '4': case '5': case '6': case '7': {
        uint32_t code = 0;
        size_t end = std::min(i + 3, s.size());
        for (; i < end && s[i] >= '0' && s[i] <= '7'; ++i) code = code * 8 + static_cast<uint32_t>(s[i] - '0');
        --i;
        AppendUtf8(out, code);
        break;
      }
      default: out += '\\'; out += c;
    }
  }
  return out;
}

bool ParseInt(std::string_view text, int base, Int& out) {
  std::string_view s = Strip(text, nullptr, true, true);
  bool negative = s.starts_with('-');
  if (negative || s.starts_with('+')) s.remove_prefix(1);
  int prefix = BaseOfPrefix(s);
  bool prefixed = prefix != 0 && (base == 0 || base == prefix);
  if (prefixed) {
    s.remove_prefix(2);
    if (s.starts_with('_')) s.remove_prefix(1);
    base = prefix;
  }
  // With base 0 a decimal must not begin with a zero, unless it is nothing but zeros.
  if (base == 0) {
    if (s.size() > 1 && s[0] == '0' && s.find_first_not_of("0_") != s.npos) return false;
    base = 10;
  }
  if (s.empty() || Digits(s, 0, base) != s.size() || !Accumulate(WithoutUnderscores(s), base, out)) return false;
  if (negative) out = -out;
  return true;
}

bool ParseFloat(std::string_view text, double& out) {
  std::string_view s = Strip(text, nullptr, true, true);
  for (size_t i = 0; i < s.size(); ++i) {  // an underscore stands between digits only
    if (s[i] == '_' && (i == 0 || i + 1 == s.size() || !IsNumeral(s[i - 1]) || !IsNumeral(s[i + 1]))) return false;
  }
  std::string plain = WithoutUnderscores(s);
  std::string_view rest = plain;
  bool negative = rest.starts_with('-');
  if (negative || rest.starts_with('+')) rest.remove_prefix(1);
  if (rest.empty() || rest[0] == '-' || rest[0] == '+') return false;
  // from_chars also reads "nan(...)", which Python does not.
  if (rest.find('(') != rest.npos) return false;
  auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), out);
  if (end != rest.data() + rest.size() || error == std::errc::invalid_argument) return false;
  if (error == std::errc::result_out_of_range) {
    // Too small is 0, too large is infinite; the sign of the exponent tells which (digits before the point cannot: 1e-400).
    size_t e = rest.find_first_of("eE");
    bool small = e != rest.npos ? rest[e + 1] == '-' : rest[0] == '0' || rest[0] == '.';
    out = small ? 0.0 : std::numeric_limits<double>::infinity();
  }
  if (negative) out = -out;
  return true;
}

}  // namespace halfbyte::text::jinja
