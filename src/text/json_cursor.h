// Walks through JSON text in place, for the two members of tokenizer.json that hold hundreds of thousands of strings.
//
// base::Json takes 0.18 s and 40 MB to make a tree of Qwen3's 11 MB, most of it strings that are copied into the vocabulary a moment
// later. The cursor hands out views into the text instead, in 0.03 s. Everything small is left to base::Json.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace halfbyte::text {

class JsonCursor {
 public:
  explicit JsonCursor(std::string_view text) : text_(text) {}

  // The next character that is no white space, '\0' at the end.
  char Peek();

  // Calls member(key) for every member; the callback reads the value. A key is valid until the next string is read.
  template <typename Member>
  base::Status Object(Member member) {
    HB_RETURN_IF_ERROR(Expect('{'));
    if (Peek() == '}') return Expect('}');
    for (std::string buffer;;) {
      HB_ASSIGN_OR_RETURN(std::string_view key, String(buffer));
      HB_RETURN_IF_ERROR(Expect(':'));
      HB_RETURN_IF_ERROR(member(key));
      if (Peek() != ',') return Expect('}');
      HB_RETURN_IF_ERROR(Expect(','));
    }
  }
  template <typename Element>
  base::Status Array(Element element) {
    HB_RETURN_IF_ERROR(Expect('['));
    if (Peek() == ']') return Expect(']');
    for (;;) {
      HB_RETURN_IF_ERROR(element());
      if (Peek() != ',') return Expect(']');
      HB_RETURN_IF_ERROR(Expect(','));
    }
  }

  // A string: a view into the text, or into the buffer where it has escapes.
  base::Result<std::string_view> String(std::string& buffer);
  base::Result<int64_t> Integer();  // digits with an optional minus; a fraction or exponent is an error
  // Steps over any value and gives its text. Only strings and brackets are checked; who uses the text parses it.
  base::Result<std::string_view> Skip();
  base::Status End();  // nothing but white space may follow

  // "byte 17: what"
  tl::unexpected<base::Error> Bad(std::string_view what) const;

 private:
  static constexpr int kMaxDepth = 256;
  base::Status Expect(char c);
  base::Result<std::string_view> Unescape(size_t begin, std::string& buffer);
  base::Result<char32_t> FourDigits();

  std::string_view text_;
  size_t at_ = 0;
};

}  // namespace halfbyte::text
