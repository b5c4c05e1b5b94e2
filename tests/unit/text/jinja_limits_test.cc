// Hostile templates and contexts: each must end soon, in an error or in a bounded text.
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <thread>

#include "text/jinja.h"

namespace halfbyte::text {
namespace {

using base::ErrorCode;
using base::Json;

std::string Times(const std::string& s, int n) {
  std::string out;
  for (int i = 0; i < n; ++i) out += s;
  return out;
}

base::Result<std::string> Render(std::string source, const Json& context = Json::MakeObject(), const JinjaLimits& limits = {}) {
  HB_ASSIGN_OR_RETURN(JinjaTemplate parsed, JinjaTemplate::Parse(std::move(source)));
  return parsed.Render(context, {.limits = limits, .now = std::nullopt});
}

TEST(JinjaLimits, NestingInTheSource) {
  const int n = 10'000;
  const std::string sources[] = {
      "{{ " + Times("(", n) + "1" + Times(")", n) + " }}",
      "{{ " + Times("[", n) + Times("]", n) + " }}",
      "{{ " + Times("{1: ", n) + "1" + Times("}", n) + " }}",
      "{{ " + Times("not ", n) + "1 }}",
      "{{ " + Times("-", n) + "1 }}",
      "{{ " + Times("1 if 1 else ", n) + "1 }}",
      "{{ x" + Times("|f(", n) + Times(")", n) + " }}",
      "{{ x" + Times("[x", n) + Times("]", n) + " }}",
      "{{ x" + Times(" is eq(1", n) + Times(")", n) + " }}",
      "{{ x is eq " + Times("(", n) + "1" + Times(")", n) + " }}",
      "{{ 1" + Times(" + 1", n) + " }}",
      "{{ 1" + Times(" and 1", n) + " }}",
      "{{ x" + Times(".x", n) + " }}",
      "{{ x" + Times("|upper", n) + " }}",
      "{{ x" + Times("()", n) + " }}",
      Times("{% if 1 %}", n) + Times("{% endif %}", n),
      Times("{% for x in y %}", n) + Times("{% endfor %}", n),
      Times("{% macro m() %}", n) + Times("{% endmacro %}", n),
      Times("{% set x %}", n) + Times("{% endset %}", n),
      Times("{% with %}", n) + Times("{% endwith %}", n),
      "{% set " + Times("(", n) + "a" + Times(")", n) + " = 1 %}",
      "{% for " + Times("(", n) + "a" + Times(")", n) + " in b %}{% endfor %}",
  };
  for (const std::string& source : sources) {
    auto parsed = JinjaTemplate::Parse(source);
    ASSERT_FALSE(parsed) << source.substr(0, 40);
    EXPECT_EQ(parsed.error().code(), ErrorCode::kBadFile) << source.substr(0, 40);
  }
  // What real templates need is far below the limits.
  EXPECT_TRUE(JinjaTemplate::Parse("{{ " + Times("(", 60) + "1" + Times(")", 60) + " }}"));
  EXPECT_TRUE(JinjaTemplate::Parse("{{ 'a'" + Times(" + 'a'", 300) + " }}"));
  EXPECT_TRUE(Render("{% if 1 %}" + Times("{% if 1 %}", 50) + "x" + Times("{% endif %}", 51)));
  std::string elifs = "{% if 0 %}a" + Times("{% elif 0 %}b", n) + "{% else %}c{% endif %}";
  EXPECT_EQ(Render(elifs).value(), "c");
}

TEST(JinjaLimits, Recursion) {
  const char* sources[] = {
      "{% macro m(n) %}{{ m(n + 1) }}{% endmacro %}{{ m(0) }}",
      "{% macro a() %}{{ b() }}{% endmacro %}{% macro b() %}{{ a() }}{% endmacro %}{{ a() }}",
      "{% for x in [1] recursive %}{{ loop([1]) }}{% endfor %}",
      "{% macro m() %}{% call m() %}{{ caller() }}{% endcall %}{% endmacro %}{{ m() }}",
      "{% block a %}{{ self.a() }}{% endblock %}",
      "{% set ns = namespace() %}{% set ns.ns = ns %}{{ ns }}",
      "{% set ns = namespace(a=[]) %}{% for i in range(100000) %}{% set ns.a = [ns.a] %}{% endfor %}{{ ns.a }}",
      "{% set ns = namespace(a=[]) %}{% for i in range(100000) %}{% set ns.a = [ns.a] %}{% endfor %}{{ ns.a|tojson }}",
      "{% set ns = namespace(a=[], b=[]) %}{% for i in range(100000) %}{% set ns.a = [ns.a] %}{% set ns.b = [ns.b] %}{% endfor %}"
      "{{ ns.a == ns.b }}",
      "{% set ns = namespace(a=(), b=()) %}{% for i in range(100000) %}{% set ns.a = (ns.a,) %}{% endfor %}{{ {ns.a: 1} }}",
      "{% set ns = namespace(a=[1]) %}{% for i in range(5000) %}{% set ns.a = ns.a|map('string') %}{% endfor %}{{ ns.a|list }}",
  };
  for (const char* source : sources) {
    auto text = Render(source);
    ASSERT_FALSE(text) << source;
    EXPECT_EQ(text.error().code(), ErrorCode::kOutOfMemory) << source << ": " << text.error().ToString();
  }
  // As deep as Python's recursion limit lets jinja2 go.
  EXPECT_TRUE(Render("{% macro m(n) %}{% if n %}{{ m(n - 1) }}{% endif %}{% endmacro %}{{ m(160) }}"));
}

TEST(JinjaLimits, DeepValuesAreFreedWithoutRecursion) {
  auto text = Render("{% set ns = namespace(a=[]) %}{% for i in range(100000) %}{% set ns.a = [ns.a] %}{% endfor %}done");
  ASSERT_TRUE(text) << text.error().ToString();
  EXPECT_EQ(*text, "done");
}

TEST(JinjaLimits, MemoryAndOutput) {
  const char* sources[] = {
      "{{ 'a' * 10000000000 }}",
      "{{ [1] * 10000000000 }}",
      "{{ 'a'|center(10000000000) }}",
      "{{ 'a'.ljust(10000000000) }}",
      "{{ '7'.zfill(10000000000) }}",
      "{{ '\\t'.expandtabs(10000000000) }}",
      "{{ '%1000000000d' % 1 }}",
      "{{ '%.1000000000f' % 1 }}",
      "{{ '%.1000000000d' % 1 }}",
      "{{ '{:1000000000}'.format(1) }}",
      "{{ '{:1000000000}'.format('a') }}",
      "{{ '{:.1000000000f}'.format(1.0) }}",
      "{{ '{:01000000000,}'.format(1) }}",
      "{{ 'a\\nb'|indent(1000000000) }}",
      "{{ {'a': {}}|tojson(indent=1000000000) }}",
      "{{ [1]|batch(1000000000, 0)|list }}",
      "{{ [1]|slice(1000000000)|list }}",
      "{{ range(1000000)|list }}",
      "{{ range(-9000000000000000000, 9000000000000000000) }}",
      "{{ 10 ** 1000 }}",
      "{{ 2 ** 126 * 4 }}",
      "{% set ns = namespace(s='a') %}{% for i in range(100) %}{% set ns.s = ns.s ~ ns.s %}{% endfor %}",
      "{% set ns = namespace(s='a') %}{% for i in range(100) %}{% set ns.s = ns.s + ns.s %}{% endfor %}",
      "{% set ns = namespace(s=[1]) %}{% for i in range(100) %}{% set ns.s = ns.s + ns.s %}{% endfor %}",
      "{% set ns = namespace(s='ab') %}{% for i in range(100) %}{% set ns.s = ns.s|replace('a', 'aab') %}{% endfor %}",
      "{% set ns = namespace(s='ab') %}{% for i in range(100) %}{% set ns.s = [ns.s, ns.s]|join %}{% endfor %}",
      "{% set ns = namespace(s='ab') %}{% for i in range(100) %}{% set ns.s = ns.s.join('abc') %}{% endfor %}",
      "{% set ns = namespace(s=['abc']) %}{% for i in range(100) %}{% set ns.s = [ns.s, ns.s] %}{% endfor %}{{ ns.s }}",
      "{% set ns = namespace(s=['abc']) %}{% for i in range(100) %}{% set ns.s = [ns.s, ns.s] %}{% endfor %}{{ ns.s|tojson }}",
      "{% set ns = namespace(s=[], t=[]) %}{% for i in range(90) %}{% set ns.s = [ns.s, ns.s] %}{% set ns.t = [ns.t, ns.t] %}{% endfor %}"
      "{{ ns.s == ns.t }}",
      "{% set ns = namespace(s=[], t=[]) %}{% for i in range(90) %}{% set ns.s = [ns.s, ns.s] %}{% set ns.t = [ns.t, ns.t] %}{% endfor %}"
      "{{ ns.s < ns.t }}",
      "{% set ns = namespace(s=(), t=()) %}{% for i in range(40) %}{% set ns.s = (ns.s, ns.s) %}{% set ns.t = (ns.t, ns.t) %}{% endfor %}"
      "{{ {ns.s: 1}[ns.t] }}",
      "{% set s = 'a' * 100000 %}{% for i in range(10000) %}{{ s }}{% endfor %}",
      "{% macro m(n) %}{{ 'x' * 10000000 }}{% if n %}{{ m(n - 1) }}{% endif %}{% endmacro %}{{ m(100) }}",
  };
  for (const char* source : sources) {
    auto start = std::chrono::steady_clock::now();
    auto text = Render(source);
    double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    EXPECT_FALSE(text) << source;
    if (!text) { EXPECT_NE(text.error().code(), ErrorCode::kBadFile) << source << ": " << text.error().ToString(); }
    EXPECT_LT(seconds, 20) << source;  // generous: sanitizer builds run this, too
  }
}

TEST(JinjaLimits, Steps) {
  const char* sources[] = {
      "{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}",
      "{% set s = 'ab' * 1000000 %}{% for i in range(100000) %}{% set x = s|upper %}{% endfor %}",
      "{% set s = 'ab' * 1000000 %}{% for i in range(100000) %}{% set x = s|length %}{% endfor %}",
      "{% set s = 'ab' * 1000000 %}{% for i in range(100000) %}{% set x = 'xy' in s %}{% endfor %}",
      "{% set s = 'ab' * 1000000 %}{% for i in range(100000) %}{% set x = s[1] %}{% endfor %}",
      "{% set s = 'ab' * 1000000 %}{% for i in range(100000) %}{% set x = s.find('c') %}{% endfor %}",
      "{% set s = range(100000)|list %}{% for i in range(100000) %}{% set x = -1 in s %}{% endfor %}",
      "{% set s = range(100000)|list %}{% for i in range(100000) %}{% set x = s|sort %}{% endfor %}",
      "{% set s = ('<' * 500000) ~ ('>' * 500000) %}{% for i in range(100000) %}{% set x = s|striptags %}{% endfor %}",
  };
  for (const char* source : sources) {
    auto text = Render(source);
    ASSERT_FALSE(text) << source;
    EXPECT_EQ(text.error().code(), ErrorCode::kOutOfMemory) << source << ": " << text.error().ToString();
  }
}

TEST(JinjaLimits, TheLimitsAreThoseThatWereGiven) {
  JinjaLimits limits;
  limits.max_output = 10;
  EXPECT_TRUE(Render("0123456789", Json::MakeObject(), limits));
  EXPECT_FALSE(Render("0123456789a", Json::MakeObject(), limits));
  limits = {};
  limits.max_steps = 50;
  EXPECT_TRUE(Render("{% for i in range(3) %}{{ i }}{% endfor %}", Json::MakeObject(), limits));
  EXPECT_FALSE(Render("{% for i in range(30) %}{{ i }}{% endfor %}", Json::MakeObject(), limits));
  limits = {};
  limits.max_memory = 10'000;
  EXPECT_FALSE(Render("{{ 'x' * 10001 }}", Json::MakeObject(), limits));
  limits = {};
  limits.max_depth = 20;
  EXPECT_FALSE(Render("{{ " + Times("[", 30) + Times("]", 30) + " }}", Json::MakeObject(), limits));
}

TEST(JinjaLimits, DeepContext) {
  Json deep = Json::MakeArray();
  for (int i = 0; i < 5'000; ++i) {
    Json outer = Json::MakeArray();
    outer.Push(std::move(deep));
    deep = std::move(outer);
  }
  Json context = Json::MakeObject();
  context.Set("x", std::move(deep));
  auto text = Render("{{ x }}", context);
  ASSERT_FALSE(text);
  EXPECT_EQ(text.error().code(), ErrorCode::kOutOfMemory);
  EXPECT_TRUE(Render("nothing asks for it", context));
}

TEST(JinjaLimits, BytesThatAreNoText) {
  EXPECT_FALSE(JinjaTemplate::Parse("a\xFF"));
  EXPECT_FALSE(JinjaTemplate::Parse(std::string("{{ '\xC3") + "' }}"));
  EXPECT_FALSE(JinjaTemplate::Parse(std::string(5u << 20, 'x')));
  Json context = Json::MakeObject();
  context.Set("s", std::string("a\xC3(\xE2\x82z\xF0\x9F"));
  for (const char* f : {"upper", "lower", "title", "length", "reverse", "list", "first", "last", "trim", "tojson", "wordcount"}) {
    EXPECT_TRUE(Render(base::StrCat("{{ s|", f, " }}"), context)) << f;
  }
  EXPECT_TRUE(Render("{{ s[1:3] }}{{ s[::-1] }}{{ s.split() }}{{ s.center(20) }}{{ '%5s' % s }}", context));
}

TEST(JinjaLimits, OneTemplateInManyThreads) {
  auto parsed = JinjaTemplate::Parse("{% macro m(x) %}<{{ x ~ 'é' }}>{% endmacro %}{% for i in l %}{{ m(i)|upper }}{% endfor %}");
  ASSERT_TRUE(parsed);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      Json list = Json::MakeArray();
      for (int i = 0; i < 20; ++i) list.Push(std::string("t") + std::to_string(t));
      Json context = Json::MakeObject();
      context.Set("l", std::move(list));
      std::string want = Times("<T" + std::to_string(t) + "É>", 20);
      for (int round = 0; round < 50; ++round) EXPECT_EQ(parsed->Render(context).value(), want);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace halfbyte::text
