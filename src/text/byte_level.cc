#include "text/byte_level.h"

#include <array>

#include "text/unicode.h"

namespace halfbyte::text {
namespace {

constexpr bool StandsForItself(int byte) { return (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174; }

struct Alphabet {
  std::array<char32_t, 256> chars{};
  std::array<int16_t, 324> bytes{};  // by character; the last one is U+0143
  constexpr Alphabet() {
    bytes.fill(-1);
    char32_t next = 256;
    for (int b = 0; b < 256; ++b) {
      chars[static_cast<size_t>(b)] = StandsForItself(b) ? static_cast<char32_t>(b) : next++;
      bytes[chars[static_cast<size_t>(b)]] = static_cast<int16_t>(b);
    }
  }
};
constexpr Alphabet kAlphabet;
static_assert(kAlphabet.chars[' '] == 0x120 && kAlphabet.chars['\n'] == 0x10A && kAlphabet.bytes[0x143] == 0xAD);

}  // namespace

char32_t ByteToChar(unsigned char byte) { return kAlphabet.chars[byte]; }
int CharToByte(char32_t code) { return code < kAlphabet.bytes.size() ? kAlphabet.bytes[code] : -1; }

std::string BytesToChars(std::string_view bytes) {
  std::string out;
  out.reserve(bytes.size() * 2);
  for (char c : bytes) AppendUtf8(out, ByteToChar(static_cast<unsigned char>(c)));
  return out;
}

void AppendTokenBytes(std::string& out, std::string_view token) {
  size_t before = out.size();
  for (const char *p = token.data(), *end = p + token.size(); p < end;) {
    Decoded d = DecodeValid(p);
    int byte = CharToByte(d.code);
    if (byte < 0) {
      out.resize(before);
      out += token;
      return;
    }
    out.push_back(static_cast<char>(byte));
    p += d.size;
  }
}

}  // namespace halfbyte::text
