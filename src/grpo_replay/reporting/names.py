"""The names of all tables and figures, read by Snakemake before every run and by the catalogues."""

TABLE_FORMATS = ("csv", "md", "tex", "html")
FIGURE_FORMATS = ("png", "svg", "pdf")
OWN_TABLES = ("main", "age", "training", "verifiers")
NUMBERED = tuple(f"table{number:02d}" for number in range(1, 14))
# Table 7 holds the paper's column itself.
COMPARED = tuple(f"{name}_comparison" for name in NUMBERED if name != "table07")
PUBLISHED_CHECK = "published_check"
PAPER_TABLES = (*NUMBERED, *COMPARED, PUBLISHED_CHECK)
TABLES = (*OWN_TABLES, *PAPER_TABLES)
FIGURES = (
    *("accuracy", "tau_max", "training", "clip", "figure2", "figure3", "pass_at_k"),
    *("accuracy_length", "method_tau_max", "gain", "learning", "replay_ages", "reuse", "drift"),
    *("log_ratio", "groups", "buffer", "completions", "seconds"),
)
