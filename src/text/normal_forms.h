// Unicode normalization forms as the reference library computes them.
//
// Its normalization crate carries the tables of Unicode 9.0: code points assigned later have combining class 0, neither decompose nor
// compose, and end the composition of what stands before them. utf8proc gives the mappings, which never change for an assigned code
// point (Unicode's stability policy), and IsInUnicode9 says which code points have any.
#pragma once

#include <string>
#include <string_view>

namespace halfbyte::text {

enum class NormalForm { kNfc, kNfd, kNfkc, kNfkd };

// False where the text is in the form already (out is not touched), else true with the result in out. Linear in the text, also for long
// runs of combining marks. The text is valid UTF-8.
bool ToNormalForm(NormalForm form, std::string_view text, std::string& out);

}  // namespace halfbyte::text
