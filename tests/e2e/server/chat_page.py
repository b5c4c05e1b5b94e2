#!/usr/bin/env python3
"""The chat page in headless Chromium against a running server (tools/test-oracles.sh). usage: chat_page.py BASE_URL KEY CHROMIUM
The server should be slow (--device reference), so that a stream can be seen growing and be stopped."""
import json, sys, time

from playwright.sync_api import sync_playwright

base, key, chromium = sys.argv[1:4]
checks = 0


def check(what, condition, detail=""):
    global checks
    checks += 1
    if not condition: sys.exit(f"chat page: {what} failed: {detail}")


with sync_playwright() as p:
    browser = p.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
    page = browser.new_page()
    errors, hosts, bodies, aborted = [], set(), [], []
    page.on("console", lambda m: errors.append(m.text) if m.type == "error" else None)
    page.on("pageerror", lambda e: errors.append(str(e)))
    page.on("request", lambda r: (hosts.add(r.url.split("/")[2]), bodies.append(json.loads(r.post_data)) if r.post_data else None))
    page.on("requestfailed", lambda r: aborted.append(r.url))

    # The page forbids eval, so Playwright's own waiting does not work in it.
    def until(condition, seconds=10):
        end = time.time() + seconds
        while not page.evaluate(f"!!({condition})"):
            if time.time() > end: sys.exit(f"chat page: waited in vain for {condition}")
            page.wait_for_timeout(20)

    # Without a key the page loads and asks for one; everything comes from this server.
    page.goto(base + "/")
    until("document.getElementById('info').textContent.includes('API key')")
    check("settings open for the key", page.evaluate("document.getElementById('settings').open"))
    page.fill("#key", key)
    page.press("#key", "Tab")
    until("document.getElementById('info').textContent.includes('context')")
    errors.clear()  # the browser logs the 401 that was wanted
    check("the key stays in the tab", page.evaluate("sessionStorage.getItem('key')") == key and page.evaluate("localStorage.length") == 0)

    # A message streams: the answer is seen growing, then the rate and the buttons are right.
    page.evaluate("""window.sizes = []; new MutationObserver(() => { const a = document.querySelector('.assistant'); if (a) sizes.push(a.textContent.length); })
                     .observe(document.getElementById('log'), {childList: true, subtree: true, characterData: true})""")
    page.fill("#max_tokens", "40")
    page.fill("#temperature", "0")
    page.fill("#system", "You are brief.")
    page.fill("#text", "Olga saves $23 every week for 13 weeks. How many dollars has she?")
    page.press("#text", "Enter")
    until("document.querySelector('.assistant')", 60)
    until("!document.getElementById('send').disabled", 60)
    sizes = page.evaluate("sizes")
    check("the answer grows in steps", len(set(sizes)) > 5 and sizes == sorted(sizes), sizes)
    check("tokens/s", "tokens/s" in page.inner_text("#rate"), page.inner_text("#rate"))
    body = bodies[-1]
    check("system prompt and settings are sent", body["messages"][0] == {"role": "system", "content": "You are brief."} and body["temperature"] == 0 and body["max_tokens"] == 40 and body["stream"] is True, body)
    first = page.inner_text(".assistant")

    # Stop ends the request; what came stays.
    page.fill("#max_tokens", "1500")
    page.fill("#temperature", "5")
    page.fill("#text", "Go on")
    page.click("#send")
    until("document.querySelectorAll('.assistant').length == 2 && document.querySelectorAll('.assistant')[1].textContent.length > 5", 60)
    check("stop can be pressed", page.is_enabled("#stop") and page.is_disabled("#send"))
    page.click("#stop")
    until("!document.getElementById('send').disabled", 5)
    for _ in range(50):  # the browser tells of it a little later than the page
        if aborted: break
        page.wait_for_timeout(100)
    check("the request was aborted", any("/v1/chat/completions" in u for u in aborted), aborted)
    check("an earlier answer is part of the conversation", [m["role"] for m in bodies[-1]["messages"]] == ["system", "user", "assistant", "user"] and bodies[-1]["messages"][2]["content"] == first, bodies[-1])

    # Markup is text; errors are shown.
    page.fill("#max_tokens", "2")
    page.fill("#text", "<img src=x onerror=\"document.title='broken'\">")
    page.press("#text", "Enter")
    until("document.querySelectorAll('.user').length == 3 && !document.getElementById('send').disabled", 60)
    check("markup is text", page.evaluate("document.querySelectorAll('#log img').length") == 0 and page.title() == "halfbyte")
    page.fill("#top_p", "7")
    page.fill("#text", "x")
    page.press("#text", "Enter")
    until("document.querySelector('.error')", 60)
    check("errors are shown", "top_p" in page.inner_text(".error"), page.inner_text(".error"))
    errors[:] = [e for e in errors if "400" not in e]

    page.click("#report summary")
    until("document.getElementById('report-text').textContent.includes('experts')", 10)
    page.click("#forget")
    check("a new conversation is empty", page.inner_text("#log") == "")
    page.fill("#top_p", "")
    page.fill("#system", "")
    page.fill("#text", "Hello")
    page.press("#text", "Enter")
    until("!document.getElementById('send').disabled", 60)
    check("and sends nothing old", [m["role"] for m in bodies[-1]["messages"]] == ["user"], bodies[-1])
    check("no error in the console", not errors, errors)
    check("nothing from elsewhere", hosts == {base.split("/")[2]}, hosts)
    browser.close()
print(f"chat page: {checks} checks passed")
