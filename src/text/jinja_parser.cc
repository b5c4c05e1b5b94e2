#include "text/jinja_parser.h"

#include <algorithm>

#include "text/jinja_parse_expression.h"

namespace halfbyte::text::jinja {
namespace {

// The names of the tags that end or divide the body at hand.
using EndTags = std::initializer_list<std::string_view>;

bool AssignsLoop(const Expr& target) {
  if (target.kind == ExprKind::kName) return static_cast<const NameExpr&>(target).name == "loop";
  if (target.kind != ExprKind::kTuple) return false;
  const auto& items = static_cast<const ItemsExpr&>(target).items;
  return std::any_of(items.begin(), items.end(), [](const ExprPtr& item) { return AssignsLoop(*item); });
}

// A loop's target again, for the scope of its test.
ExprPtr CloneTarget(const Expr& target) {
  if (target.kind == ExprKind::kName) return std::make_unique<NameExpr>(target.line, static_cast<const NameExpr&>(target).name);
  auto copy = std::make_unique<ItemsExpr>(ExprKind::kTuple, target.line);
  for (const ExprPtr& item : static_cast<const ItemsExpr&>(target).items) copy->items.push_back(CloneTarget(*item));
  return copy;
}

class Parser {
 public:
  explicit Parser(std::vector<Token> tokens) : stream_(std::move(tokens)), expressions_(stream_) {}

  TemplateTree Run() {
    TemplateTree tree;
    tree.body = Statements({}, "");
    tree.blocks = std::move(blocks_);
    return tree;
  }

 private:
  // Up to one of the end tags, whose name is then the current token; without end tags, up to the end of the template.
  Body Statements(EndTags ends, std::string_view tag) {
    ParseDepth guard(depth_, stream_.line());
    Body body;
    OutputStatement* output = nullptr;
    auto out = [&]() -> OutputStatement& {
      if (output == nullptr) {
        body.push_back(std::make_unique<OutputStatement>(stream_.line()));
        output = static_cast<OutputStatement*>(body.back().get());
      }
      return *output;
    };
    for (;;) {
      switch (stream_.current().type) {
        case TokenType::kData:
          out().items.push_back({std::move(stream_.current().text), nullptr});
          stream_.Next();
          break;
        case TokenType::kVariableBegin:
          stream_.Next();
          out().items.push_back({"", expressions_.Tuple()});
          stream_.Expect(TokenType::kVariableEnd);
          break;
        case TokenType::kBlockBegin: {
          stream_.Next();
          output = nullptr;
          if (std::any_of(ends.begin(), ends.end(), [&](std::string_view name) { return stream_.IsName(name); })) return body;
          body.push_back(OneStatement(ends, tag));
          stream_.Expect(TokenType::kBlockEnd);
          break;
        }
        default:
          if (ends.size() > 0) FailEnds("Unexpected end of template.", ends, tag);
          return body;
      }
    }
  }

  [[noreturn]] void FailEnds(std::string text, EndTags ends, std::string_view tag) {
    if (ends.size() > 0) {
      text += " Jinja was looking for the following tags: ";
      bool first = true;
      for (std::string_view name : ends) {
        text += base::StrCat(first ? "'" : " or '", name, "'");
        first = false;
      }
      text += base::StrCat(". The innermost block that needs to be closed is '", tag, "'.");
    }
    FailSyntax(stream_.line(), text);
  }

  // ": %}" or "%}", then statements.
  Body BodyUntil(EndTags ends, std::string_view tag) {
    stream_.Skip(TokenType::kColon);
    stream_.Expect(TokenType::kBlockEnd);
    return Statements(ends, tag);
  }
  Body WholeBody(std::string_view end, std::string_view tag) {
    Body body = BodyUntil({end}, tag);
    stream_.Next();
    return body;
  }

  std::unique_ptr<Statement> OneStatement(EndTags ends, std::string_view tag) {
    using Rule = std::unique_ptr<Statement> (Parser::*)(int line);
    static constexpr std::pair<std::string_view, Rule> kRules[] = {
        {"for", &Parser::For}, {"if", &Parser::If}, {"set", &Parser::Set}, {"macro", &Parser::Macro}, {"call", &Parser::Call},
        {"filter", &Parser::Filter}, {"with", &Parser::With}, {"block", &Parser::Block}, {"print", &Parser::Print},
        {"autoescape", &Parser::Autoescape}, {"generation", &Parser::Generation}, {"break", &Parser::Break},
        {"continue", &Parser::Continue}, {"include", &Parser::Include}, {"import", &Parser::Import}, {"from", &Parser::From},
        {"extends", &Parser::Extends},
    };
    if (!stream_.Is(TokenType::kName)) FailSyntax(stream_.line(), "tag name expected");
    for (const auto& [name, rule] : kRules) {
      if (stream_.IsName(name)) return (this->*rule)(stream_.Next().line);
    }
    FailEnds(base::StrCat("Encountered unknown tag '", stream_.current().text, "'."), ends, tag);
  }

  std::unique_ptr<Statement> For(int line) {
    auto node = std::make_unique<ForStatement>(line);
    int assignments_before = loop_assignments_;
    node->target = Target(false);
    stream_.ExpectName("in");
    node->iterable = expressions_.Tuple(false);
    if (stream_.SkipName("if")) {
      node->test = expressions_.Expression();
      node->test_target = CloneTarget(*node->target);
    }
    node->recursive = stream_.SkipName("recursive");
    ++loops_;
    node->body = BodyUntil({"endfor", "else"}, "for");
    --loops_;
    if (stream_.Next().text == "else") node->otherwise = WholeBody("endfor", "for");
    if (loop_assignments_ != assignments_before) FailSyntax(line, "Can't assign to special loop variable in for-loop target");
    return node;
  }

  std::unique_ptr<Statement> If(int line) {
    auto node = std::make_unique<IfStatement>(line);
    for (;;) {
      auto& branch = node->branches.emplace_back();
      branch.test = expressions_.Tuple(false);
      branch.body = BodyUntil({"elif", "else", "endif"}, "if");
      bool otherwise = stream_.IsName("else"), ends = stream_.IsName("endif");
      stream_.Next();
      if (otherwise) node->branches.push_back({nullptr, WholeBody("endif", "if")});
      if (otherwise || ends) return node;
    }
  }

  ExprPtr Target(bool with_namespace) {
    ExprPtr target = expressions_.Target(with_namespace);
    loop_assignments_ += AssignsLoop(*target);
    return target;
  }

  std::unique_ptr<Statement> Set(int line) {
    ExprPtr target = Target(true);
    if (stream_.Skip(TokenType::kAssign)) {
      auto node = std::make_unique<SetStatement>(line);
      node->target = std::move(target);
      node->value = expressions_.Tuple();
      return node;
    }
    auto node = std::make_unique<SetBlockStatement>(line);
    node->target = std::move(target);
    node->filter = expressions_.Filters(nullptr, false);
    node->body = WholeBody("endset", "set");
    return node;
  }

  void Signature(MacroSignature& macro) {
    stream_.Expect(TokenType::kLeftParen);
    while (!stream_.Is(TokenType::kRightParen)) {
      if (!macro.parameters.empty()) stream_.Expect(TokenType::kComma);
      NameExpr name = expressions_.NameTarget();
      for (const auto& other : macro.parameters) {
        if (other.first == name.name) FailSyntax(name.line, "duplicate argument '", name.name, "' in the definition");
      }
      if (stream_.Skip(TokenType::kAssign)) macro.defaults.push_back(expressions_.Expression());
      else if (!macro.defaults.empty()) FailSyntax(name.line, "non-default argument follows default argument");
      macro.explicit_caller |= name.name == "caller";
      macro.parameters.emplace_back(std::move(name.name), 0);
    }
    stream_.Next();
  }

  // A body that is a function of its own: no break reaches out of it.
  Body FunctionBody(std::string_view end, std::string_view tag) {
    int loops = std::exchange(loops_, 0);
    Body body = WholeBody(end, tag);
    loops_ = loops;
    return body;
  }

  std::unique_ptr<Statement> Macro(int line) {
    auto node = std::make_unique<MacroStatement>(line);
    node->name = expressions_.NameTarget();
    Signature(node->macro);
    node->macro.body = FunctionBody("endmacro", "macro");
    return node;
  }

  std::unique_ptr<Statement> Call(int line) {
    auto node = std::make_unique<CallBlockStatement>(line);
    if (stream_.Is(TokenType::kLeftParen)) Signature(node->macro);
    node->call = expressions_.Expression();
    if (node->call->kind != ExprKind::kCall) FailSyntax(line, "expected call");
    node->macro.body = FunctionBody("endcall", "call");
    return node;
  }

  std::unique_ptr<Statement> Filter(int line) {
    auto node = std::make_unique<FilterBlockStatement>(line);
    node->filter = expressions_.Filters(nullptr, true);
    node->body = WholeBody("endfilter", "filter");
    return node;
  }

  std::unique_ptr<Statement> With(int line) {
    auto node = std::make_unique<WithStatement>(line);
    while (!stream_.Is(TokenType::kBlockEnd)) {
      if (!node->assignments.empty()) stream_.Expect(TokenType::kComma);
      ExprPtr target = expressions_.Target(false);
      stream_.Expect(TokenType::kAssign);
      node->assignments.emplace_back(std::move(target), expressions_.Expression());
    }
    node->body = WholeBody("endwith", "with");
    return node;
  }

  std::unique_ptr<Statement> Block(int line) {
    auto node = std::make_unique<BlockStatement>(line);
    node->name = stream_.Expect(TokenType::kName).text;
    node->scoped = stream_.SkipName("scoped");
    node->required = stream_.SkipName("required");
    for (const BlockStatement* other : blocks_) {
      if (other->name == node->name) FailSyntax(line, "block '", node->name, "' defined twice");
    }
    blocks_.push_back(node.get());
    node->body = FunctionBody("endblock", "block");
    stream_.SkipName(node->name);
    return node;
  }

  std::unique_ptr<Statement> Print(int line) {
    auto node = std::make_unique<OutputStatement>(line);
    while (!stream_.Is(TokenType::kBlockEnd)) {
      if (!node->items.empty()) stream_.Expect(TokenType::kComma);
      node->items.push_back({"", expressions_.Expression()});
    }
    return node;
  }

  std::unique_ptr<Statement> Autoescape(int line) {
    auto node = std::make_unique<ScopeStatement>(StatementKind::kAutoescape, line);
    node->value = expressions_.Expression();
    node->body = WholeBody("endautoescape", "autoescape");
    return node;
  }

  std::unique_ptr<Statement> Generation(int line) {
    auto node = std::make_unique<ScopeStatement>(StatementKind::kScope, line);
    node->body = FunctionBody("endgeneration", "generation");
    return node;
  }

  std::unique_ptr<Statement> LoopControl(StatementKind kind, int line, const char* name) {
    if (loops_ == 0) FailSyntax(line, "'", name, "' outside loop");
    return std::make_unique<Statement>(kind, line);
  }
  std::unique_ptr<Statement> Break(int line) { return LoopControl(StatementKind::kBreak, line, "break"); }
  std::unique_ptr<Statement> Continue(int line) { return LoopControl(StatementKind::kContinue, line, "continue"); }

  // include, import, from, extends parse, and fail where they are reached.
  std::unique_ptr<NoLoaderStatement> Source(int line) {
    auto node = std::make_unique<NoLoaderStatement>(line);
    node->source = expressions_.Expression();
    return node;
  }
  void SkipContext() {
    if (stream_.look().type == TokenType::kName && stream_.look().text == "context" &&
        (stream_.SkipName("with") || stream_.SkipName("without"))) {
      stream_.Next();
    }
  }
  std::unique_ptr<Statement> Extends(int line) { return Source(line); }
  std::unique_ptr<Statement> Include(int line) {
    auto node = Source(line);
    if (stream_.SkipName("ignore")) stream_.ExpectName("missing");
    SkipContext();
    return node;
  }
  std::unique_ptr<Statement> Import(int line) {
    auto node = Source(line);
    stream_.ExpectName("as");
    node->names.push_back(expressions_.NameTarget());
    SkipContext();
    return node;
  }
  std::unique_ptr<Statement> From(int line) {
    auto node = Source(line);
    stream_.ExpectName("import");
    do {
      NameExpr name = expressions_.NameTarget();
      if (name.name.starts_with("_")) FailSyntax(line, "names starting with an underline can not be imported");
      node->names.push_back(stream_.SkipName("as") ? expressions_.NameTarget() : std::move(name));
    } while (stream_.Skip(TokenType::kComma));
    SkipContext();
    return node;
  }

  TokenStream stream_;
  ExpressionParser expressions_;
  std::vector<BlockStatement*> blocks_;
  int depth_ = 0;
  int loops_ = 0;              // loops around the current tag, within its function
  int loop_assignments_ = 0;   // targets named `loop` so far
};

}  // namespace

TemplateTree ParseTemplate(std::vector<Token> tokens) { return Parser(std::move(tokens)).Run(); }

}  // namespace halfbyte::text::jinja
