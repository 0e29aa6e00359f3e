"""Opens the pages of report_write_pages in Debian's Chromium: browser.py FOLDER. Pictures go to FOLDER/shots.

No page may load anything or write to the console. Every control has to change what it says that it changes. axe may
find nothing serious. Skipped (77) without playwright, axe or chromium.
"""
import os
import shutil
import sys
from pathlib import Path

try:
    from axe_playwright_python.sync_playwright import Axe
    from playwright.sync_api import sync_playwright
except ImportError as missing:
    print(f"skipped: {missing} (pip install playwright axe-playwright-python)")
    sys.exit(77)
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
if not CHROMIUM:
    print("skipped: chromium is not there (apt-get install chromium)")
    sys.exit(77)

WIDTHS = {1440: 900, 768: 1024, 390: 844}
PAGES = ("comparison", "named", "one_image", "one_codec", "all_failed", "empty", "evidence_pass", "evidence_fail",
         "evidence_empty")
faults = []


def want(good, what):
    if not good:
        faults.append(what)
        print(f"FAULT: {what}")


class Visit:
    """A page that is open, and all that it asked for or complained of."""

    def __init__(self, browser, path, **options):
        self.name = path.stem
        self.context = browser.new_context(**options)
        self.page = self.context.new_page()
        self.page.on("console", self.wrote)
        self.page.on("pageerror", lambda error: want(False, f"{self.name}: {error}"))
        self.page.on("request", self.asked)
        self.address = path.as_uri()
        self.page.goto(self.address, wait_until="load")
        if self.page.locator("#viewer").count():
            self.page.wait_for_selector("#viewer[data-view]", timeout=120000)

    def wrote(self, message):
        if "Multiple readback operations" not in message.text:  # of this test's own pixels()
            want(False, f"{self.name}: console: {message.text}")

    def asked(self, request):
        want(request.url.startswith("data:") or request.url == self.address, f"{self.name} asks for {request.url}")

    def __enter__(self):
        return self.page

    def __exit__(self, *_):
        self.context.close()


def check_axe(page, what):
    for violation in Axe().run(page).response["violations"]:
        if violation["impact"] in ("serious", "critical"):
            nodes = "; ".join(node["html"][:160] for node in violation["nodes"][:3])
            want(False, f"{what}: axe: {violation['id']} ({violation['impact']}): {nodes}")


def column(page, table, number):
    values = "(rows, n) => rows.map((row) => row.cells[n].dataset.v || row.cells[n].textContent)"
    return page.eval_on_selector_all(f"#{table} tbody tr:not([hidden])", values, number)


def check_tables(page):
    head = page.locator("#image-table thead th", has_text="Raw bytes")
    number = head.evaluate("(cell) => cell.cellIndex")
    before = column(page, "image-table", 0)
    head.locator("button").focus()
    page.keyboard.press("Enter")
    values = [int(value.replace(",", "")) for value in column(page, "image-table", number)]
    want(values == sorted(values) and head.get_attribute("aria-sort") == "ascending", "a column is sorted by Enter")
    page.keyboard.press("Space")
    values = [int(value.replace(",", "")) for value in column(page, "image-table", number)]
    want(values == sorted(values, reverse=True), "the column is sorted downwards by Space")
    want(head.get_attribute("aria-sort") == "descending", "aria-sort says descending")
    want(page.locator("#image-table th[aria-sort=descending], #image-table th[aria-sort=ascending]").count() == 1,
         "one column is sorted")
    want("Raw bytes" in page.locator("#said").text_content(), "sorting is said")
    webp = page.locator("#image-table thead th", has_text="WebP")
    webp.locator("button").click()
    cells = column(page, "image-table", webp.evaluate("(cell) => cell.cellIndex"))
    want(cells[0] != "\u2013" and cells[-1] == "\u2013", "rows without a value stand last")
    page.locator("#image-table thead th button").first.click()
    want(column(page, "image-table", 0) == before, "sorting by number gives the first order")
    filters = page.locator(".filters[data-table=image-table]")
    filters.locator("select").select_option("MR")
    want(set(column(page, "image-table", 1)) == {"MR"}, "the modality filter leaves MR")
    few = len(column(page, "image-table", 1))
    want(filters.locator("output").text_content() == f"{few} of 40 rows", "the filter says how many rows")
    filters.locator("select").select_option("")
    filters.locator("input").fill("mg same file")
    want(set(column(page, "image-table", 1)) == {"MG"}, "words filter")
    filters.locator("input").fill("no such words")
    want(column(page, "image-table", 1) == [], "words that no row has leave none")
    filters.locator("input").fill("")
    want(len(column(page, "image-table", 1)) == 40, "an empty filter shows all")


def check_legend(page):
    button = page.locator("#lossy .legend button").first
    name = button.get_attribute("data-series")
    groups = page.locator(f"#lossy g[data-series='{name}']")
    want(groups.count() >= 12, "the series is in all plots")
    want(groups.first.is_visible(), "a series is shown at first")
    button.click()
    gone = not groups.first.is_visible() and not groups.last.is_visible()
    want(button.get_attribute("aria-pressed") == "false" and gone,
         "a legend's button hides its series in all plots")
    button.press("Enter")
    want(groups.first.is_visible(), "it shows the series again")
    looks = page.eval_on_selector_all("#lossless .plots.shared .legend button[data-series]:not([data-series='Pareto front'])",
                                      "(all) => all.map((b) => b.querySelector('[class*=mark]').getAttribute('fill'))")
    want(len(looks) >= 10 and len(set(looks)) == len(looks), f"a colour stands for two codecs: {looks}")
    tessera = page.locator("#lossless g[data-series=Tessera]")  # two speeds, two distributions
    for legends, hidden in ((".plots.shared .legend", [0, 1]), ("figure .legend", [2])):
        button = page.locator(f"#lossless {legends} button[data-series=Tessera]").first
        button.click()
        shown = [tessera.nth(n).is_visible() for n in range(tessera.count())]
        want(shown == [n not in hidden for n in range(4)], f"a legend hides its own plots' series alone: {shown}")
        button.click()


def check_theme(page):
    def colour():
        return page.evaluate("getComputedStyle(document.body).backgroundColor")

    before, button = colour(), page.locator("#theme")
    pressed = button.get_attribute("aria-pressed")
    button.click()
    want(colour() != before and button.get_attribute("aria-pressed") != pressed, "the theme's button changes colours")
    button.click()
    want(colour() == before, "and changes them back")


def pixels(page, pane):
    """A pane's pixels as one number."""
    return page.evaluate("""(n) => { const c = document.querySelectorAll('.panes canvas')[n];
        const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;
        let sum = 0; for (let i = 0; i < d.length; i++) sum = (sum * 31 + d[i]) >>> 0; return sum; }""", pane)


def settle(page):
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")


def slide(page, label, value):
    page.get_by_label(label, exact=True).evaluate(
        "(input, value) => { input.value = value; input.dispatchEvent(new Event('input', {bubbles: true})); }", value)
    settle(page)


def check_views(page):
    page.locator("#viewer").scroll_into_view_if_needed()
    viewer, canvas = page.locator("#viewer"), page.locator(".panes canvas").first
    first = [pixels(page, n) for n in range(3)]
    want(len(set(first)) == 3, "three panes, three pictures")
    slide(page, "Level", "5000")
    want(pixels(page, 0) != first[0] and pixels(page, 1) != first[1], "the level changes both pictures")
    slide(page, "Width", "300")
    narrow = pixels(page, 0)
    page.get_by_role("button", name="Reset window").click()
    settle(page)
    want([pixels(page, n) for n in range(3)] == first and narrow != first[0],
         "the window's reset gives the first pictures")
    slide(page, "Amplify", "32")
    want(pixels(page, 2) != first[2], "amplifying changes the difference")
    page.get_by_role("button", name="Zoom in").click()
    want(viewer.get_attribute("data-zoom") == "2" and pixels(page, 0) != first[0], "the button zooms")
    canvas.click()
    page.keyboard.press("+")
    want(viewer.get_attribute("data-zoom") == "4", "a key zooms")
    centre = viewer.get_attribute("data-centre")
    page.keyboard.press("ArrowRight")
    want(viewer.get_attribute("data-centre") != centre, "an arrow key moves")
    page.mouse.wheel(0, -100)
    page.wait_for_selector("#viewer[data-zoom='8']", timeout=60000)
    box, centre = canvas.bounding_box(), viewer.get_attribute("data-centre")
    page.mouse.move(box["x"] + 50, box["y"] + 50)
    page.mouse.down()
    page.mouse.move(box["x"] + 100, box["y"] + 90)
    page.mouse.up()
    want(viewer.get_attribute("data-centre") != centre, "dragging moves")
    page.keyboard.press("0")
    want(viewer.get_attribute("data-zoom") == "1", "0 shows the whole")
    page.get_by_label("against", exact=True).select_option("1")
    settle(page)
    half = pixels(page, 1)
    slide(page, "Share of the picture that shows the first codec, in percent", "10")
    want(pixels(page, 1) != half, "the slider between two codecs moves their edge")
    page.mouse.move(box["x"] + 30, box["y"] + 30)
    probe = page.locator(".probe").text_content()
    want("original" in probe and "Tessera lossy" in probe, f"values under the pointer: {probe}")
    want("Crop of 192 \u00d7 160 of 2048 \u00d7 2500" in viewer.text_content(), "the crop is said")


def check_samples(page):
    """Samples come back from the PNG as they went in: the gradient's corner, in each kind of picture."""
    for index, low in (("0", 0), ("1", -32768), ("2", 0)):
        page.get_by_label("View", exact=True).select_option(index)
        page.wait_for_selector(f"#viewer[data-view='{index}']")
        canvas = page.locator(".panes canvas").first
        canvas.hover(position={"x": 1, "y": 1})
        text = page.locator(".probe").text_content()
        samples = text.split("original ")[1].split(" (")[0].split(", ")
        want(len(samples) == (3 if index == "2" else 1), f"view {index}: components: {text}")
        want(all(low <= int(sample) <= low + 400 for sample in samples), f"view {index}: samples: {text}")
    want(page.locator("#viewer .warning").is_visible(), "burned-in text is warned of")


def check_copy(page):
    button = page.locator("#lists .copy").first
    button.click()
    page.wait_for_function("() => /Copied/.test(document.querySelector('#lists .copy').textContent)", timeout=60000)
    copied = page.evaluate("navigator.clipboard.readText()")
    want("the <header> was cut off" in copied and "&" not in copied, f"what was copied: {copied!r}")


def check_layout(browser, folder, shots):
    for name in PAGES:
        for theme in ("light", "dark"):
            for width, height in WIDTHS.items():
                if theme == "dark" and name not in ("comparison", "evidence_fail") and width != 1440:
                    continue
                with Visit(browser, folder / f"{name}.html", viewport={"width": width, "height": height},
                           color_scheme=theme) as page:
                    over = page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
                    want(over <= 0, f"{name} at {width}: {over} pixels too wide")
                    if width == 1440 and name in ("comparison", "one_image", "one_codec"):
                        cut = page.eval_on_selector_all(".box", "(boxes) => boxes.filter((b) => b.scrollWidth > "
                                                        "b.clientWidth).map((b) => b.getAttribute('aria-label'))")
                        want(not cut, f"{name} at {width}: tables are cut: {cut}")
                    if width == 1440 or (width == 390 and theme == "light"):
                        check_axe(page, f"{name}, {theme}, {width}")
                    if name in ("comparison", "evidence_fail", "empty") or (width == 1440 and theme == "light"):
                        page.screenshot(path=shots / f"{name}_{theme}_{width}.png", full_page=True)
                    if width == 1440 and theme == "light":
                        page.pdf(path=shots / f"{name}.pdf", prefer_css_page_size=True)


def check_without_script(browser, folder):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto((folder / "comparison.html").as_uri())
    want(page.locator("#lossy svg path.mark").first.is_visible(), "plots are there without script")
    want(page.locator("#image-table tbody tr").count() == 40, "the table is there without script")
    want(not page.locator("#theme").is_visible(), "no dead button without script")
    want("The views need script" in page.locator("#viewer").text_content(), "views say that they need script")
    context.close()


def check_keyboard(page):
    page.keyboard.press("Tab")
    want(page.evaluate("document.activeElement.className") == "skip", "Tab first finds the skip link")
    page.keyboard.press("Enter")
    want(page.evaluate("document.activeElement.id") == "main", "the skip link goes to the content")


def main(folder):
    shots = folder / "shots"
    shots.mkdir(exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        options = {"viewport": {"width": 1440, "height": 900}, "color_scheme": "light",
                   "permissions": ["clipboard-read", "clipboard-write"]}
        with Visit(browser, folder / "comparison.html", **options) as page:
            for check in (check_keyboard, check_theme, check_legend, check_tables, check_views, check_samples,
                          check_copy):
                check(page)
        with Visit(browser, folder / "evidence_fail.html", **options) as page:
            page.locator(".filters select").select_option("FAILED")
            want(set(column(page, "file-table", 2)) <= {"FAILED", "FAILED, stored"} and column(page, "file-table", 2),
                 "evidence: the result filter")
        with Visit(browser, folder / "many_views.html", **options) as page:
            want(page.get_by_label("View", exact=True).locator("option").count() > 5, "many views: some are shown")
        check_without_script(browser, folder)
        check_layout(browser, folder, shots)
        browser.close()
    print(f"{len(faults)} faults; pictures in {shots}")
    return 1 if faults else 0


if __name__ == "__main__":
    os.environ.setdefault("PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD", "1")
    sys.exit(main(Path(sys.argv[1]).resolve()))
