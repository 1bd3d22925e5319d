r"""Mathematical answers: the last box, the training reward, the evaluation grade.

Three verdicts on one completion (paper, section "Verifiers"):

- `training_reward`: exact string match after the Minerva clean-up, on the last box of the last
  500 characters;
- `grade`: what our tables count. The last complete box alone is judged: first by exact rules
  (`rules.py`), then by math-verify in a process that can be killed (`worker.py`), with its numeric
  tolerance made strict;
- `grade_paper`: the paper's evaluation, math-verify on the raw completion, kept as a column beside
  `grade`.

What `grade` decides, and where math-verify differs (mv):

- the whole answer is read (`reading.py`): where a part is not understood (`\ldots`, `3\aleph_0`,
  `12 \text{ (or 13)}`) the answer is wrong (mv compares a part of it, such as its last number);
  above 2,000 characters it is wrong, and `too long`; only the last 100,000 characters of a
  completion are searched for a box
- spellings (`spelling.py`): `\frac\pi4`, `\sqrt[3]2`, `\sqrt(2)`, `\mathrm{e}`, underline, colours,
  sizes, `\varnothing` are read as their usual forms; `, k \in \mathbb{Z}` behind a value is dropped
- box: the last complete one; a box that never closes is none; inside a nested box the inner content
  counts
- final punctuation, `\text{.}`, `$`, `\(`: ignored (mv on the raw text loses `3.`)
- lead-in `\text{The answer is }30`: only words that say nothing are dropped; `\text{not }30` is
  wrong
- several numbers: `30\text{ or }20`, `30\text{ minutes }20\text{ seconds}` are wrong where one
  number is asked for (mv takes one of them), also a value beside its rounding
- units, currency, `\text{...}` after a number: dropped, never converted; two different known units
  are wrong (mv: right); powers of a unit are not compared
- thousands: `10,000`, `10{,}000`, `10\,000`, `10 \, 000`, `10\;000`, `10\ 000`, `10 000` are 10000
  (mv knows commas alone); inside a list plain commas separate members
- unsimplified values: `2+3` is 5, `\frac24` is 1/2
- signs outside LaTeX (− ∞ × · ≤ ≥ ∪ ± √2) are read as LaTeX's
- leading zeros, `+5`, `6.72e-5`: plain numbers, compared exactly
- decimals: two decimals, or a decimal and an integer: exactly (mv: to 1e-6, so .0000672 equals
  .0000671); a decimal for a fraction or an irrational: six decimals and a relative 1e-5
- repeating decimals: `0.\overline{3}` is 1/3, `0.\overline{9}` is 1 (mv: unparsed)
- tiny differences: numbers that provably differ are different: 1/2^99 is not 1/2^98 (mv: right)
- percent: the sign may be left out or worked in: 50% is answered by 50 and 0.5, and 50 by 50%, not
  by 0.5
- mixed numbers: `1\frac45`, `1 4/5` are 9/5; 14/5 is not
- bases: 52_8: base may be left out or put in words (`52\text{ (base 8)}`), another base is wrong,
  42 is wrong; a gold without base takes the value (mv ignores the base)
- degrees: `90^\circ` is 90, neither pi/2 nor 90%
- plus-minus: `1 \pm a`, `\frac{1 \pm a}{2}` are lists of both values (all upper signs, all lower
  signs); one of them is wrong (mv: the second is unparsed)
- (a,b): order counts, also when one side is a bare list; against \{a,b\} wrong (mv: right)
- a,b and \{a,b\}: neither order nor repetition counts, braces may be left out
- intervals: kind of bracket counts; an inequality and its interval are equal either way (mv: gold
  inequality only); inequalities joined by "or" are the union, by "and" what both allow
- ratios and times (`forms.py`): part by part, as numbers: 1:2 is `1 : 2`, neither 2:4 nor 1/2; AM
  and PM count
- congruences: the same residues to the same modulus: x \equiv 3 \pmod 7 is 10 \pmod 7
- `\text{OR}` in capitals between equal values: any one of them
- assignment: `x=5` and 5 are equal; `y=5` for `x=5` is wrong; `5x-7y=0` needs the equation
- options: gold (C): `C`, `c`, `(C)`, `C.`, `(C) 5`, `\text{Option C}` are right; (C) beside another
  option is wrong; the option's content without its letter is wrong
- words: gold \text{Evelyn}, \text{June 20}: letter case and wrapper do not count, further words do
- letter case of symbols: ignored, as math-verify does
- out of CPU time: wrong, and `timed_out`
- whatever is raised, or ends the grading process (memory, a signal): wrong, with its `error`
Where the training reward differs from `grade`: it compares texts alone, as the paper does, so an
equal value in another form (0.5 for 1/2, members of a set in another order)
costs the reward but not the grade; it reads the last 500 characters, `grade` the last 100,000; it
drops degree signs and the usual unit words without asking whether two units agree, where `grade`
refuses 5 km for 5 cm. A gold must be right against itself under both (`check_gold`).
"""

from .boxes import last_boxed
from .grading import (
    Grade,
    Reward,
    check_gold,
    grade,
    grade_many,
    grade_paper,
    grade_paper_many,
    guarded_training_reward,
)
from .reward import training_reward

__all__ = [
    "Grade",
    "Reward",
    "check_gold",
    "grade",
    "grade_many",
    "grade_paper",
    "grade_paper_many",
    "guarded_training_reward",
    "last_boxed",
    "training_reward",
]
