"""The report in a real browser: Chromium without a window."""

import base64
import copy
import csv
import io
import shutil
import time
from importlib.resources import files

import numpy as np
import pytest
from sklearn.datasets import load_diabetes, load_iris

from cli_files import FORMULAS, NUMBERS, WORDS
from ellzero.cli.spreadsheet import csv_line
from ellzero.report import render, study
from report_data import HOSTILE, hostile_study

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--hide-scrollbars",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
)

STICKING_OUT = """[...document.querySelectorAll("main *, header *")]
    .filter(e => e.checkVisibility() && e.getBoundingClientRect().right > innerWidth + 1)
    .map(e => e.outerHTML)"""

WIDTHS = {"desktop": 1000, "phone": 360}


@pytest.fixture(scope="module")
def driver(tmp_path_factory):
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
    browser, chromedriver = shutil.which("chromium"), shutil.which("chromedriver")
    if not browser or not chromedriver:
        pytest.skip("chromium and chromedriver are not installed (Debian: chromium-driver)")
    options = webdriver.ChromeOptions()
    options.binary_location = browser
    for flag in [*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"]:
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    service = webdriver.ChromeService(executable_path=chromedriver)
    driver = webdriver.Chrome(options=options, service=service)
    yield driver
    driver.quit()


class Page:
    """A report that is open, and what a test asks of it."""

    def __init__(self, driver, folder):
        self.driver, self.folder = driver, folder

    def show(self, data, width=1000, dark=False, media=""):
        """Open the page of a study, as a screen of this width shows it."""
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.tell("Emulation.setEmulatedMedia", media=media, features=[scheme])
        size = {"width": width, "height": 800, "deviceScaleFactor": 1}
        self.tell("Emulation.setDeviceMetricsOverride", mobile=width < 600, **size)
        file = self.folder / "report.html"
        file.write_text(render(data), encoding="utf-8")
        self.driver.get(file.as_uri())
        return self

    def tell(self, command, **parameters):
        return self.driver.execute_cdp_cmd(command, parameters)

    def ask(self, script, *arguments):
        return self.driver.execute_script(f"return {script}", *arguments)

    def find(self, selector):
        return self.driver.find_element("css selector", selector)

    def all(self, selector):
        return self.driver.find_elements("css selector", selector)

    def text(self, selector):
        return self.find(selector).text

    def press(self, *keys):
        from selenium.webdriver import ActionChains
        from selenium.webdriver.common.keys import Keys

        named = [getattr(Keys, key, key) for key in keys]
        ActionChains(self.driver).send_keys(*named).perform()

    def features(self):
        return [name.text for name in self.all("#features tbody .feature")]

    def size(self):
        return int(self.text("#count b"))

    def lightness(self, what="backgroundColor"):
        color = self.ask(f"getComputedStyle(document.body).{what}")
        return sum(int(part) for part in color.removeprefix("rgb(").rstrip(")").split(",")) / 3

    def complaints(self):
        return [entry["message"] for entry in self.driver.get_log("browser")]

    def saved(self, button):
        """The rows of the file that a button saves."""
        self.tell("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(self.folder))
        self.find(button).click()
        for _ in range(100):
            saved = [file for file in self.folder.glob("*.csv") if file.stat().st_size]
            if saved:
                break
            time.sleep(0.05)
        text = saved[0].read_bytes().decode("utf-8-sig", "surrogatepass")
        return saved[0].name, list(csv.reader(io.StringIO(text, newline="")))


@pytest.fixture
def page(driver, tmp_path):
    page = Page(driver, tmp_path)
    yield page
    assert page.complaints() == []


@pytest.fixture(scope="module")
def diabetes():
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    return study(X, y, sizes=range(1, 7), methods=("auto", "lasso"), cv=3, title="Diabetes")


@pytest.fixture(scope="module")
def hostile():
    return hostile_study()


@pytest.fixture(scope="module")
def iris():
    data = load_iris(as_frame=True)
    y = data.target_names[data.target]
    return study(data.data, y, sizes=[1, 3], task="classification", forced=["sepal width (cm)"])


@pytest.fixture(scope="module")
def wide():
    X = np.random.default_rng(0).standard_normal((60, 5000))
    y = X[:, :6].sum(axis=1)
    return study(X, y, sizes=range(1, 9), methods=["omp"], title="Wide")


def names(data, k):
    return {data["features"][str(row["feature"])]["name"] for row in data["models"][k]["chosen"]}


def test_opens_at_the_size_that_one_standard_error_picks(page, diabetes):
    page.show(diabetes)
    s = diabetes["cv"]["one_standard_error"]
    assert page.size() == s
    assert set(page.features()) == names(diabetes, s - 1)
    assert f"rule picks s = {s}" in page.text("#summary").replace("\xa0", " ")
    assert len(page.all("figure svg")) == 3
    assert page.ask("performance.getEntriesByType('resource').length") == 0


def test_slider_and_buttons_change_everything(page, diabetes):
    page.show(diabetes)
    page.find("#size").click()
    page.press("HOME")
    assert page.size() == 1
    assert page.text("#changes").startswith("Starts with")
    seen = [page.ask("document.getElementById('loss').innerHTML")]
    for k in range(1, 6):
        page.find("#more").click()
        assert page.size() == k + 1
        assert set(page.features()) == names(diabetes, k)
        moved = page.text("#changes")
        assert f"Compared with {k} feature" in moved
        assert all(name in moved for name in names(diabetes, k) ^ names(diabetes, k - 1))
        seen.append(page.ask("document.getElementById('loss').innerHTML"))
    assert len(set(seen)) == 6
    assert not page.find("#more").is_enabled()
    page.find("#fewer").click()
    assert page.size() == 5


def test_coefficients_are_those_of_the_study(page, diabetes):
    page.show(diabetes)
    row = page.find("#features tbody tr")
    name = row.find_element("css selector", ".feature").text
    entry = diabetes["models"][page.size() - 1]
    (own,) = [r for r in entry["chosen"] if diabetes["features"][str(r["feature"])]["name"] == name]
    shown = row.find_element("css selector", ".number").text.replace("−", "-").replace(",", "")
    assert float(shown) == pytest.approx(own["coefficients"][0], rel=1e-4)
    stand_in = diabetes["features"][str(own["stand_ins"][0]["feature"])]["name"]
    assert stand_in in row.find_element("css selector", ".stand-ins").text


def test_works_by_keyboard_alone(page, diabetes):
    page.show(diabetes)
    page.press("TAB", "TAB")
    assert page.ask("document.activeElement.id") == "size"
    assert page.ask("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    before = page.size()
    page.press("ARROW_RIGHT")
    assert page.size() == before + 1
    assert page.ask("document.activeElement.getAttribute('aria-valuetext')").startswith(
        str(before + 1)
    )
    page.press("END")
    assert page.size() == 6
    page.press("TAB")  # "more" is off at the end: on to the first of the sizes to consider
    assert page.ask("document.activeElement.parentElement.id") == "picks"
    page.press("ENTER")
    assert page.size() == diabetes["cv"]["one_standard_error"]
    while page.ask("document.activeElement.className") != "feature":
        page.press("TAB")
    page.press(" ")
    assert page.ask("document.activeElement.getAttribute('aria-pressed')") == "true"
    assert len(page.all("#paths g.path.main")) == 1


def test_a_click_into_a_chart_goes_there(page, diabetes):
    from selenium.webdriver import ActionChains

    page.show(diabetes)
    chart = page.find("#loss svg")
    page.ask("arguments[0].scrollIntoView({block: 'center'})", chart)
    ActionChains(page.driver).move_to_element_with_offset(
        chart, chart.size["width"] // 2 - 80, 0
    ).click().perform()
    assert page.size() == 6


def test_everything_has_a_name_for_who_does_not_see_it(page, diabetes):
    page.show(diabetes)
    nodes = page.tell("Accessibility.getFullAXTree")["nodes"]
    kinds = {"button", "slider", "image", "group", "table", "region"}
    for node in nodes:
        if node.get("role", {}).get("value") in kinds and not node["ignored"]:
            assert node["name"]["value"], node


@pytest.mark.parametrize("width", WIDTHS.values(), ids=WIDTHS)
@pytest.mark.parametrize("data", ["diabetes", "hostile", "iris", "wide"])
def test_nothing_sticks_out(page, data, width, request):
    page.show(request.getfixturevalue(data), width)
    page.find("#size").click()
    for key in ("HOME", "END"):
        page.press(key)
        assert page.ask("document.documentElement.scrollWidth") <= width
        assert page.ask(STICKING_OUT) == []


def test_dark_where_the_reader_likes_it_dark(page, diabetes):
    assert page.show(diabetes, dark=False).lightness() > 230
    assert page.show(diabetes, dark=True).lightness() < 60


def test_printed_on_white_without_what_can_only_be_clicked(page, diabetes):
    page.show(diabetes, dark=True, media="print")
    assert page.lightness() == 255
    assert page.lightness("color") < 60
    for selector in ("#size", "#more", "#save", "#picks"):
        assert not page.find(selector).is_displayed()
    assert page.find("#count").is_displayed()
    assert len(base64.b64decode(page.tell("Page.printToPDF")["data"])) > 10_000


def test_hostile_names_are_text(page, hostile):
    page.show(hostile)
    assert page.driver.title == hostile["title"]
    page.find("#size").click()
    for _ in hostile["sizes"]:
        page.press("ARROW_RIGHT")
    assert page.size() == 8
    shown = page.features()
    assert "</script><script>alert(1)</script>" in shown
    assert "<img src=x onerror=alert(2)>" in shown
    assert max(map(len, shown)) < 60
    assert not any("\u202e" in name for name in shown)
    assert page.all("img, b[onclick], iframe, object") == []
    assert len(page.all("script")) == 2


def test_policy_stops_what_gets_in_anyway(page, diabetes):
    page.show(diabetes)
    page.ask("""(() => {
        const script = document.createElement("script");
        script.textContent = "window.ran = true";
        document.body.append(script);
        const style = document.createElement("style");
        style.textContent = "body { display: none }";
        document.body.append(style);
    })()""")
    assert page.ask("window.ran") is None
    assert page.find("#count").is_displayed()
    assert len(page.complaints()) == 2


def test_the_table_is_saved(page, diabetes):
    name, (head, *rows) = page.show(diabetes).saved("#save")
    s = diabetes["cv"]["one_standard_error"]
    entry = diabetes["models"][s - 1]
    assert name == f"model-{s}-features.csv"
    assert head[:6] == ["s", "feature", "kind", "coefficient", "loss", "loss_without"]
    assert [row[2] for row in rows] == ["chosen"] * s + ["intercept"]
    for row, own in zip(rows, entry["chosen"], strict=False):
        assert row[1] == diabetes["features"][str(own["feature"])]["name"]
        assert float(row[3]) == own["coefficients"][0]  # numbers stay numbers, also below zero
        assert float(row[5]) == own["loss_without"]
        assert float(row[7]) == own["stand_ins"][0]["loss"]


def test_saved_names_are_no_formulas(page, hostile):
    _, (_, *rows) = page.show(hostile).saved("#save-all")
    cells = [row[1] for row in rows if row[0] == "8" and row[2] == "chosen"]
    chosen = {row["feature"] for row in hostile["models"][-1]["chosen"]}
    dangerous = {3, 6, 7}
    for j in sorted(chosen - {8}):  # half a surrogate pair has no place in a file
        assert ("'" if j in dangerous else "") + HOSTILE[j] in cells
    assert dangerous <= chosen


def test_saved_cells_follow_the_rules_of_predictions(driver):
    script = files("ellzero.report").joinpath("csv.js").read_text(encoding="utf-8")
    for text in FORMULAS + NUMBERS + WORDS:
        cell = driver.execute_script(f"{script}\nreturn cell(arguments[0]);", text)
        [[theirs]] = csv.reader(io.StringIO(cell, newline=""))
        [[ours, _]] = csv.reader(io.StringIO(csv_line([text, 0]), newline=""))
        assert theirs == ours


def test_coefficients_of_every_class(page, iris):
    page.show(iris)
    heads = [head.text for head in page.all("#features thead th")]
    assert heads[:4] == ["feature", *iris["classes"]]
    assert "(forced)" in page.text("#features")
    page.find("#more").click()
    assert page.size() == 3
    assert "Compared with 1 feature" in page.text("#changes")
    _, (head, *rows) = page.saved("#save")
    assert head[3:6] == [f"coefficient {c}" for c in iris["classes"]]
    assert [row[2] for row in rows] == ["chosen"] * 3 + ["forced", "intercept"]


def test_bounds_are_told_only_where_they_are_known(page, diabetes):
    bounded = copy.deepcopy(diabetes)
    for entry in bounded["models"]:
        entry["certified"] = False
    page.show(bounded)
    assert "best possible" not in page.text("#summary")
    assert "proven" not in page.text("#summary")
    assert page.all("#loss .band") == []
    for entry in bounded["models"]:
        entry["lower_bound"] = entry["loss"] * 0.98
    bounded["models"][0]["certified"] = True
    page.show(bounded)
    s = page.size()
    said = page.text("#summary").replace("\xa0", " ")
    assert f"within 2.00 % of the best possible {s}-feature model" in said
    assert len(page.all("#loss .band")) == 1
    page.find("#size").click()
    page.press("HOME")
    assert "proven best: no other feature gives a lower loss" in page.text("#summary")


def test_one_size_without_folds_makes_a_page(page, diabetes):
    one = copy.deepcopy(diabetes)
    one.update(cv=None, sizes=[3], models=[diabetes["models"][2]])
    one["losses"] = {method: [losses[2]] for method, losses in one["losses"].items()}
    page.show(one)
    assert page.size() == 3
    assert not page.find("#validation").is_displayed()
    assert not page.find("#fewer").is_enabled()


@pytest.mark.parametrize("y", ["constant", "exact"])
def test_extremes_make_a_page(page, y, rng):
    X = rng.standard_normal((30, 4))
    found = study(X, np.ones(30) if y == "constant" else X[:, 0] - 2 * X[:, 1], sizes=[1, 2, 3])
    page.show(found)
    page.find("#size").click()
    page.press("END")
    assert page.size() == 3
    text = page.text("body")
    assert not any(word in text for word in ("NaN", "undefined", "Infinity", "∞", "×"))
    assert "±0 %" in text.replace("\xa0", " ")
    assert "NaN" not in page.ask("document.body.innerHTML")


@pytest.mark.parametrize(
    ("sizes", "words"),
    [
        ((7, 8), "An eighth would"),
        ((12, 13), "A 13th would"),
        ((21, 22), "A 22nd would"),
        ((3, 9), "Going to 9 would"),
    ],
)
def test_next_size_in_words(page, diabetes, sizes, words):
    two = copy.deepcopy(diabetes)
    models = [{**model, "s": s} for model, s in zip(diabetes["models"], sizes, strict=False)]
    two.update(cv=None, criteria=None, sizes=sizes, models=models)
    two["losses"] = {method: losses[:2] for method, losses in two["losses"].items()}
    assert f"{words} lower the loss by" in page.show(two).text("#summary")
