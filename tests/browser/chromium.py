"""The system's Chromium without a window: a page's document, messages of its console, a print."""

from __future__ import annotations

import subprocess
from html import escape

# No network, no first-run pages, nothing kept from one run to the next.
OPTIONS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    *("--hide-scrollbars", "--enable-logging=stderr", "--v=0"),
)
# Seconds after which a browser that hangs is given up.
PATIENCE = 120
DARK = "--blink-settings=preferredColorScheme=0"
LIGHT = "--blink-settings=preferredColorScheme=1"


def run(folder, page, *options):
    """Open a page, a string, with options; its standard output and the lines of its console."""
    file = folder / "page.html"
    file.write_text(page, encoding="utf-8")
    profile = f"--user-data-dir={folder / 'profile'}"
    answer = subprocess.run(
        ["chromium", *OPTIONS, profile, *options, file.as_uri()],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=True,
    )
    console = [line for line in answer.stderr.splitlines() if ":CONSOLE" in line]
    return answer.stdout, console


# Asked of a page by a script that its own policy would not allow: a copy without it is asked.
PROBE = """<script>
const found = (element) => {
  const style = getComputedStyle(element);
  return [style.color, style.backgroundColor];
};
const wider = [...document.querySelectorAll("body *")].filter((element) => {
  const inside = element.closest(".scroll, svg");
  return !inside && element.getBoundingClientRect().right > innerWidth + 1;
});
const small = [...document.querySelectorAll("figure > svg text")].filter(
  (text) => text.getBoundingClientRect().height < 9
);
parent.document.body.dataset.probe = JSON.stringify({
  width: innerWidth,
  scrollWidth: document.documentElement.scrollWidth,
  wider: wider.map((element) => element.outerHTML.slice(0, 80)),
  small: small.length,
  body: found(document.body),
  answer: found(document.querySelector(".answer")),
  heights: [...document.querySelectorAll("section")].map((one) => one.offsetHeight),
  pictures: [...document.querySelectorAll("figure > svg")].map((one) => one.clientHeight),
});
</script>"""


def probed(page, width):
    """The page with the probe and without its policy, in a frame of this width.

    Windows cannot be as narrow as a phone; frames can.
    """
    policy = page.index('<meta http-equiv="Content-Security-Policy"')
    end = page.index(">", policy) + 1
    inside = (page[:policy] + page[end:]).replace("</body>", f"{PROBE}</body>")
    style = f"width: {width}px; height: 900px; border: 0"
    return (
        f'<!DOCTYPE html><body><iframe style="{style}" srcdoc="{escape(inside)}"></iframe></body>'
    )
