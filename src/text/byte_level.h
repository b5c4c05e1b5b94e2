// The alphabet of byte-level BPE: each of the 256 bytes is written as one printable character (GPT-2's bytes_to_unicode).
//
// Bytes that are printable in Latin-1 stand for themselves; the others take U+0100 and up in byte order: space is U+0120, newline U+010A.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace halfbyte::text {

char32_t ByteToChar(unsigned char byte);
int CharToByte(char32_t code);  // -1 where the character stands for no byte

std::string BytesToChars(std::string_view bytes);
// Appends the bytes of a token; a token with a character outside the alphabet (some added tokens) is its own UTF-8.
void AppendTokenBytes(std::string& out, std::string_view token);

}  // namespace halfbyte::text
