// Which variable a name means, decided before the first render.
//
// jinja2 compiles a template to Python functions and decides scopes while it does, so its rules are static and some are
// surprising; this pass follows them:
//  - for, with, set blocks, filter blocks, macros, call blocks and autoescape open a scope; if does not.
//  - A name that is assigned in a scope is the scope's own variable. It starts as a copy of the variable of that name further
//    out; if there is none, as the context's if the scope reads the name before or the assignment stands in an if, else unset
//    (also where the context has one of that name).
//  - A name that is only read means the nearest variable further out, else the context's.
//  - Macros and call blocks see the variables around them as they are when they run.
#pragma once

#include "text/jinja_ast.h"

namespace halfbyte::text::jinja {

// Fills the layouts and references of the tree. Throws TemplateError for a filter or test that is unknown, unless it stands
// directly in an if, where jinja2 fails only when it gets there.
void ResolveNames(TemplateTree& tree);

}  // namespace halfbyte::text::jinja
