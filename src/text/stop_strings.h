// Ends a stream of text at the first stop string, of which nothing is ever passed on (user case T17).
//
// Text is held back exactly as long as it may be the beginning of a stop string: what is held is the longest end of the text that some
// stop string starts with. The stop string that is complete first wins, byte by byte, so the result does not depend on how the text was
// cut into pieces; of several complete at the same byte, the one that starts earliest.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace halfbyte::text {

class StopStrings {
 public:
  // Empty strings are ignored; without any string all text passes at once.
  explicit StopStrings(std::vector<std::string> strings);

  // Takes more text and returns what can be shown now. After a stop string it returns nothing.
  std::string Push(std::string_view text);
  // The text has ended: what was held back, nothing after a stop string. One object serves one text.
  std::string Flush();

  bool stopped() const { return matched_ >= 0; }
  // Index, in the list given, of the stop string that ended the text; -1 before.
  int matched() const { return matched_; }

 private:
  // A node of the tree of all stop strings; its text is the path from the root. Missing edges go to `fall`, the node of the longest proper
  // end of the text that is in the tree as well (Aho-Corasick): every byte costs a constant number of steps on average.
  struct Node {
    std::vector<std::pair<unsigned char, int32_t>> edges;
    int32_t fall = 0;
    int32_t depth = 0;
    int32_t string = -1;  // longest stop string that ends here
  };
  int32_t Edge(int32_t node, unsigned char byte) const;
  int32_t Step(int32_t node, unsigned char byte) const;

  std::vector<std::string> strings_;
  std::vector<Node> nodes_;
  int32_t node_ = 0;
  int matched_ = -1;
  std::string held_;
};

}  // namespace halfbyte::text
