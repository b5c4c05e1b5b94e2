// Speed of the tokenizer: loading, encoding and decoding on one core, medians of several runs.
//
//   tokenizer_bench FOLDER TEXTFILE [REPEAT]
//
// The text is encoded line by line in one call each ("lines", words of a chat) and as one call ("document"). No physical limit is near:
// a copy of the text runs at some 10 GB/s; the figure to compare with is tools/bench-tokenizers.py, the same for Hugging Face's library.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "text/tokenizer.h"

namespace {

// Processor time of this thread: a neighbour on a shared core then costs cache, but not time that was never ours.
double Seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

template <typename Function>
double Median(int repeat, Function run) {
  std::vector<double> seconds;
  for (int i = 0; i < repeat; ++i) {
    double start = Seconds();
    run();
    seconds.push_back(Seconds() - start);
  }
  std::sort(seconds.begin(), seconds.end());
  return seconds[seconds.size() / 2];
}

}  // namespace

int main(int argc, char** argv) {
  using halfbyte::text::Tokenizer;
  if (argc < 3) { std::fprintf(stderr, "usage: tokenizer_bench FOLDER TEXTFILE [REPEAT]\n"); return 2; }
  int repeat = argc > 3 ? std::atoi(argv[3]) : 5;
  auto tokenizer = Tokenizer::FromFolder(argv[1]);
  if (!tokenizer) { std::fprintf(stderr, "%s\n", tokenizer.error().ToString().c_str()); return 1; }
  std::ifstream in(argv[2], std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  double megabytes = static_cast<double>(text.size()) / 1e6;

  double load = Median(repeat, [&] { (void)Tokenizer::FromFolder(argv[1]); });
  std::vector<int32_t> ids;
  double document = Median(repeat, [&] { ids = tokenizer->Encode(text, false); });
  double lines = Median(repeat, [&] {
    for (size_t begin = 0; begin < text.size();) {
      size_t end = std::min(text.find('\n', begin), text.size());
      (void)tokenizer->Encode(std::string_view(text).substr(begin, end - begin), false);
      begin = end + 1;
    }
  });
  std::string decoded;
  double decode = Median(repeat, [&] { decoded = tokenizer->Decode(ids, false); });
  std::printf("{\"load_seconds\": %.4f, \"text_mb\": %.2f, \"tokens\": %zu, \"encode_document_mb_per_second\": %.1f, "
              "\"encode_lines_mb_per_second\": %.1f, \"decode_mb_per_second\": %.1f, \"decoded_equals_text\": %s}\n",
              load, megabytes, ids.size(), megabytes / document, megabytes / lines, megabytes / decode, decoded == text ? "true" : "false");
  return 0;
}
