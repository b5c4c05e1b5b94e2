#include "text/jinja_percent_format.h"

#include <cmath>

#include "text/jinja_arguments.h"
#include "text/jinja_number_format.h"
#include "text/jinja_operations.h"
#include "text/jinja_text.h"
#include "text/jinja_unicode.h"

namespace halfbyte::text::jinja {
namespace {

using Kind = Value::Kind;

class Formatter {
 public:
  Formatter(Runtime& r, std::string_view format, const Value& values) : r_(r), format_(format), values_(values) {}

  std::string Run() {
    while (at_ < format_.size()) {
      size_t percent = format_.find('%', at_);
      if (percent == format_.npos) percent = format_.size();
      out_.append(format_, at_, percent - at_);
      at_ = percent + 1;
      if (percent < format_.size()) Conversion();
      r_.CheckGrowth(out_);
    }
    bool all_used = values_.is(Kind::kTuple) ? next_ >= values_.As<SequenceObject>().items.size() : used_ || TakesKeys();
    if (!all_used) Fail("TypeError", "not all arguments converted during string formatting");
    return std::move(out_);
  }

 private:
  // Whatever has items may be left over in Python, since "%(key)s" could have asked it for one.
  bool TakesKeys() const {
    return values_.is(Kind::kList) || values_.is(Kind::kDict) || values_.is(Kind::kRange) || values_.is_undefined();
  }

  char Peek() {
    if (at_ >= format_.size()) Fail("ValueError", "incomplete format");
    return format_[at_];
  }

  Value NextValue() {
    if (!keyed_.is_missing()) return std::move(keyed_);
    if (values_.is(Kind::kTuple)) {
      const auto& items = values_.As<SequenceObject>().items;
      if (next_ < items.size()) return items[next_++];
    } else if (!used_) {
      used_ = true;
      return values_;
    }
    Fail("TypeError", "not enough arguments for format string");
  }

  void Key() {
    int depth = 1;
    size_t start = ++at_;
    for (; depth > 0; ++at_) {
      char c = Peek();
      depth += c == '(' ? 1 : c == ')' ? -1 : 0;
    }
    if (!TakesKeys()) Fail("TypeError", "format requires a mapping");
    Value key = r_.String(std::string(format_.substr(start, at_ - 1 - start)));
    keyed_ = GetItem(r_, values_, key);
    if (keyed_.is_undefined()) Fail("KeyError", Repr(r_, key));
    used_ = true;
  }

  int64_t Number() {
    if (Peek() == '*') {
      ++at_;
      Value v = NextValue();
      if (!v.is_integral()) Fail("TypeError", "* wants int");
      return Clamp64(v.integer());
    }
    int64_t n = 0;
    while (Peek() >= '0' && Peek() <= '9') n = std::min<int64_t>(n * 10 + (format_[at_++] - '0'), INT32_MAX);
    return n;
  }

  void Conversion() {
    NumberFormat f;
    if (Peek() == '(') Key();
    bool left = false, zero = false;
    for (;; ++at_) {
      char c = Peek();
      if (c == '-') left = true;
      else if (c == '0') zero = true;
      else if (c == '#') f.alternate = true;
      else if (c == '+') f.sign = '+';
      else if (c == ' ') { if (f.sign != '+') f.sign = ' '; }
      else break;
    }
    f.width = Number();
    if (f.width < 0) { left = true; f.width = -f.width; }
    if (Peek() == '.') {
      ++at_;
      f.precision = std::max<int64_t>(Number(), 0);
    }
    while (Peek() == 'h' || Peek() == 'l' || Peek() == 'L') ++at_;
    char type = format_[at_++];
    if (type == '%') { out_ += '%'; return; }
    f.align = left ? '<' : '>';
    if (zero && !left) { f.align = '='; f.fill = "0"; }
    Append(type, NextValue(), f);
  }

  void Append(char type, const Value& v, NumberFormat& f) {
    switch (type) {
      case 's': case 'r': case 'a': AppendText(type, v, f); return;
      case 'c': AppendCharacter(v, f); return;
      case 'd': case 'i': case 'u': case 'x': case 'X': case 'o': AppendInteger(type, v, f); return;
      case 'e': case 'E': case 'f': case 'F': case 'g': case 'G':
        FailIfUndefined(v);
        if (!v.is_number()) Fail("TypeError", "must be real number, not ", TypeName(v));
        f.type = type;
        out_ += FormatFloat(r_, v.AsDouble(), f);
        return;
      default: Fail("ValueError", "unsupported format character '", type, "'");
    }
  }

  void AppendText(char type, const Value& v, NumberFormat& f) {
    std::string text;
    if (type == 's') AppendStr(r_, text, v);
    else AppendRepr(r_, text, v);
    std::string_view part = text;
    if (f.precision >= 0) part = part.substr(0, ByteOffset(part, static_cast<size_t>(f.precision)));
    f.fill = " ";
    if (f.align == '=') f.align = '>';
    out_ += PadText(r_, part, f, '>');
  }

  void AppendCharacter(const Value& v, NumberFormat& f) {
    f.fill = " ";
    if (f.align == '=') f.align = '>';
    if (v.is_string() && CountCodePoints(v.text()) == 1) { out_ += PadText(r_, v.text(), f, '>'); return; }
    if (!v.is_integral()) Fail("TypeError", "%c requires int or char");
    f.type = 'c';
    out_ += FormatInt(r_, v.integer(), f);
  }

  void AppendInteger(char type, const Value& v, NumberFormat& f) {
    FailIfUndefined(v);
    bool decimal = type == 'd' || type == 'i' || type == 'u';
    if (!v.is_integral() && !(decimal && v.is(Kind::kFloat))) {
      Fail("TypeError", "%", type, " format: a", decimal ? " real number" : "n integer", " is required, not ", TypeName(v));
    }
    if (v.is(Kind::kFloat) && !(std::fabs(v.real()) < 1e38)) Fail("OverflowError", "cannot convert this float to an integer");
    f.type = decimal ? 'd' : type;
    out_ += FormatInt(r_, v.is_integral() ? v.integer() : static_cast<Int>(v.real()), f);
  }

  Runtime& r_;
  std::string_view format_;
  const Value& values_;
  std::string out_;
  size_t at_ = 0, next_ = 0;
  bool used_ = false;
  Value keyed_;
};

}  // namespace

Value PercentFormat(Runtime& r, const Value& format, const Value& values) {
  return r.String(Formatter(r, format.text(), values).Run()).WithMarkup(format.is_markup());
}

}  // namespace halfbyte::text::jinja
