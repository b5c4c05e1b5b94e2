#include "text/code_set.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <iterator>

namespace halfbyte::text {
namespace {

constexpr char32_t kLast = 0x10FFFF;

constexpr std::string_view kCategoryNames[kCategories] = {
    "lu", "ll", "lt", "lm", "lo", "mn", "mc", "me", "nd", "nl", "no", "pc", "pd", "ps", "pe", "pi", "pf", "po", "sm", "sc", "sk", "so",
    "zs", "zl", "zp", "cc", "cf", "cs", "co", "cn"};

struct LongName { std::string_view name, category; };
constexpr LongName kLongNames[] = {
    {"letter", "l"}, {"mark", "m"}, {"combiningmark", "m"}, {"number", "n"}, {"punctuation", "p"}, {"symbol", "s"}, {"separator", "z"},
    {"other", "c"}, {"uppercaseletter", "lu"}, {"lowercaseletter", "ll"}, {"titlecaseletter", "lt"}, {"modifierletter", "lm"},
    {"otherletter", "lo"}, {"nonspacingmark", "mn"}, {"spacingmark", "mc"}, {"enclosingmark", "me"}, {"decimalnumber", "nd"},
    {"letternumber", "nl"}, {"othernumber", "no"}, {"connectorpunctuation", "pc"}, {"dashpunctuation", "pd"}, {"openpunctuation", "ps"},
    {"closepunctuation", "pe"}, {"initialpunctuation", "pi"}, {"finalpunctuation", "pf"}, {"otherpunctuation", "po"},
    {"mathsymbol", "sm"}, {"currencysymbol", "sc"}, {"modifiersymbol", "sk"}, {"othersymbol", "so"}, {"spaceseparator", "zs"},
    {"lineseparator", "zl"}, {"paragraphseparator", "zp"}, {"control", "cc"}, {"format", "cf"}, {"surrogate", "cs"},
    {"privateuse", "co"}, {"unassigned", "cn"}};

// The code points whose category's name starts with the prefix ("l" is every letter).
CodeSet CategorySet(std::string_view prefix) {
  CodeSet set;
  std::span<const uint32_t> runs = CategoryRuns();
  for (size_t i = 0; i < runs.size(); ++i) {
    char32_t last = i + 1 < runs.size() ? (runs[i + 1] >> 8) - 1 : kLast;
    std::string_view name = kCategoryNames[runs[i] & 0xFF];
    if (name.starts_with(prefix) && name != "cs") set.Add(runs[i] >> 8, last);  // no text holds a surrogate
  }
  return set;
}

CodeSet UnionOf(std::initializer_list<std::string_view> categories) {
  CodeSet set;
  for (std::string_view c : categories) set.AddAll(CategorySet(c));
  return set;
}

CodeSet AlphabeticSet() {
  CodeSet set = UnionOf({"l", "nl"});
  set.AddAll(OtherAlphabetic());
  return set;
}
CodeSet UppercaseSet() { CodeSet set = CategorySet("lu"); set.AddAll(OtherUppercase()); return set; }
CodeSet LowercaseSet() { CodeSet set = CategorySet("ll"); set.AddAll(OtherLowercase()); return set; }

std::string Folded(std::string_view name) {
  std::string out;
  for (char c : name)
    if (c != ' ' && c != '_' && c != '-') out.push_back(static_cast<char>(std::tolower(static_cast<unsigned char>(c))));
  return out;
}

}  // namespace

void CodeSet::Add(char32_t first, char32_t last) {
  if (!ranges_.empty() && ranges_.back().last + 1 >= first) sorted_ = false;
  ranges_.push_back({first, last});
}

std::span<const CodeRange> CodeSet::ranges() const {
  if (!sorted_) {
    std::sort(ranges_.begin(), ranges_.end(), [](const CodeRange& a, const CodeRange& b) { return a.first < b.first; });
    size_t kept = 0;
    for (size_t i = 1; i < ranges_.size(); ++i) {
      if (ranges_[i].first <= ranges_[kept].last + 1) ranges_[kept].last = std::max(ranges_[kept].last, ranges_[i].last);
      else ranges_[++kept] = ranges_[i];
    }
    ranges_.resize(kept + 1);
    sorted_ = true;
  }
  return ranges_;
}

bool CodeSet::Contains(char32_t code) const {
  std::span<const CodeRange> all = ranges();
  auto after = std::upper_bound(all.begin(), all.end(), code, [](char32_t c, const CodeRange& r) { return c < r.first; });
  return after != all.begin() && code <= std::prev(after)->last;
}

void CodeSet::IntersectWith(const CodeSet& other) {
  CodeSet both;
  std::span<const CodeRange> a = ranges(), b = other.ranges();
  for (size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    char32_t first = std::max(a[i].first, b[j].first), last = std::min(a[i].last, b[j].last);
    if (first <= last) both.Add(first, last);
    if (a[i].last < b[j].last) ++i; else ++j;
  }
  *this = std::move(both);
}

CodeSet CodeSet::Complement() const {
  CodeSet out;
  char32_t next = 0;
  auto add = [&out](char32_t first, char32_t last) {
    if (first <= last && first < 0xD800) out.Add(first, std::min<char32_t>(last, 0xD7FF));
    if (last > 0xDFFF && first <= last) out.Add(std::max<char32_t>(first, 0xE000), last);
  };
  for (const CodeRange& r : ranges()) {
    if (r.first > next) add(next, r.first - 1);
    next = r.last + 1;
  }
  if (next <= kLast) add(next, kLast);
  return out;
}

base::Result<CodeSet> NamedSet(std::string_view written) {
  std::string folded = Folded(written);
  std::string_view name = folded;
  bool negated = name.starts_with('^');
  if (negated) name.remove_prefix(1);
  for (const LongName& l : kLongNames) if (l.name == name) name = l.category;

  CodeSet set;
  bool is_category = std::any_of(std::begin(kCategoryNames), std::end(kCategoryNames),
                                 [&](std::string_view c) { return c == name || (name.size() == 1 && c.starts_with(name)); });
  if (is_category) set = CategorySet(name);
  else if (name == "lc" || name == "casedletter") set = UnionOf({"lu", "ll", "lt"});
  else if (name == "any") set.Add(0, kLast);
  else if (name == "ascii") set.Add(0, 0x7F);
  else if (name == "alphabetic") set = AlphabeticSet();
  else if (name == "uppercase") set = UppercaseSet();
  else if (name == "lowercase") set = LowercaseSet();
  else if (name == "whitespace") set = ShorthandSet('s', true);
  else if (name == "punct") set = CategorySet("p");  // [[:punct:]] holds the symbols as well
  else if (name == "word") set = ShorthandSet('w', false);
  else if (auto script = ScriptRanges(name); !script.empty()) set = CodeSet(script);
  else if (auto posix = PosixSet(name)) set = std::move(*posix);
  else return base::Fail(base::ErrorCode::kUnsupported, "the character property \\p{", written, "} is not known");
  return negated ? set.Complement() : set;
}

CodeSet ShorthandSet(char letter, bool in_brackets) {
  CodeSet set;
  switch (letter) {
    case 'd': return CategorySet("nd");
    case 'h': set.Add('0', '9'); set.Add('A', 'F'); set.Add('a', 'f'); return set;
    case 's': set = CategorySet("z"); set.Add(9, 13); set.Add(0x85, 0x85); return set;
    default:
      set = AlphabeticSet();
      set.AddAll(UnionOf({"m", "nd", "pc"}));
      // The regex engine of the reference takes \w below U+0100 from a Latin-1 table where superscripts and fractions are word letters.
      if (!in_brackets) for (char32_t c : {0xB2, 0xB3, 0xB9, 0xBC, 0xBD, 0xBE}) set.Add(c, c);
      return set;
  }
}

base::Result<CodeSet> PosixSet(std::string_view name) {
  CodeSet set;
  if (name == "alpha") return AlphabeticSet();
  if (name == "digit") return CategorySet("nd");
  if (name == "alnum") { set = AlphabeticSet(); set.AddAll(CategorySet("nd")); return set; }
  if (name == "upper") return UppercaseSet();
  if (name == "lower") return LowercaseSet();
  if (name == "space") return ShorthandSet('s', true);
  if (name == "punct") return UnionOf({"p", "s"});
  if (name == "xdigit") return ShorthandSet('h', true);
  if (name == "word") return ShorthandSet('w', true);
  if (name == "cntrl") return CategorySet("cc");
  if (name == "blank") { set = CategorySet("zs"); set.Add('\t', '\t'); return set; }
  return base::Fail(base::ErrorCode::kUnsupported, "the character class [:", name, ":] is not known");
}

}  // namespace halfbyte::text
