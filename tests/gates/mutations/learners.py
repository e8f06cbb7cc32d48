"""Ways to break each learner, and which tests must notice."""

from collections.abc import Mapping, Sequence

from tests.gates.mutations.mutation import Mutation, Selected

LEARNERS = "service/mistakebound/core/learners/"
LINEAR = "service/mistakebound/core/linear/linear.py"
THETA = "service/mistakebound/core/linear/theta.py"
TESTS = (
    "learners/test_textbook.py",
    "theorems/test_bounds.py",
    "learners/test_every_learner.py",
    "learners/test_linear_learners.py",
    "learners/test_figures.py",
)
"""In the order in which they run."""


def _sign(
    file: str, old: str = "1.0 if positive else -1.0", new: str = "-1.0 if positive else 1.0"
) -> Mutation:
    return Mutation("update with the other sign", file, old, new)


_LINEAR = {
    "sign": _sign(THETA),
    "sum": Mutation("score subtracts", THETA, "total += weights", "total -= weights"),
    "bias": Mutation(
        "forget BIAS in the score",
        THETA,
        "        for name, value in x:\n            total += weights",
        "        for name, value in tuple(x)[:-1]:\n            total += weights",
    ),
    "fold bias": Mutation(
        "forget BIAS in the update",
        THETA,
        "        for name, value in x:\n            row[name]",
        "        for name, value in tuple(x)[:-1]:\n            row[name]",
    ),
    "tie": Mutation("a score of 0 is positive", THETA, "return score > 0.0 or", "return score >= 0.0 or"),
    "missed": Mutation("no update at 0 on positives", THETA, "score <= 0.0 if", "score < 0.0 if"),
    "false alarm": Mutation("no update at 0 on negatives", THETA, "else score >= 0.0", "else score > 0.0"),
    "rows": Mutation("only the last partition counts", THETA, "total + value, True", "value, True"),
    "step": Mutation("every update is positive", LINEAR, "self._step(positive)", "self._step(True)"),
    "length": Mutation("length without squares", THETA, "square += value * value", "square += value"),
    "unseen": Mutation(
        "unseen features weigh 0", THETA, "weights.get(name, unseen)", "weights.get(name, 0.0)"
    ),
    "threshold": Mutation(
        "add the threshold", LINEAR, "dot(x) - self._threshold", "dot(x) + self._threshold"
    ),
    "overwrite": Mutation("an update replaces", THETA, "known(name, 0.0) + scale", "scale"),
    "memory": Mutation(
        "a score is remembered for good",
        LINEAR,
        "scored is not x or changes != self.changes",
        "scored is not x",
    ),
    "largest": Mutation("largest value without its size", THETA, "max((abs(value)", "max(((value)"),
}


def _linear(*names: str) -> tuple[Mutation, ...]:
    return tuple(_LINEAR[name] for name in names)


def _of(file: str, *replacements: tuple[str, str, str]) -> tuple[Mutation, ...]:
    return tuple(Mutation(what, LEARNERS + file, old, new) for what, old, new in replacements)


_AVERAGED = "averaged_perceptron.py"
_ELIMINATION = "elimination.py"
_SPACE = "version_space.py"

MUTATIONS: Mapping[str, Sequence[Mutation]] = {
    "perceptron": (
        *_linear(
            "sign",
            "sum",
            "bias",
            "fold bias",
            "tie",
            "missed",
            "false alarm",
            "rows",
            "length",
            "overwrite",
            "memory",
        ),
        *_of("perceptron.py", ("forget the rate", "scale=settings.learning_rate", "scale=1.0")),
    ),
    "perceptron of many classes": _of(
        "multiclass_perceptron.py",
        (
            "ties to the last class",
            "score.index(max(score))",
            "len(score) - 1 - score[::-1].index(max(score))",
        ),
        ("smallest score wins", "max(score))] if", "min(score))] if"),
        ("update when right", "1.0 if predicted != label", "1.0 if predicted == label"),
        ("subtract from both", "((label, amount)", "((label, -amount)"),
        ("forget the amount", "((label, amount)", "((label, 1.0)"),
        ("add to both", "(predicted, -amount)", "(predicted, amount)"),
        ("forget to subtract", ", (predicted, -amount))", ",)"),
        (
            "forget the rate",
            "saturate(self._rate * self._theta[one].dot(x))",
            "saturate(self._theta[one].dot(x))",
        ),
        ("one example fewer in the average", "float(clock + 1)", "float(clock)"),
        ("kappa without the clock", "sign * clock", "sign"),
        ("average adds kappa", "coordinate - kappa[name]", "coordinate + kappa[name]"),
        ("norm without squares", "value * value for theta", "value for theta"),
    ),
    "averaged-perceptron": (
        *_of(
            _AVERAGED,
            ("one example fewer", "float(clock + 1)", "float(clock)"),
            ("add kappa", "coordinate - kappa[name]", "coordinate + kappa[name]"),
            ("score without the values", "kappa[name]) * value", "kappa[name])"),
            ("forget the rate", "saturate(self._rate * total)", "saturate(total)"),
            ("other sign", "amount if positive else -amount", "-amount if positive else amount"),
            ("forget the amount", "amount if positive else -amount", "1.0 if positive else -1.0"),
            ("kappa without the clock", "sign * clock", "sign"),
            ("decide by the negative", "saturate(self._theta.dot(x))", "saturate(-self._theta.dot(x))"),
            ("update when right", "errs(score, positive,", "errs(score, not positive,"),
            ("predict the other class", "return predict(score", "return not predict(score"),
            ("forget BIAS in the average", "for name, value in x:", "for name, value in tuple(x)[:-1]:"),
            ("decide by the average", "saturate(self._theta.dot(x))", "self.score(x, 9)"),
        ),
    ),
    "voted-perceptron": _of(
        "voted_perceptron.py",
        ("forget the silent", "plain = self._silent.dot(x)", "plain = 0.0"),
        ("products without the other", "value * z.get(name, 0.0)", "value"),
        ("vectors without those before", "plain += voter.sign", "plain = voter.sign"),
        ("the last has a vote less", "(clock + 1 - newest.clock)", "(clock - newest.clock)"),
        ("a vote more for each", "(voter.clock - since)", "(voter.clock - since + 1)"),
        ("votes for the other class", "1.0 if predict(plain", "1.0 if not predict(plain"),
        ("all votes positive", "else -1.0, voter.clock", "else 1.0, voter.clock"),
        ("votes of another example", "counted[0] is not x or ", ""),
        ("votes of an older model", " or counted[1] is not newest", ""),
        ("other sign", "sign = 1.0 if positive else -1.0", "sign = -1.0 if positive else 1.0"),
        ("remember without the sign", "Mistake(sign, x", "Mistake(1.0, x"),
        ("the silent with the other sign", "gone.x, gone.sign", "gone.x, -gone.sign"),
        ("update when right", "errs(score, positive,", "errs(score, not positive,"),
    ),
    "margin-perceptron": (
        *_of(
            "margin_perceptron.py",
            ("update at the margin", ") < margin", ") <= margin"),
            ("update beyond the margin", ") < margin", ") > margin"),
            ("forget the label", "(score if positive else -score)", "score"),
            ("the label turned", "(score if positive else -score)", "(-score if positive else score)"),
            ("no margin", "margin = settings.margin", "margin = 1e-300"),
            ("twice the margin", "margin = settings.margin", "margin = 2 * settings.margin"),
            ("forget the rate", "scale=settings.learning_rate, ", ""),
            ("update at mistakes only", ", amount=amount", ""),
        ),
        *_linear("sign", "bias", "rows"),
    ),
    "normalized-margin-perceptron": (
        *_of(
            "normalized_margin_perceptron.py",
            ("the whole gamma", "or 0.0) / 2", "or 0.0)"),
            ("no update at 0", "norm == 0.0 or", "norm != 0.0 and"),
            ("update at the margin", "/ norm < half", "/ norm <= half"),
            ("update beyond the margin", "/ norm < half", "/ norm > half"),
            ("not divided by the norm", "/ norm < half", "< half"),
            (
                "the squared norm",
                "sqrt(fsum(value * value for value in learner.theta().values()))",
                "fsum(value * value for value in learner.theta().values())",
            ),
            ("a norm that stays", "if learner.changes not in known", "if len(known) != 1 or -1 in known"),
            ("the norm of sizes", "value * value for", "abs(value) for"),
            ("the label turned", "(score if positive else -score)", "(-score if positive else score)"),
            ("update at mistakes only", ", amount=amount", ""),
        ),
        *_linear("sign", "bias"),
    ),
    "one-sided-perceptron": (
        *_of(
            "one_sided_perceptron.py",
            ("0 is positive", '"mistake"', '"positive"'),
            ("0 is negative", '"mistake"', '"negative"'),
        ),
        *_linear("sign", "sum", "bias", "fold bias", "tie", "missed", "false alarm", "rows", "length"),
    ),
    "passive-aggressive": (
        *_of(
            "passive_aggressive.py",
            ("no update without a mistake", "if loss <= 0.0", "if loss < 1.0"),
            ("the label turned", "(score if positive else -score)", "(-score if positive else score)"),
            ("the sum for the square", "square += value * value", "square += value"),
            ("nothing holds PA-I back", 'min(most, tau) if variant == "PA-I"', 'tau if variant == "PA-I"'),
            ("C holds PA back, not PA-I", 'variant == "PA-I" else tau', 'variant == "PA" else tau'),
            ("twice the damping", "1.0 / (2.0 * most))", "1.0 / most)"),
            ("the other variant", 'variant == "PA-II"', 'variant == "PA"'),
            ("C is always 1", "settings.aggressiveness or 1.0", "1.0"),
        ),
        Mutation("all of it is added", LINEAR, "amount * self._step", "self._step"),
        *_linear("sign", "bias", "fold bias", "rows"),
    ),
    "kernel-perceptron": (
        *_of(
            "kernel_perceptron.py",
            ("homogeneous", "dot(x, z) + 1.0", "dot(x, z)"),
            ("a degree more", "base**degree", "base ** (degree + 1)"),
            ("products without the other", "total += value * z.get(name, 0.0)", "total += value"),
            ("far is near", "exp(-square", "exp(square"),
            ("distance adds", "(value - z.get", "(value + z.get"),
            ("forget what only z has", "if name not in named", "if name in named"),
            ("half the width", "/ 2.0 / width", "/ width"),
            ("forget the signs", "total += mistake.sign * saturate", "total += saturate"),
            ("other sign", "1.0 if positive else -1.0", "-1.0 if positive else 1.0"),
            ("update when right", "errs(score, positive,", "errs(score, not positive,"),
            ("forget the budget", "Mistakes(partitions, settings.budget)", "Mistakes(partitions, None)"),
            ("R squared for R", "return sqrt(max(0.0, saturate(", "return (max(0.0, saturate("),
        ),
    ),
    "winnow": (
        *_of(
            "winnow.py",
            ("all start at 1", "initial * exp(", "exp("),
            ("all start at 1 by default", "initial * expm1(", "expm1("),
            ("default weights from 0 up", "expm1(max", "exp(max"),
            ("the default is no threshold", "weight=centred", "weight=weight"),
            ("largest values by default", "length=mixed", "length=largest"),
            ("negative features are lengths", "return inf", "pass"),
            (
                "forget eta by default",
                "expm1(max(-EXPONENT_LIMIT, min(EXPONENT_LIMIT, eta * theta",
                "expm1(max(-EXPONENT_LIMIT, min(EXPONENT_LIMIT, theta",
            ),
            ("forget eta", "eta * theta", "theta"),
            ("the other exponent", "eta * theta", "-eta * theta"),
            ("forget the threshold", "threshold=settings.threshold or 0.0", "threshold=0.0"),
            ("a low limit", "EXPONENT_LIMIT = 700.0", "EXPONENT_LIMIT = 0.7"),
            ("Euclidean lengths", ", length=largest", ""),
        ),
        *_linear("unseen", "threshold", "sign", "bias", "missed", "false alarm", "largest"),
    ),
    "balanced-winnow": (
        *_of(
            "balanced_winnow.py",
            ("forget the doubling", "2.0 * initial", "initial"),
            ("all start at 1", "2.0 * initial * sinh", "2.0 * sinh"),
            ("the other sign of weights", "sinh(max", "-sinh(max"),
            ("forget eta", "eta * theta", "theta"),
            ("an even weight", "sinh(max(-EXPONENT_LIMIT", "sinh(max(0"),
            ("Euclidean lengths", ", length=largest", ""),
        ),
        *_linear("sign", "bias", "fold bias", "missed", "false alarm", "rows", "overwrite"),
    ),
    "littlestone-winnow": (
        *_of(
            "littlestone_winnow.py",
            (
                "zero is division",
                '-inf if settings.demotion == "zero"',
                '-1.0 if settings.demotion == "zero"',
            ),
            ("divide twice", "else -1.0\n", "else -2.0\n"),
            ("division is zero", '== "zero" else -1.0', '== "zero" else -inf'),
            ("products, not powers", "alpha**theta", "alpha * theta"),
            (
                "the root of alpha",
                "alpha, demoted = settings.alpha",
                "alpha, demoted = settings.alpha ** 0.5",
            ),
            ("forget the threshold", "else settings.threshold or 0.0", "else 0.0"),
            ("zero is not for good", "            return 0.0\n", "            return 1.0\n"),
            ("promote twice", "return 1.0 if positive", "return 2.0 if positive"),
            ("demote what was missed", "1.0 if positive else demoted", "demoted if positive else 1.0"),
        ),
        *_linear("unseen", "tie", "threshold"),
    ),
    "elimination": _of(
        _ELIMINATION,
        (
            "deny what is not denied",
            "self._holds(x) != self._literals.denied",
            "self._holds(x) == self._literals.denied",
        ),
        ("the first hypothesis is true", "return False  # both", "return True  # both"),
        ("the first needs one variable", "len(active) == len(self._variables)", "len(active) >= 1"),
        ("the first takes everything", "return not active", "return True"),
        ("one literal too many", "< self._always", "<= self._always"),
        ("one literal may fail", "< self._always", "< self._always - 1"),
        ("forget negations", "0.0 in counts", "-1.0 in counts"),
        ("update when right", "and not holds\n", "and holds\n"),
        (
            "update on false alarms",
            "(positive != self._literals.denied) and not",
            "(positive == self._literals.denied) and not",
        ),
        (
            "learn from the wrong class",
            "if positive == self._literals.denied",
            "if positive != self._literals.denied",
        ),
        ("count an update twice", '(("n", 1.0),), 1.0)', '(("n", 1.0),), 2.0)'),
        (
            "keep what was true once",
            "sum(count == updates for count in self._counts",
            "sum(count >= 1 for count in self._counts",
        ),
    ),
    "con": (
        *_of(
            "con.py",
            ("the last concept", "int(np.argmax(left))", "len(left) - 1 - int(np.argmax(left[::-1]))"),
            ("forget the ranking", "order if seed is None else", "order if True else"),
            ("the denial of the concept", "return 1.0 if self.values", "return -1.0 if self.values"),
            ("positive when none is left", "            return 0.0\n", "            return 1.0\n"),
            (
                "filter on mistakes only",
                "return float(self.shrinks(x, positive)), self",
                "return float((self.score(x) > 0.0) != positive), self",
            ),
        ),
        *_of(
            _SPACE,
            (
                "updates where nothing goes",
                "& (self.values(x) != positive)",
                "& (self.values(x) == positive)",
            ),
            (
                "keep what disagrees",
                "packbits(self.values(x) == positive)",
                "packbits(self.values(x) != positive)",
            ),
            (
                "unite, not intersect",
                "self._whole = self._whole & agreeing",
                "self._whole = self._whole | agreeing",
            ),
            (
                "forget partitions",
                "            self._whole = self._whole & row\n",
                "            self._whole = row\n",
            ),
        ),
        *_of(
            "concepts.py",
            ("conjunctions of what fails", "((true & ~active) == 0)", "((true & active) == 0)"),
            ("thresholds not reached", "active.bit_count() >= steps", "active.bit_count() > steps"),
            ("most special first", "mask.bit_count(), mask)", "-mask.bit_count(), mask)"),
        ),
    ),
    "halving": (
        *_of(
            "halving.py",
            ("count one side twice", "left & ~values", "left & values"),
            ("add both sides", ") - np.count_nonzero", ") + np.count_nonzero"),
            (
                "ties are positive when deciding",
                "predicted = self.score(x) > 0.0",
                "predicted = self.score(x) >= 0.0",
            ),
            ("update on every label", "predicted != positive and", "True and"),
            ("update when right", "predicted != positive and", "predicted == positive and"),
            (
                "update where nothing is left",
                " and self.shrinks(x, positive)), predicted",
                "), predicted",
            ),
        ),
        *_of(
            _SPACE,
            (
                "keep what disagrees",
                "packbits(self.values(x) == positive)",
                "packbits(self.values(x) != positive)",
            ),
            (
                "unite, not intersect",
                "self._whole = self._whole & agreeing",
                "self._whole = self._whole | agreeing",
            ),
            (
                "forget partitions",
                "            self._whole = self._whole & row\n",
                "            self._whole = row\n",
            ),
            ("ties are positive when predicting", "return score > 0.0", "return score >= 0.0"),
            ("absent variables count", "if value != 0.0:", "if True:"),
        ),
        *_of("concepts.py", ("forget negations", "((false & active) == 0)", "((false & ~active) == 0)")),
    ),
}

_WORDS = {
    "perceptron of many classes": "multiclass or classes or class or Class",
    "perceptron": "perceptron or proof or linear or scikit or textbook",
    "one-sided-perceptron": "one and sided",
}
"""Which tests of test_bounds.py are about a kind; without an entry, those that have its first word."""

_CHOSEN = {
    "learners/test_textbook.py": "({words}) or not textbook_does",
    "learners/test_figures.py": "published or trace or known",
}


def tests_of(kind: str) -> Sequence[Selected]:
    """The tests that are about a kind, in the order in which they run."""
    words = _WORDS.get(kind, kind.partition("-")[0])
    return [Selected(f"core/{file}", _CHOSEN.get(file, "{words}").format(words=words)) for file in TESTS]
