"""Draws income.png, the first picture of the README, by the example that explains it.

Run it from anywhere: python docs/images/make_income.py
"""

from pathlib import Path

import matplotlib as mpl

mpl.use("agg")
import matplotlib.pyplot as plt

EXAMPLE = Path(__file__).parents[2] / "examples" / "plot_income.py"


def main() -> None:
    """Run the example up to its first figure, and save that."""
    code, _, _ = EXAMPLE.read_text(encoding="utf-8").partition("plt.show()")
    exec(compile(code, EXAMPLE, "exec"), {})
    plt.gcf().savefig(Path(__file__).with_name("income.png"), dpi=140)


if __name__ == "__main__":
    main()
