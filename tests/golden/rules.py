"""What today's answers must keep of the golden ones, and what has changed about them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from golden.record import Recording, Row

SAME = 1e-9
"""Values that differ by this part of themselves are equal."""
ROUNDING = 1e-12
"""And so are values that differ by this part of the largest value of the file."""
SAME_LIMIT = 1e-6
"""The same where there is no minimiser: the value depends on where the method stopped."""
WEAKER = 1e-6
"""A lower bound may lose this part of itself."""

Key = tuple[Any, ...]


def keyed(rows: list[Row]) -> dict[Key, Row]:
    """Return the rows by method, size and, in a trace, step."""
    return {(row["method"], row["s"], row.get("step")): row for row in rows}


def name_of(row: Row) -> str:
    step = f", step {row['step']}" if "step" in row else ""
    return f"{row['method']}, size {row['s']}{step}"


@dataclass
class Comparison:
    """The golden recording of a problem beside a new one."""

    golden: Recording
    new: Recording

    def __post_init__(self) -> None:
        self.before, self.after = keyed(self.golden["rows"]), keyed(self.new["rows"])
        self.largest = max(abs(row["value"]) for row in self.golden["rows"])

    # what the test asks

    def complaints(self) -> list[str]:
        """Return what is wrong with the new answers; each entry names the method and the size."""
        said = list(self._data_complaints())
        for key, old in self.before.items():
            new = self.after.get(key)
            if new is None:
                said.append(self._line(old, "golden has it, but it is not there any more"))
                continue
            said += [self._line(old, text) for text in self._rule(old)(old, new)]
        said += [
            self._line(new, f"is not in the golden file (new value {new['value']!r})")
            for key, new in self.after.items()
            if key not in self.before
        ]
        return said

    def _line(self, row: Row, text: str) -> str:
        return f"{self.golden['problem']}: {name_of(row)}: {text}"

    def _rule(self, row: Row) -> Callable[[Row, Row], Iterator[str]]:
        if row["method"] == "path":
            return self._search_complaints
        return self._certificate_complaints if row["method"] == "certificate" else self._strict

    def _data_complaints(self) -> Iterator[str]:
        for name, old in self.golden["data"].items():
            new = self.new["data"].get(name)
            if not _same_numbers(old, new):
                yield (
                    f"{self.golden['problem']}: the data are not those of the golden file: "
                    f"{name} was {old}, is {new}"
                )

    def _search_complaints(self, old: Row, new: Row) -> Iterator[str]:
        """Never worse; never other than what is proven, or than the same support had."""
        values = f"golden value {old['value']!r}, new value {new['value']!r}"
        slack = self._slack(old)
        if not new["value"] <= old["value"] + slack:
            yield f"worse: {values}"
        if new["value"] < old["value"] - slack:
            if self._is_proven(old):
                yield f"below the proven minimum: {values}"
            elif set(new["support"]) == set(old["support"]):
                yield f"the same support has another value: {values}"
        if len(new["support"]) > old["s"]:
            yield f"has {len(new['support'])} features: {values}"
        if old["status"] == "OPTIMAL" and new["status"] != "OPTIMAL":
            yield f"status was OPTIMAL, is {new['status']}: {values}"

    def _strict(self, old: Row, new: Row) -> Iterator[str]:
        """The same support at the same value; of ARHT's core routine also the same moves."""
        values = f"golden value {old['value']!r}, new value {new['value']!r}"
        if set(new["support"]) != set(old["support"]):
            yield f"golden support {old['support']}, new support {new['support']} ({values})"
        if not abs(new["value"] - old["value"]) <= self._slack(old):
            yield values
        if "core" in old["method"] and _moves(old) != _moves(new):
            yield f"golden note {old['note']!r}, new note {new['note']!r} ({values})"

    def _certificate_complaints(self, old: Row, new: Row) -> Iterator[str]:
        values = (
            f"golden bound {old['lower_bound']!r} of value {old['value']!r}, "
            f"new bound {new['lower_bound']!r} of value {new['value']!r}"
        )
        slack, margin = self._slack(old), max(old["margin"], new["margin"])
        if old["proven"] and not new["proven"]:
            yield f"was proven, is not ({new['status']}): {values}"
        if not new["lower_bound"] <= min(old["value"], new["value"]) + slack + margin:
            yield f"the bound is above a value that is attained: {values}"
        weakest = old["lower_bound"] - WEAKER * abs(old["lower_bound"]) - margin
        if old["status"] != "TIME_LIMIT" and not new["lower_bound"] >= weakest:
            yield f"the bound is weaker: {values}"
        best = self.before["path", old["s"], None]["support"] if old["proven"] else []
        must, must_not = set(new["proven_in"]), set(new["proven_out"])
        for feature in sorted(must & set(old["proven_out"])):
            yield f"feature {feature} was proven out, is proven in: {values}"
        for feature in sorted(must_not & set(old["proven_in"])):
            yield f"feature {feature} was proven in, is proven out: {values}"
        if old["proven"] and new["proven"]:
            for feature in sorted((must - set(best)) | (must_not & set(best))):
                side = "in" if feature in must else "out"
                yield f"feature {feature} is proven {side}, against the best support: {values}"

    def _slack(self, old: Row) -> float:
        part = SAME_LIMIT if old.get("status") == "NO_MINIMISER" else ROUNDING
        return SAME * abs(old["value"]) + part * self.largest

    def _is_proven(self, old: Row) -> bool:
        certificate = self.before.get(("certificate", old["s"], None), {})
        return old["status"] == "OPTIMAL" or certificate.get("proven", False)

    # what the person who rewrites the files is told

    def kind_of_change(self, key: Key) -> str:
        """Return what happened to a row in a few words, "" if nothing but rounding."""
        old, new = self.before.get(key), self.after.get(key)
        if old is None or new is None:
            return "new row" if old is None else "row gone"
        slack = self._slack(old)
        if abs(new["value"] - old["value"]) > slack:
            return "better" if new["value"] < old["value"] else "worse"
        if set(old.get("support", ())) != set(new.get("support", ())):
            return "other support at equal value"
        if abs(new.get("lower_bound", 0.0) - old.get("lower_bound", 0.0)) > slack:
            return "higher bound" if new["lower_bound"] > old["lower_bound"] else "lower bound"
        words = [name for name in old if old[name] != new.get(name) and name in WORDS]
        return f"other {words[0]}" if words else ""

    def changes(self) -> dict[Key, str]:
        """Return what changed, by row."""
        keys = [*self.before, *(key for key in self.after if key not in self.before)]
        return {key: kind for key in keys if (kind := self.kind_of_change(key))}

    def updated(self) -> Recording:
        """Return the new recording, where rows that differ by rounding keep their golden digits."""
        changed = self.changes()
        rows = [new if key in changed else self.before[key] for key, new in self.after.items()]
        data = self.new if list(self._data_complaints()) else self.golden
        return {**self.new, "data": data["data"], "rows": rows}


WORDS = ("status", "note", "proven", "proven_in", "proven_out")


def _moves(row: Row) -> list[str]:
    """Return the words of a note; the order in which features enter and leave has no meaning."""
    return sorted(row["note"].split())


def _same_numbers(old: Any, new: Any) -> bool:
    if isinstance(old, list):
        same_length = isinstance(new, list) and len(old) == len(new)
        return same_length and all(map(_same_numbers, old, new))
    return new is not None and abs(old - new) <= SAME * (1 + abs(old))
