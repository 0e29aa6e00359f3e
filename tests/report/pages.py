"""Writes pages of generated results, and reads them back: pages.py PROGRAM FOLDER

Every tag is closed in its order, every id is used once, every link within a page has its end, no address of another
place is in it, and all that was put in came out.
"""
import html.parser
import re
import subprocess
import sys
from pathlib import Path

VOID = {"meta", "link", "br", "hr", "img", "input"}
PAGES = {"comparison", "named", "many_views", "one_image", "one_codec", "all_failed", "empty",
         "evidence_pass", "evidence_fail", "evidence_large", "evidence_all_failed", "evidence_empty"}
EVIL = ["a<b>c.dcm", "R&D.dcm", '"quoted".dcm', "it's.dcm", "two\u21b5lines.dcm",
        "</script><script>alert(1)</script>.dcm"]


class Page(html.parser.HTMLParser):
    """Fails at the first fault."""

    def __init__(self, name):
        super().__init__(convert_charrefs=True)
        self.name, self.open, self.ids, self.links, self.text, self.tags = name, [], set(), [], [], {}

    def fail(self, what):
        sys.exit(f"{self.name}: line {self.getpos()[0]}: {what}")

    def handle_starttag(self, tag, attributes, closed=False):
        self.tags[tag] = self.tags.get(tag, 0) + 1
        names = [name for name, _ in attributes]
        if len(set(names)) != len(names):
            self.fail(f"an attribute of <{tag}> stands twice: {names}")
        for name, value in attributes:
            if name == "id":
                if value in self.ids:
                    self.fail(f"the id {value} is used twice")
                self.ids.add(value)
            if name in ("src", "href"):
                if value.startswith("#"):
                    self.links.append(value[1:])
                elif not value.startswith("data:"):
                    self.fail(f"an address of another place: {value}")
            if name == "style" or name.startswith("on"):
                self.fail(f"an attribute {name}")
        if tag not in VOID and not closed:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes, closed=True)

    def handle_endtag(self, tag):
        if not self.open or self.open[-1] != tag:
            self.fail(f"</{tag}> where {self.open[-1:]} is open")
        self.open.pop()

    def handle_data(self, data):
        if self.open[-1:] not in (["script"], ["style"]):
            self.text.append(data)


def read(path):
    page = Page(path.name)
    source = path.read_text(encoding="utf-8")
    page.feed(source)
    page.close()
    if page.open:
        page.fail(f"never closed: {page.open}")
    for link in page.links:
        if link not in page.ids:
            page.fail(f"no section {link}")
    plain = re.sub(r"<script.*?</script>|<style.*?</style>", "", source, flags=re.S)
    for word in re.findall(r"\b(?:nan|inf|-nan)\b|\(null\)", plain):
        page.fail(f"the word {word}")
    for address in re.findall(r"https?://[^\s\"'<]+", source):
        page.fail(f"an address: {address}")
    return page, "".join(page.text)


def want(good, what):
    if not good:
        sys.exit(what)


def main(program, folder):
    folder.mkdir(exist_ok=True)
    for old in folder.glob("*.html"):
        old.unlink()
    print(subprocess.run([program, folder], check=True, capture_output=True, text=True).stdout, end="")
    found = {path.stem for path in folder.glob("*.html")}
    want(found == PAGES, f"pages: {sorted(found)}")
    pages = {name: read(folder / f"{name}.html") for name in sorted(PAGES)}
    for name in ("named", "evidence_pass"):
        for text in EVIL:
            want(text in pages[name][1], f"{name}: {text} is not in it")
    want("alert(1)" not in pages["comparison"][1], "comparison: a name in a page without names")
    want(re.search(r"\d+ of 27 views are left out", pages["many_views"][1]), "many_views: none is left out")
    want("40 images, 16 codecs and settings" in pages["comparison"][1], "comparison: its title")
    source = (folder / "comparison.html").read_text()
    answer = re.search(r'<dl class="answer">(.*?)</dl>', source, re.S)
    want(answer and answer[1].count("<strong>") >= 5 and source.index(answer[0]) < source.index('class="first"'),
         "comparison: the answer does not come first")
    want("Uncompressed" in pages["comparison"][1], "comparison: no bar of the uncompressed size")
    want('<dl class="answer">' not in (folder / "empty.html").read_text(), "empty: an answer about nothing")
    want(pages["comparison"][0].tags["tr"] > 80, "comparison: its tables")
    for name in ("large", "all_failed"):
        table = re.search(r"The table has ([\d,]+) of 1,000,000 names", pages[f"evidence_{name}"][1])
        want(table, f"evidence_{name}: says nothing of rows that it lacks")
        rows = int(table[1].replace(",", ""))
        want(1000 < rows < 20000 and f"{rows} rows" in pages[f"evidence_{name}"][1], f"evidence_{name}: {rows} rows")
        want(re.search(r"and [\d,]+ more; --json", pages[f"evidence_{name}"][1]), f"evidence_{name}: its lists")
    want("FAILED" in pages["evidence_large"][1], "evidence_large: its results")
    want(pages["evidence_pass"][1].lstrip().startswith("Tessera verify: PASS, 3 names were not taken"),
         "evidence_pass: its title")
    for name, word in (("pass", "PASS "), ("fail", "FAIL ")):
        source = (folder / f"evidence_{name}.html").read_text()
        want(re.search(rf"<h1[^>]*><strong>{word.strip()}</strong>", source), f"evidence_{name}: its first line")
    under = re.search(r"</h1>\n<ul class=\"reasons\">(.*?)</ul>",
                      (folder / "evidence_fail.html").read_text(), re.S)
    want(under and "byte 1234" in under[1] and "1,234,564 more" in under[1] and "12 more" in under[1],
         "evidence_fail: no reasons under the word")
    want("no. 17, no. 34, no. 51" in pages["evidence_fail"][1], "evidence_fail: files without names")
    for place in ("a <host>", "/a/<folder>", "/in/one, /in/two", "/out"):
        want(place in pages["evidence_pass"][1], f"evidence_pass: {place} is not in it")
    want("--identify shows them" in pages["evidence_empty"][1], "evidence_empty: no hint where names are missing")
    want("--identify shows them" not in pages["evidence_pass"][1], "evidence_pass: a hint, and no name is missing")
    want("crashed: signal 11" in pages["all_failed"][1], "all_failed: no reasons")
    print(f"{len(pages)} pages are whole")


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve())
