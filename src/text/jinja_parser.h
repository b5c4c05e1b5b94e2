// Tokens to a tree, by jinja2's grammar.
#pragma once

#include "text/jinja_ast.h"
#include "text/jinja_lexer.h"

namespace halfbyte::text::jinja {

// Throws TemplateError.
TemplateTree ParseTemplate(std::vector<Token> tokens);

}  // namespace halfbyte::text::jinja
