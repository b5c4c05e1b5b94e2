#include "text/jinja_string_split.h"

#include <algorithm>

#include "text/jinja_text.h"
#include "text/jinja_unicode.h"

namespace halfbyte::text::jinja {
namespace {

bool SpaceAt(std::string_view s, size_t at, size_t& n) { return IsSpace(DecodeAt(s, at, n)); }

std::vector<Value> SplitSpace(const Value& text, Int most) {
  std::string_view s = text.text();
  std::vector<Value> parts;
  for (;;) {
    s = Strip(s, nullptr, true, false);
    if (s.empty()) break;
    if (most >= 0 && static_cast<Int>(parts.size()) >= most) {
      parts.push_back(text.Part(s));  // with the white space at its end
      break;
    }
    size_t i = 0, n = 0;
    while (i < s.size() && !SpaceAt(s, i, n)) i += n;
    parts.push_back(text.Part(s.substr(0, i)));
    s.remove_prefix(i);
  }
  return parts;
}

std::vector<Value> SplitSpaceFromRight(const Value& text, Int most) {
  std::string_view s = text.text();
  std::vector<Value> parts;
  for (;;) {
    s = Strip(s, nullptr, false, true);
    if (s.empty()) break;
    if (most >= 0 && static_cast<Int>(parts.size()) >= most) {
      parts.push_back(text.Part(s));
      break;
    }
    size_t i = s.size(), n = 0;
    while (i > 0) {
      size_t previous = PreviousOffset(s, i);
      if (SpaceAt(s, previous, n)) break;
      i = previous;
    }
    parts.push_back(text.Part(s.substr(i)));
    s = s.substr(0, i);
  }
  std::reverse(parts.begin(), parts.end());
  return parts;
}

std::vector<Value> SplitOn(const Value& text, std::string_view separator, Int most, bool from_right) {
  std::string_view s = text.text();
  std::vector<Value> parts;
  while (most < 0 || static_cast<Int>(parts.size()) < most) {
    size_t at = from_right ? s.rfind(separator) : s.find(separator);
    if (at == s.npos) break;
    parts.push_back(text.Part(from_right ? s.substr(at + separator.size()) : s.substr(0, at)));
    s = from_right ? s.substr(0, at) : s.substr(at + separator.size());
  }
  parts.push_back(text.Part(s));
  if (from_right) std::reverse(parts.begin(), parts.end());
  return parts;
}

// How many bytes end a line at s[at]; 0 for none.
size_t LineEnd(std::string_view s, size_t at, size_t& n) {
  uint32_t code = DecodeAt(s, at, n);
  if (code == '\r') return at + 1 < s.size() && s[at + 1] == '\n' ? 2 : 1;
  bool ends = (code >= 10 && code <= 12) || (code >= 0x1C && code <= 0x1E) || code == 0x85 || code == 0x2028 || code == 0x2029;
  return ends ? n : 0;
}

}  // namespace

Value Split(Runtime& r, const Value& text, const Value& separator, Int most, bool from_right) {
  r.StepBytes(text.text().size());
  if (separator.is_missing() || separator.is_none()) {
    return r.List(from_right ? SplitSpaceFromRight(text, most) : SplitSpace(text, most));
  }
  if (!separator.is_string()) Fail("TypeError", "must be str or None, not ", TypeName(separator));
  if (separator.text().empty()) Fail("ValueError", "empty separator");
  return r.List(SplitOn(text, separator.text(), most, from_right));
}

std::vector<std::string_view> SplitLines(std::string_view text, bool keep_ends) {
  std::vector<std::string_view> lines;
  size_t start = 0, n = 0;
  for (size_t i = 0; i < text.size();) {
    size_t end = LineEnd(text, i, n);
    if (end == 0) { i += n; continue; }
    lines.push_back(text.substr(start, i - start + (keep_ends ? end : 0)));
    start = i += end;
  }
  if (start < text.size()) lines.push_back(text.substr(start));
  return lines;
}

std::string Replace(Runtime& r, std::string_view text, std::string_view from, std::string_view to, Int most) {
  r.StepBytes(text.size());
  if (most < 0) most = static_cast<Int>(text.size()) + 1;
  std::string out;
  size_t at = 0, n = 0;
  for (; most > 0; --most) {
    if (out.size() >= (1u << 16)) r.CheckGrowth(out);
    if (from.empty()) {
      out += to;
      if (at >= text.size()) return out;
      DecodeAt(text, at, n);
      out.append(text, at, n);
      at += n;
      continue;
    }
    size_t found = text.find(from, at);
    if (found == text.npos) break;
    out.append(text, at, found - at);
    out += to;
    at = found + from.size();
  }
  out.append(text, std::min(at, text.size()));
  return out;
}

}  // namespace halfbyte::text::jinja
