"""Small hand-made files in every form in which the data sets are published."""

import bz2
import gzip
import io
import lzma
import tarfile
import zipfile
from dataclasses import replace

import numpy as np
import pandas as pd
from sklearn.datasets import dump_svmlight_file

ROWS = 12


def shrunk(entry, rows=ROWS, address=None):
    """The entry as if its files had `rows` rows (census: half of them in each part).

    With an `address`, every download is from there, under the name of its file.
    """

    def part(old, parts):
        downloads = tuple(
            replace(d, sha256="", url=f"{address}/{d.file}" if address else d.url)
            for d in old.downloads
        )
        return replace(old, rows=rows // parts, log_mean=None, downloads=downloads)

    def sources(old):
        return tuple(tuple(part(p, len(source)) for p in source) for source in old)

    start, stop = entry.paper_rows
    return replace(
        entry,
        sources=sources(entry.sources),
        samples=sources(entry.samples),
        paper_rows=(start, stop and rows // 2),
    )


def sample_frame(entry, rows=ROWS, seed=0):
    """Made-up rows: features, then `target` as the originals code it."""
    rng = np.random.default_rng(seed)
    words = ["?", "NA", "Not in universe", "Yes (all)", "Born- abroad"]
    columns = {
        name: rng.choice(words, rows)
        if name in entry.categorical
        else rng.integers(-9, 99, rows) / 4.0
        for name in entry.features
    }
    if entry.positives:
        target = np.resize(["A", "M", "N", "O", "Z"], rows)
    elif entry.task == "binary":
        target = np.resize([1, -1, -1] if entry.name == "ijcnn1" else [1, 0, 0], rows)
    else:
        target = rng.normal(size=rows)
    return pd.DataFrame({**columns, "target": target})


def original(frame, part):
    """The bytes of a frame in the format of a part."""
    if part.format == "parquet":
        stream = io.BytesIO()
        frame.assign(patientId=7).to_parquet(stream)
        return stream.getvalue()
    if part.format == "csv":
        return frame.to_csv(index=False).encode()
    if part.format == "libsvm":
        stream = io.BytesIO()
        X = frame[list(part.columns)].to_numpy()
        dump_svmlight_file(X, frame["target"], stream, zero_based=False)
        return stream.getvalue()
    whole = frame.assign(block_id=1, example_id=2, patientId=3)[list(part.columns)]
    if part.labels:
        words = {number: word for word, number in part.labels.items()}
        whole["target"] = whole["target"].map(words)
    if part.format == "arff":
        return arff(whole)
    separator = {r"\s+": "\t", ",": ", " if part.labels else ","}[part.separator]
    lines = [separator.join(map(str, row)) for row in whole.itertuples(index=False)]
    if part.header:
        lines.insert(0, separator.join(whole.columns))
    return "".join(f"{line}\n" for line in lines).encode()


def arff(frame):
    lines = ["% made up", "@relation small", ""]
    for name, column in frame.items():
        if pd.api.types.is_numeric_dtype(column):
            kind = "real"
        else:
            kind = "{" + ",".join(sorted(set(column))) + "}"
        lines.append(f"@attribute {name} {kind}")
    lines += ["", "@data"]
    lines += [",".join(map(str, row)) for row in frame.itertuples(index=False)]
    return "\n".join(lines).encode() + b"\n"


def zipped(files):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("about/", "")
        archive.writestr("about/Index", "words")
        for name, content in files.items():
            archive.writestr(name, content)
    return stream.getvalue()


def tarred(files):
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as archive:
        for name, content in {"folder/README": b"words", **files}.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return stream.getvalue()


PACKERS = {
    "": lambda name, content: content,
    ".gz": lambda name, content: gzip.compress(content),
    ".bz2": lambda name, content: bz2.compress(content),
    ".xz": lambda name, content: lzma.compress(content),
    ".zip": lambda name, content: zipped({f"deep/{name}": content}),
}


def published(file, files):
    """The bytes of a published file that holds the named contents."""
    (name, content), *_ = files.items()
    if file == "census+income+kdd.zip":
        return zipped({"census.tar.gz": tarred(files)})
    if file.endswith((".tgz", ".tar.gz")):
        return tarred({f"folder/{name}": content})
    if file.endswith(".zip") and not file.startswith(name):  # a zip in a zip, as UCI has some
        return zipped({f"{name}.zip": zipped({name: content})})
    suffix = file.removeprefix(name)
    return PACKERS[suffix](name, content)
