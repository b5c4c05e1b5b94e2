// Made by tools/jinja/make_unicode_tables.py (Unicode 14.0.0); not edited by hand.
#include "text/jinja_unicode_tables.h"

namespace halfbyte::text::jinja {

// Lowercase by property but not in category Ll.
const CodeRange kOtherLowercase[] = {
    {0xAA, 0xAA}, {0xBA, 0xBA}, {0x2B0, 0x2B8}, {0x2C0, 0x2C1}, {0x2E0, 0x2E4}, {0x345, 0x345}, {0x37A, 0x37A},
    {0x1D2C, 0x1D6A}, {0x1D78, 0x1D78}, {0x1D9B, 0x1DBF}, {0x2071, 0x2071}, {0x207F, 0x207F}, {0x2090, 0x209C},
    {0x2170, 0x217F}, {0x24D0, 0x24E9}, {0x2C7C, 0x2C7D}, {0xA69C, 0xA69D}, {0xA770, 0xA770}, {0xA7F8, 0xA7F9},
    {0xAB5C, 0xAB5F}, {0x10780, 0x10780}, {0x10783, 0x10785}, {0x10787, 0x107B0}, {0x107B2, 0x107BA},
};
const size_t kOtherLowercaseCount = sizeof kOtherLowercase / sizeof kOtherLowercase[0];

// Uppercase by property but not in category Lu.
const CodeRange kOtherUppercase[] = {
    {0x2160, 0x216F}, {0x24B6, 0x24CF}, {0x1F130, 0x1F149}, {0x1F150, 0x1F169}, {0x1F170, 0x1F189},
};
const size_t kOtherUppercaseCount = sizeof kOtherUppercase / sizeof kOtherUppercase[0];

// isdigit() but not category Nd.
const CodeRange kOtherDigit[] = {
    {0xB2, 0xB3}, {0xB9, 0xB9}, {0x1369, 0x1371}, {0x19DA, 0x19DA}, {0x2070, 0x2070}, {0x2074, 0x2079}, {0x2080, 0x2089},
    {0x2460, 0x2468}, {0x2474, 0x247C}, {0x2488, 0x2490}, {0x24EA, 0x24EA}, {0x24F5, 0x24FD}, {0x24FF, 0x24FF},
    {0x2776, 0x277E}, {0x2780, 0x2788}, {0x278A, 0x2792}, {0x10A40, 0x10A43}, {0x10E60, 0x10E68}, {0x11052, 0x1105A},
    {0x1F100, 0x1F10A},
};
const size_t kOtherDigitCount = sizeof kOtherDigit / sizeof kOtherDigit[0];

// isnumeric() but not category Nd, Nl or No.
const CodeRange kOtherNumeric[] = {
    {0x3405, 0x3405}, {0x3483, 0x3483}, {0x382A, 0x382A}, {0x3B4D, 0x3B4D}, {0x4E00, 0x4E00}, {0x4E03, 0x4E03},
    {0x4E07, 0x4E07}, {0x4E09, 0x4E09}, {0x4E5D, 0x4E5D}, {0x4E8C, 0x4E8C}, {0x4E94, 0x4E94}, {0x4E96, 0x4E96},
    {0x4EBF, 0x4EC0}, {0x4EDF, 0x4EDF}, {0x4EE8, 0x4EE8}, {0x4F0D, 0x4F0D}, {0x4F70, 0x4F70}, {0x5104, 0x5104},
    {0x5146, 0x5146}, {0x5169, 0x5169}, {0x516B, 0x516B}, {0x516D, 0x516D}, {0x5341, 0x5341}, {0x5343, 0x5345},
    {0x534C, 0x534C}, {0x53C1, 0x53C4}, {0x56DB, 0x56DB}, {0x58F1, 0x58F1}, {0x58F9, 0x58F9}, {0x5E7A, 0x5E7A},
    {0x5EFE, 0x5EFF}, {0x5F0C, 0x5F0E}, {0x5F10, 0x5F10}, {0x62FE, 0x62FE}, {0x634C, 0x634C}, {0x67D2, 0x67D2},
    {0x6F06, 0x6F06}, {0x7396, 0x7396}, {0x767E, 0x767E}, {0x8086, 0x8086}, {0x842C, 0x842C}, {0x8CAE, 0x8CAE},
    {0x8CB3, 0x8CB3}, {0x8D30, 0x8D30}, {0x9621, 0x9621}, {0x9646, 0x9646}, {0x964C, 0x964C}, {0x9678, 0x9678},
    {0x96F6, 0x96F6}, {0xF96B, 0xF96B}, {0xF973, 0xF973}, {0xF978, 0xF978}, {0xF9B2, 0xF9B2}, {0xF9D1, 0xF9D1},
    {0xF9D3, 0xF9D3}, {0xF9FD, 0xF9FD}, {0x20001, 0x20001}, {0x20064, 0x20064}, {0x200E2, 0x200E2}, {0x20121, 0x20121},
    {0x2092A, 0x2092A}, {0x20983, 0x20983}, {0x2098C, 0x2098C}, {0x2099C, 0x2099C}, {0x20AEA, 0x20AEA}, {0x20AFD, 0x20AFD},
    {0x20B19, 0x20B19}, {0x22390, 0x22390}, {0x22998, 0x22998}, {0x23B1B, 0x23B1B}, {0x2626D, 0x2626D}, {0x2F890, 0x2F890},
};
const size_t kOtherNumericCount = sizeof kOtherNumeric / sizeof kOtherNumeric[0];

// Characters whose uppercase is more than one character (SpecialCasing).
const FullMapping kFullUpper[] = {
    {0xDF, "\x53\x53"}, {0x149, "\xca\xbc\x4e"}, {0x1F0, "\x4a\xcc\x8c"}, {0x390, "\xce\x99\xcc\x88\xcc\x81"},
    {0x3B0, "\xce\xa5\xcc\x88\xcc\x81"}, {0x587, "\xd4\xb5\xd5\x92"}, {0x1E96, "\x48\xcc\xb1"}, {0x1E97, "\x54\xcc\x88"},
    {0x1E98, "\x57\xcc\x8a"}, {0x1E99, "\x59\xcc\x8a"}, {0x1E9A, "\x41\xca\xbe"}, {0x1F50, "\xce\xa5\xcc\x93"},
    {0x1F52, "\xce\xa5\xcc\x93\xcc\x80"}, {0x1F54, "\xce\xa5\xcc\x93\xcc\x81"}, {0x1F56, "\xce\xa5\xcc\x93\xcd\x82"},
    {0x1F80, "\xe1\xbc\x88\xce\x99"}, {0x1F81, "\xe1\xbc\x89\xce\x99"}, {0x1F82, "\xe1\xbc\x8a\xce\x99"},
    {0x1F83, "\xe1\xbc\x8b\xce\x99"}, {0x1F84, "\xe1\xbc\x8c\xce\x99"}, {0x1F85, "\xe1\xbc\x8d\xce\x99"},
    {0x1F86, "\xe1\xbc\x8e\xce\x99"}, {0x1F87, "\xe1\xbc\x8f\xce\x99"}, {0x1F88, "\xe1\xbc\x88\xce\x99"},
    {0x1F89, "\xe1\xbc\x89\xce\x99"}, {0x1F8A, "\xe1\xbc\x8a\xce\x99"}, {0x1F8B, "\xe1\xbc\x8b\xce\x99"},
    {0x1F8C, "\xe1\xbc\x8c\xce\x99"}, {0x1F8D, "\xe1\xbc\x8d\xce\x99"}, {0x1F8E, "\xe1\xbc\x8e\xce\x99"},
    {0x1F8F, "\xe1\xbc\x8f\xce\x99"}, {0x1F90, "\xe1\xbc\xa8\xce\x99"}, {0x1F91, "\xe1\xbc\xa9\xce\x99"},
    {0x1F92, "\xe1\xbc\xaa\xce\x99"}, {0x1F93, "\xe1\xbc\xab\xce\x99"}, {0x1F94, "\xe1\xbc\xac\xce\x99"},
    {0x1F95, "\xe1\xbc\xad\xce\x99"}, {0x1F96, "\xe1\xbc\xae\xce\x99"}, {0x1F97, "\xe1\xbc\xaf\xce\x99"},
    {0x1F98, "\xe1\xbc\xa8\xce\x99"}, {0x1F99, "\xe1\xbc\xa9\xce\x99"}, {0x1F9A, "\xe1\xbc\xaa\xce\x99"},
    {0x1F9B, "\xe1\xbc\xab\xce\x99"}, {0x1F9C, "\xe1\xbc\xac\xce\x99"}, {0x1F9D, "\xe1\xbc\xad\xce\x99"},
    {0x1F9E, "\xe1\xbc\xae\xce\x99"}, {0x1F9F, "\xe1\xbc\xaf\xce\x99"}, {0x1FA0, "\xe1\xbd\xa8\xce\x99"},
    {0x1FA1, "\xe1\xbd\xa9\xce\x99"}, {0x1FA2, "\xe1\xbd\xaa\xce\x99"}, {0x1FA3, "\xe1\xbd\xab\xce\x99"},
    {0x1FA4, "\xe1\xbd\xac\xce\x99"}, {0x1FA5, "\xe1\xbd\xad\xce\x99"}, {0x1FA6, "\xe1\xbd\xae\xce\x99"},
    {0x1FA7, "\xe1\xbd\xaf\xce\x99"}, {0x1FA8, "\xe1\xbd\xa8\xce\x99"}, {0x1FA9, "\xe1\xbd\xa9\xce\x99"},
    {0x1FAA, "\xe1\xbd\xaa\xce\x99"}, {0x1FAB, "\xe1\xbd\xab\xce\x99"}, {0x1FAC, "\xe1\xbd\xac\xce\x99"},
    {0x1FAD, "\xe1\xbd\xad\xce\x99"}, {0x1FAE, "\xe1\xbd\xae\xce\x99"}, {0x1FAF, "\xe1\xbd\xaf\xce\x99"},
    {0x1FB2, "\xe1\xbe\xba\xce\x99"}, {0x1FB3, "\xce\x91\xce\x99"}, {0x1FB4, "\xce\x86\xce\x99"},
    {0x1FB6, "\xce\x91\xcd\x82"}, {0x1FB7, "\xce\x91\xcd\x82\xce\x99"}, {0x1FBC, "\xce\x91\xce\x99"},
    {0x1FC2, "\xe1\xbf\x8a\xce\x99"}, {0x1FC3, "\xce\x97\xce\x99"}, {0x1FC4, "\xce\x89\xce\x99"},
    {0x1FC6, "\xce\x97\xcd\x82"}, {0x1FC7, "\xce\x97\xcd\x82\xce\x99"}, {0x1FCC, "\xce\x97\xce\x99"},
    {0x1FD2, "\xce\x99\xcc\x88\xcc\x80"}, {0x1FD3, "\xce\x99\xcc\x88\xcc\x81"}, {0x1FD6, "\xce\x99\xcd\x82"},
    {0x1FD7, "\xce\x99\xcc\x88\xcd\x82"}, {0x1FE2, "\xce\xa5\xcc\x88\xcc\x80"}, {0x1FE3, "\xce\xa5\xcc\x88\xcc\x81"},
    {0x1FE4, "\xce\xa1\xcc\x93"}, {0x1FE6, "\xce\xa5\xcd\x82"}, {0x1FE7, "\xce\xa5\xcc\x88\xcd\x82"},
    {0x1FF2, "\xe1\xbf\xba\xce\x99"}, {0x1FF3, "\xce\xa9\xce\x99"}, {0x1FF4, "\xce\x8f\xce\x99"},
    {0x1FF6, "\xce\xa9\xcd\x82"}, {0x1FF7, "\xce\xa9\xcd\x82\xce\x99"}, {0x1FFC, "\xce\xa9\xce\x99"}, {0xFB00, "\x46\x46"},
    {0xFB01, "\x46\x49"}, {0xFB02, "\x46\x4c"}, {0xFB03, "\x46\x46\x49"}, {0xFB04, "\x46\x46\x4c"}, {0xFB05, "\x53\x54"},
    {0xFB06, "\x53\x54"}, {0xFB13, "\xd5\x84\xd5\x86"}, {0xFB14, "\xd5\x84\xd4\xb5"}, {0xFB15, "\xd5\x84\xd4\xbb"},
    {0xFB16, "\xd5\x8e\xd5\x86"}, {0xFB17, "\xd5\x84\xd4\xbd"},
};
const size_t kFullUpperCount = sizeof kFullUpper / sizeof kFullUpper[0];

// Characters whose titlecase is more than one character.
const FullMapping kFullTitle[] = {
    {0xDF, "\x53\x73"}, {0x149, "\xca\xbc\x4e"}, {0x1F0, "\x4a\xcc\x8c"}, {0x390, "\xce\x99\xcc\x88\xcc\x81"},
    {0x3B0, "\xce\xa5\xcc\x88\xcc\x81"}, {0x587, "\xd4\xb5\xd6\x82"}, {0x1E96, "\x48\xcc\xb1"}, {0x1E97, "\x54\xcc\x88"},
    {0x1E98, "\x57\xcc\x8a"}, {0x1E99, "\x59\xcc\x8a"}, {0x1E9A, "\x41\xca\xbe"}, {0x1F50, "\xce\xa5\xcc\x93"},
    {0x1F52, "\xce\xa5\xcc\x93\xcc\x80"}, {0x1F54, "\xce\xa5\xcc\x93\xcc\x81"}, {0x1F56, "\xce\xa5\xcc\x93\xcd\x82"},
    {0x1FB2, "\xe1\xbe\xba\xcd\x85"}, {0x1FB4, "\xce\x86\xcd\x85"}, {0x1FB6, "\xce\x91\xcd\x82"},
    {0x1FB7, "\xce\x91\xcd\x82\xcd\x85"}, {0x1FC2, "\xe1\xbf\x8a\xcd\x85"}, {0x1FC4, "\xce\x89\xcd\x85"},
    {0x1FC6, "\xce\x97\xcd\x82"}, {0x1FC7, "\xce\x97\xcd\x82\xcd\x85"}, {0x1FD2, "\xce\x99\xcc\x88\xcc\x80"},
    {0x1FD3, "\xce\x99\xcc\x88\xcc\x81"}, {0x1FD6, "\xce\x99\xcd\x82"}, {0x1FD7, "\xce\x99\xcc\x88\xcd\x82"},
    {0x1FE2, "\xce\xa5\xcc\x88\xcc\x80"}, {0x1FE3, "\xce\xa5\xcc\x88\xcc\x81"}, {0x1FE4, "\xce\xa1\xcc\x93"},
    {0x1FE6, "\xce\xa5\xcd\x82"}, {0x1FE7, "\xce\xa5\xcc\x88\xcd\x82"}, {0x1FF2, "\xe1\xbf\xba\xcd\x85"},
    {0x1FF4, "\xce\x8f\xcd\x85"}, {0x1FF6, "\xce\xa9\xcd\x82"}, {0x1FF7, "\xce\xa9\xcd\x82\xcd\x85"}, {0xFB00, "\x46\x66"},
    {0xFB01, "\x46\x69"}, {0xFB02, "\x46\x6c"}, {0xFB03, "\x46\x66\x69"}, {0xFB04, "\x46\x66\x6c"}, {0xFB05, "\x53\x74"},
    {0xFB06, "\x53\x74"}, {0xFB13, "\xd5\x84\xd5\xb6"}, {0xFB14, "\xd5\x84\xd5\xa5"}, {0xFB15, "\xd5\x84\xd5\xab"},
    {0xFB16, "\xd5\x8e\xd5\xb6"}, {0xFB17, "\xd5\x84\xd5\xad"},
};
const size_t kFullTitleCount = sizeof kFullTitle / sizeof kFullTitle[0];

}  // namespace halfbyte::text::jinja
