// What the language means, case by case, where a file of answers would not say why; and what errors look like.
#include <gtest/gtest.h>

#include <string>

#include "text/jinja.h"

namespace halfbyte::text {
namespace {

using base::ErrorCode;
using base::Json;

base::Result<std::string> Try(std::string source, const char* context = "{}") {
  HB_ASSIGN_OR_RETURN(JinjaTemplate parsed, JinjaTemplate::Parse(std::move(source)));
  HB_ASSIGN_OR_RETURN(Json variables, Json::Parse(context));
  return parsed.Render(variables);
}

std::string Render(std::string source, const char* context = "{}") {
  auto text = Try(std::move(source), context);
  return text ? *text : "error: " + text.error().ToString();
}

TEST(JinjaScopes, ALoopBodyHasItsOwnVariables) {
  EXPECT_EQ(Render("{% set a = 1 %}{% for x in [5, 6] %}{{ a }}{% set a = x %}{{ a }} {% endfor %}{{ a }}"), "15 16 1");
  EXPECT_EQ(Render("{% for x in [1] %}{% set b = 2 %}{% endfor %}[{{ b }}]"), "[]");
}

TEST(JinjaScopes, AnIfHasNone) {
  EXPECT_EQ(Render("{% if true %}{% set a = 1 %}{% endif %}{{ a }}"), "1");
  EXPECT_EQ(Render("{% if false %}{% set a = 1 %}{% endif %}{{ a }}", R"({"a": 7})"), "7");
}

// jinja2 decides at compile time that the whole scope means its own variable, which is unset before the assignment.
TEST(JinjaScopes, AnAssignmentFurtherDownHidesTheContextInNestedScopes) {
  EXPECT_EQ(Render("{% for x in [1] %}[{{ a }}]{% endfor %}{% set a = 1 %}", R"({"a": 7})"), "[]");
  EXPECT_EQ(Render("{{ a }}{% for x in [1] %}[{{ a }}]{% endfor %}{% set a = 1 %}", R"({"a": 7})"), "7[7]");
  EXPECT_EQ(Render("{% macro m() %}[{{ a }}]{% endmacro %}{{ m() }}{% set a = 1 %}{{ m() }}", R"({"a": 7})"), "[][1]");
}

TEST(JinjaScopes, MacrosSeeWhatIsAroundThemWhenTheyRun) {
  EXPECT_EQ(Render("{% macro m() %}{{ q }}{% endmacro %}{% set q = 1 %}{{ m() }}{% set q = 2 %}{{ m() }}"), "12");
  EXPECT_EQ(Render("{% for i in [1, 2] %}{% macro m() %}{{ i }}{% endmacro %}{{ m() }}{% endfor %}"), "12");
  EXPECT_EQ(Render("{% set q = 1 %}{% macro m() %}{% set q = 2 %}{{ q }}{% endmacro %}{{ m() }}{{ q }}"), "21");
}

TEST(JinjaScopes, BlocksSeeTheTopLevelOnly) {
  EXPECT_EQ(Render("{% set a = 1 %}{% block b %}{{ a }}{{ c }}{% endblock %}", R"({"c": 3})"), "13");
  EXPECT_EQ(Render("{% for i in [1] %}{% block b %}[{{ i }}]{% endblock %}{% endfor %}"), "[]");
  EXPECT_EQ(Render("{% for i in [1] %}{% block b scoped %}[{{ i }}]{% endblock %}{% endfor %}"), "[1]");
  EXPECT_EQ(Render("{% block b %}x{% endblock %}{{ self.b() }}"), "xx");
}

TEST(JinjaLoops, TheElsePartRunsUnlessAnIterationWasCompleted) {
  EXPECT_EQ(Render("{% for x in [1, 2] %}{% break %}{% else %}E{% endfor %}"), "E");
  EXPECT_EQ(Render("{% for x in [1, 2] %}{{ x }}{% else %}E{% endfor %}"), "12");
}

TEST(JinjaLoops, AGeneratorIsTrueAndIsUsedUp) {
  EXPECT_EQ(Render("{% set g = []|select %}{{ 'true' if g else 'false' }}"), "true");
  EXPECT_EQ(Render("{% set g = [1, 2]|map('string') %}{{ g|list }}{{ g|list }}"), "['1', '2'][]");
  EXPECT_EQ(Render("{{ [1, 'x', 3]|map('abs')|first }}"), "1");  // nobody asked for the second
}

TEST(JinjaWhiteSpace, TagsOnTheirOwnLinesLeaveNothing) {
  EXPECT_EQ(Render("a\n  {% if true %}\n  b\n  {% endif %}\nc\n"), "a\n  b\nc");
  EXPECT_EQ(Render("a {{- ' b ' -}} c"), "a b c");
  EXPECT_EQ(Render("a\n {%+ if true %}b{% endif +%}\nc"), "a\n b\nc");
}

TEST(JinjaNumbers, PythonsArithmetic) {
  EXPECT_EQ(Render("{{ -7 // 2 }} {{ -7 % 3 }} {{ 7 % -3 }} {{ 7.5 // -2 }} {{ 6 / 3 }} {{ 2 ** -1 }} {{ -2 ** 2 }}"),
            "-4 2 -2 -4.0 2.0 0.5 4");
  EXPECT_EQ(Render("{{ 0.1 + 0.2 }} {{ 1e16 }} {{ 1e15 }} {{ 1.0 }} {{ 5e-324 }} {{ 1e22 }} {{ 1.7976931348623157e308 * 10 }}"),
            "0.30000000000000004 1e+16 1000000000000000.0 1.0 5e-324 1e+22 inf");
  EXPECT_EQ(Render("{{ 2.675|round(2) }} {{ 0.5|round }} {{ 1.5|round }} {{ 1234.5|round(-2) }} {{ 250|round(-2) }} "
                   "{{ 350|round(-2) }}"),
            "2.67 0.0 2.0 1200.0 200 400");
  EXPECT_EQ(Render("{{ 9007199254740993 == 9007199254740992.0 }} {{ 1 == 1.0 }} {{ 1 == true }} {{ 18446744073709551615 + 1 }}"),
            "False True True 18446744073709551616");
}

TEST(JinjaStrings, CountedByCodePoint) {
  EXPECT_EQ(Render("{{ 'aé漢😀'|length }} {{ 'aé漢😀'[2] }} {{ 'aé漢😀'[::-1] }} {{ 'aé漢😀'.find('😀') }}"), "4 漢 😀漢éa 3");
  EXPECT_EQ(Render("{{ 'é'.center(3, '漢') }}"), "漢é漢");
  EXPECT_EQ(Render("{{ 'ΑΣ ΑΣΑ ß İ ŉ'.lower() }}|{{ 'ΑΣ ß ŉ ǆ'.upper() }}|{{ 'ǆ ß'.title() }}"), "ας ασα ß i̇ ŉ|ΑΣ SS ʼN Ǆ|ǅ Ss");
}

TEST(JinjaSandbox, NothingThatBeginsWithAnUnderscoreOrChangesAnObject) {
  for (const char* source :
       {"{{ ''.__class__.x }}", "{{ [].append(1) }}", "{{ {}.update({}) }}", "{{ {}.pop('a') }}", "{{ [1].sort() }}",
        "{% set ns = namespace(_a=1) %}", "{% set ns = namespace() %}{% set ns._a = 1 %}", "{{ '{0.__class__.x}'.format(1) }}",
        "{{ ''|attr('__class__')|list|attr('x') + 1 }}"}) {
    auto text = Try(source);
    ASSERT_FALSE(text) << source << " gives " << *text;
    EXPECT_EQ(text.error().code(), ErrorCode::kUnsupported) << source;
  }
  EXPECT_EQ(Render("[{{ ''.__class__ }}{{ ''['__class__'] }}{{ [].append }}]"), "[]");
}

TEST(JinjaErrors, SyntaxHasALine) {
  auto parsed = JinjaTemplate::Parse("a\nb\n{% if x %}\n{{ 1 + }}\n{% endif %}");
  ASSERT_FALSE(parsed);
  EXPECT_EQ(parsed.error().code(), ErrorCode::kBadFile);
  EXPECT_TRUE(parsed.error().ToString().starts_with("template line 4: ")) << parsed.error().ToString();
  EXPECT_EQ(JinjaTemplate::Parse("{% if x %}y").error().message(),
            "Unexpected end of template. Jinja was looking for the following tags: 'elif' or 'else' or 'endif'. The innermost "
            "block that needs to be closed is 'if'.");
  EXPECT_EQ(JinjaTemplate::Parse("{{ x|nofilter }}").error().message(), "No filter named 'nofilter'.");
  EXPECT_TRUE(JinjaTemplate::Parse("{% if false %}{{ x|nofilter }}{% endif %}"));
}

TEST(JinjaErrors, RaiseExceptionGivesExactlyItsMessage) {
  auto text = Try("{% for m in messages %}\n{% if m.role != 'user' %}\n"
                  "{{ raise_exception('Role ' ~ m.role ~ ' is \"not\" known') }}{% endif %}{% endfor %}",
                  R"({"messages": [{"role": "user"}, {"role": "robot"}]})");
  ASSERT_FALSE(text);
  EXPECT_EQ(text.error().code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(text.error().message(), "Role robot is \"not\" known");
  EXPECT_EQ(text.error().ToString(), "template line 3: Role robot is \"not\" known");
}

TEST(JinjaErrors, AFailedOperationSaysWhatAndWhere) {
  auto text = Try("\n{{ a.b.c }}", R"({"a": {}})");
  ASSERT_FALSE(text);
  EXPECT_EQ(text.error().code(), ErrorCode::kUnsupported);
  EXPECT_EQ(text.error().ToString(), "template line 2: UndefinedError: 'dict object' has no attribute 'b'");
  EXPECT_EQ(Try("{{ 'a' + 1 }}").error().message(), "TypeError: can only concatenate str (not \"int\") to str");
  EXPECT_EQ(Try("{{ x() }}").error().message(), "UndefinedError: 'x' is undefined");
}

TEST(JinjaTimes, IsoTimes) {
  for (const char* good : {"2025-07-04", "2025-07-04T12:34", "2025-07-04 12:34:56", "2024-02-29T00:00:00.123456Z",
                           "2025-07-04T12:34:56+02:00"}) {
    EXPECT_TRUE(JinjaTime::Parse(good)) << good;
  }
  for (const char* bad : {"", "2025", "2025-13-01", "2025-02-29", "2025-07-04T", "2025-07-04T25:00", "2025-07-04T12:34:56x",
                          "04.07.2025"}) {
    EXPECT_FALSE(JinjaTime::Parse(bad)) << bad;
  }
  JinjaRenderOptions options;
  options.now = *JinjaTime::Parse("2024-02-29T07:08:09.5");
  auto parsed = JinjaTemplate::Parse("{{ strftime_now('%a %A %d %b %B %j %H:%M:%S.%f %p %-d %y %% %Z|') }}");
  EXPECT_EQ(parsed->Render(Json::MakeObject(), options).value(), "Thu Thursday 29 Feb February 060 07:08:09.500000 AM 29 24 % |");
  EXPECT_EQ(Render("{{ strftime_now('%Y')|length }}"), "4");
}

}  // namespace
}  // namespace halfbyte::text
