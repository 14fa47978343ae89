"""What is known of the paper's eight data sets: files, sources, checks, and what is not known.

Checks. A sha256 is recorded where one is published. The other sources publish none, and none
could be taken when this was written; for them the registry has the number of rows and, where a
complete copy of the data was at hand (all but slice and year), the mean of log(1 + |value|) over
all numbers, which holds for every format of the same data. Packed files carry checksums of their
own (gzip, bzip2 and zip all do), which reading them to the end verifies.

The paper's rows. Four of its row counts (kddcup04_bio, cal_housing, census, comp-activ-harder)
are one less than the files have; the files have no header, so their first line was taken for one.
Those are the counts that `Entry.paper_rows` reproduces.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Task = Literal["regression", "binary"]
Format = Literal["parquet", "csv", "text", "arff", "libsvm"]


@dataclass(frozen=True)
class Download:
    """A public address, and the name of the file in the data folder."""

    url: str
    file: str
    sha256: str = ""


@dataclass(frozen=True)
class Part:
    """One file of numbers and words, by its name when unpacked.

    `columns` are the names of its columns in their order, where the format does not carry them
    or carries others. `labels` translate a target that is written in words.
    """

    name: str
    format: Format
    rows: int
    log_mean: float | None = None
    columns: tuple[str, ...] = ()
    separator: str = ","
    header: bool = False
    labels: Mapping[str, float] = field(default_factory=dict)
    downloads: tuple[Download, ...] = ()
    openml: int = 0  # the id under which scikit-learn can fetch it

    @property
    def files(self) -> tuple[str, ...]:
        """The names it may have in a data folder."""
        packed = () if self.format == "parquet" else (".gz", ".bz2", ".xz", ".zip")
        own = [self.name, *(self.name + suffix for suffix in packed)]
        return tuple(dict.fromkeys(own + [download.file for download in self.downloads]))


Source = tuple[Part, ...]  # read one below the other


@dataclass(frozen=True)
class Entry:
    """A data set: its features, its target, and the sources that have it, the first choice first.

    `positives` names binary targets by the labels that count as 1, the default first; it is empty
    where the target is a number (for a binary task, a positive one is a 1).
    """

    name: str
    task: Task
    about: str
    features: tuple[str, ...]
    sources: tuple[Source, ...]
    samples: tuple[Source, ...] = ()
    categorical: frozenset[str] = frozenset()
    positives: Mapping[str, str] = field(default_factory=dict)
    paper_rows: tuple[int, int | None] = (0, None)  # from, up to
    paper_shape: tuple[int, int] = (0, 0)
    unknown: str = ""


UCI = "https://archive.ics.uci.edu"
LIBSVM = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets"
FIRST_LINE_TAKEN_FOR_A_HEADER = (1, None)


def _tables(name: str, rows: int, log_mean: float | None = None) -> tuple[Source, ...]:
    """The forms all sets share: named columns, the target last and called `target`."""
    return (
        (Part(f"{name}.parquet", "parquet", rows, log_mean),),
        (Part(f"{name}.csv", "csv", rows, log_mean, header=True),),
    )


def _numbered(prefix: str, start: int, stop: int) -> tuple[str, ...]:
    return tuple(f"{prefix}{k}" for k in range(start, stop))


def _kddcup04_bio() -> Entry:
    features, rows, log_mean = _numbered("f", 1, 75), 145_751, 2.4336790809
    bio_train = Part(
        "bio_train.dat",
        "text",
        rows,
        log_mean,
        columns=("block_id", "example_id", "target", *features),
        separator=r"\s+",
        downloads=(
            Download(
                "https://kdd.org/cupfiles/KDDCupData/2004/data_kddcup04.tar.gz",
                "data_kddcup04.tar.gz",
            ),
        ),
    )
    return Entry(
        "kddcup04_bio",
        "binary",
        "KDD Cup 2004, protein homology (train part): is the protein homologous to the query of "
        "its block? block_id and example_id name rows and are no features.",
        features,
        (*_tables("kddcup04_bio", rows, log_mean), (bio_train,)),
        paper_rows=FIRST_LINE_TAKEN_FOR_A_HEADER,
        paper_shape=(145_750, 74),
    )


def _cal_housing() -> Entry:
    features = (
        "longitude",
        "latitude",
        "housing_median_age",
        "total_rooms",
        "total_bedrooms",
        "population",
        "households",
        "median_income",
    )
    rows, log_mean = 20_640, 5.7732889068
    torgo = Part(
        "cal_housing.data",
        "text",
        rows,
        log_mean,
        columns=(*features, "target"),
        downloads=(
            Download(
                "https://ndownloader.figshare.com/files/5976036",
                "cal_housing.tgz",
                "aaa5c9a6afe2225cc2aed2723682ae403280c4a3695a2ddda4ffb5d8215ea681",
            ),
        ),
    )
    libsvm = Part(
        "cadata",
        "libsvm",
        rows,
        log_mean,
        columns=(
            "median_income",
            "housing_median_age",
            "total_rooms",
            "total_bedrooms",
            "population",
            "households",
            "latitude",
            "longitude",
        ),
        downloads=(Download(f"{LIBSVM}/regression/cadata", "cadata"),),
    )
    return Entry(
        "cal_housing",
        "regression",
        "California housing (Pace and Barry 1997): the median house value, in dollars, of a "
        "block group.",
        features,
        (*_tables("cal_housing", rows, log_mean), (torgo,), (libsvm,)),
        paper_rows=FIRST_LINE_TAKEN_FOR_A_HEADER,
        paper_shape=(20_639, 8),
    )


CENSUS_NUMBERS = {
    "age",
    "industry_code",
    "occupation_code",
    "wage_per_hour",
    "capital_gains",
    "capital_losses",
    "dividends_from_stocks",
    "instance_weight",
    "num_persons_worked_for_employer",
    "own_business_or_self_employed",
    "veterans_benefits",
    "weeks_worked_in_year",
    "year",
}


def _census() -> Entry:
    features = (
        "age",
        "class_of_worker",
        "industry_code",
        "occupation_code",
        "education",
        "wage_per_hour",
        "enrolled_in_edu_inst_last_wk",
        "marital_status",
        "major_industry_code",
        "major_occupation_code",
        "race",
        "hispanic_origin",
        "sex",
        "member_of_labor_union",
        "reason_for_unemployment",
        "full_or_part_time_employment_stat",
        "capital_gains",
        "capital_losses",
        "dividends_from_stocks",
        "tax_filer_status",
        "region_of_previous_residence",
        "state_of_previous_residence",
        "detailed_household_and_family_stat",
        "detailed_household_summary_in_household",
        "instance_weight",
        "migration_code_change_in_msa",
        "migration_code_change_in_reg",
        "migration_code_move_within_reg",
        "live_in_this_house_1_year_ago",
        "migration_prev_res_in_sunbelt",
        "num_persons_worked_for_employer",
        "family_members_under_18",
        "country_of_birth_father",
        "country_of_birth_mother",
        "country_of_birth_self",
        "citizenship",
        "own_business_or_self_employed",
        "fill_inc_questionnaire_for_veterans_admin",
        "veterans_benefits",
        "weeks_worked_in_year",
        "year",
    )

    def part(name: str, rows: int, log_mean: float) -> Part:
        both = "census+income+kdd.zip"  # holds census.tar.gz, which holds both parts
        old = f"{UCI}/ml/machine-learning-databases/census-income-mld/{name}.gz"
        return Part(
            name,
            "text",
            rows,
            log_mean,
            columns=(*features, "target"),
            labels={"- 50000.": 0.0, "50000+.": 1.0},
            downloads=(
                Download(f"{UCI}/static/public/117/{both}", both),
                Download(old, f"{name}.gz"),
            ),
        )

    uci = (
        part("census-income.data", 199_523, 1.6644154182),
        part("census-income.test", 99_762, 1.6649589726),
    )
    return Entry(
        "census",
        "binary",
        "Census-Income (KDD), the train part above the test part: is the income above 50 000? "
        "13 numbers and 28 categorical columns, 8 of which have `?`. One-hot without columns for "
        "`?` gives the paper's 401 features, instance_weight among them, with every row kept.",
        features,
        (*_tables("census", 299_285, 1.6645966036), uci),
        categorical=frozenset(features) - CENSUS_NUMBERS,
        paper_rows=FIRST_LINE_TAKEN_FOR_A_HEADER,
        paper_shape=(299_284, 401),
    )


def _comp_activ_harder() -> Entry:
    features = (
        *("lread", "lwrite", "scall", "sread", "swrite", "fork"),
        *("exec", "rchar", "wchar", "runqsz", "freemem", "freeswap"),
    )
    rows, log_mean = 8_192, 5.4102170484
    libsvm = Part(
        "cpusmall",
        "libsvm",
        rows,
        log_mean,
        columns=features,
        downloads=(Download(f"{LIBSVM}/regression/cpusmall", "cpusmall"),),
    )
    columns = (*features, "target")
    openml = Part("cpu_small.arff", "arff", rows, log_mean, columns=columns, openml=227)
    return Entry(
        "comp-activ-harder",
        "regression",
        "Delve comp-activ, prototask cpuSmall: share of the time that the processor runs in user "
        "mode, from 12 measures of activity.",
        features,
        (*_tables("comp_activ_harder", rows, log_mean), (libsvm,), (openml,)),
        paper_rows=FIRST_LINE_TAKEN_FOR_A_HEADER,
        paper_shape=(8_191, 12),
    )


def _ijcnn1() -> Entry:
    features, rows, log_mean = _numbered("f", 1, 23), 49_990, 0.1237842301
    libsvm = Part(
        "ijcnn1",
        "libsvm",
        rows,
        log_mean,
        columns=features,
        downloads=(Download(f"{LIBSVM}/binary/ijcnn1.bz2", "ijcnn1.bz2"),),
    )
    return Entry(
        "ijcnn1",
        "binary",
        "IJCNN 2001 challenge as transformed for LIBSVM, train part: does the engine misfire?",
        features,
        (*_tables("ijcnn1", rows, log_mean), (libsvm,)),
        paper_rows=(0, 24_995),
        paper_shape=(24_995, 22),
        unknown="The paper has 24 995 rows, exactly half of the train part, and does not say which "
        'half. rows="paper" takes the first: the plainest choice, and the rows are a time series '
        "whose neighbours belong together.",
    )


def _letter() -> Entry:
    features = (
        *("x.box", "y.box", "width", "high", "onpix", "x.bar", "y.bar", "x2bar"),
        *("y2bar", "xybar", "x2ybr", "xy2br", "x.ege", "xegvy", "y.ege", "yegvx"),
    )
    rows, log_mean = 20_000, 1.8174331398
    uci = Part(
        "letter-recognition.data",
        "text",
        rows,
        log_mean,
        columns=("target", *features),
        downloads=(
            Download(f"{UCI}/static/public/59/letter+recognition.zip", "letter+recognition.zip"),
            Download(
                f"{UCI}/ml/machine-learning-databases/letter-recognition/letter-recognition.data",
                "letter-recognition.data",
            ),
        ),
    )
    arff = Part("letter.arff", "arff", rows, log_mean, columns=(*features, "target"), openml=6)
    return Entry(
        "letter",
        "binary",
        "UCI Letter Recognition: which letter an image shows, from 16 of its properties.",
        features,
        (*_tables("letter", rows, log_mean), (uci,), (arff,)),
        positives={"A-M": "ABCDEFGHIJKLM", "O": "O"},
        paper_shape=(20_000, 16),
        unknown="The paper calls the task binary and does not say which letters count as 1. Two "
        "binary versions are in use: A to M against N to Z, and O against the rest. The first is "
        'the default, for its classes are of equal size; target="O" gives the other.',
    )


def _slice() -> Entry:
    features = _numbered("value", 0, 384)
    columns = ("patientId", *features, "target")
    published = "relative+location+of+ct+slices+on+axial+axis.zip"
    uci = Part(
        "slice_localization_data.csv",
        "text",
        53_500,
        columns=columns,
        header=True,
        downloads=(
            Download(
                f"{UCI}/ml/machine-learning-databases/00206/slice_localization_data.zip",
                "slice_localization_data.zip",
            ),
            Download(f"{UCI}/static/public/206/{published}", published),
        ),
    )
    return Entry(
        "slice",
        "regression",
        "UCI Relative location of CT slices: where on the body's axis an image was taken. "
        "patientId names a group of rows and is no feature.",
        features,
        (*_tables("slice", 53_500), (uci,)),
        samples=((Part("slice_first682.parquet", "parquet", 682),),),
        paper_shape=(53_500, 384),
    )


def _year() -> Entry:
    features = (*_numbered("timbre_avg_", 1, 13), *_numbered("timbre_cov_", 1, 79))
    uci = Part(
        "YearPredictionMSD.txt",
        "text",
        515_345,
        columns=("target", *features),
        downloads=(
            Download(f"{UCI}/static/public/203/yearpredictionmsd.zip", "yearpredictionmsd.zip"),
            Download(
                f"{UCI}/ml/machine-learning-databases/00203/YearPredictionMSD.txt.zip",
                "YearPredictionMSD.txt.zip",
            ),
        ),
    )
    libsvm = Part(
        "YearPredictionMSD",
        "libsvm",
        463_715,
        columns=features,
        downloads=(
            Download(f"{LIBSVM}/regression/YearPredictionMSD.bz2", "YearPredictionMSD.bz2"),
        ),
    )
    return Entry(
        "year",
        "regression",
        "UCI YearPredictionMSD: the year of a song, from 90 numbers about its timbre. The paper's "
        "rows are the official train part, the first 463 715; LIBSVM's file has only those.",
        features,
        (*_tables("year", 515_345), (uci,), (libsvm,)),
        samples=((Part("year_sample10000.parquet", "parquet", 10_000),),),
        paper_rows=(0, 463_715),
        paper_shape=(463_715, 90),
    )


ENTRIES: dict[str, Entry] = {
    entry.name: entry
    for entry in (
        _kddcup04_bio(),
        _cal_housing(),
        _census(),
        _comp_activ_harder(),
        _ijcnn1(),
        _letter(),
        _slice(),
        _year(),
    )
}
NAMES: tuple[str, ...] = tuple(ENTRIES)
