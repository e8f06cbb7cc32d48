"""The voted perceptron counts the votes on an example once, and its label asks for them again."""

from hypothesis import given
from hypothesis import strategies as st

from mistakebound.core.learners.voted_perceptron import VotedPerceptron
from mistakebound.core.messages.features import Features
from mistakebound.settings import LearnerSettings
from tests.core.learners.test_linear_learners import reals, vectors

acts = st.lists(
    st.tuples(
        st.sampled_from(["ask", "ask again", "learn", "begin", "roll back"]), vectors(reals), st.booleans()
    ),
    max_size=40,
)


@given(acts, st.integers(1, 4))
def test_a_score_that_is_asked_for_again_is_that_of_a_fresh_learner(
    todo: list[tuple[str, Features, bool]], budget: int
) -> None:
    """To the bit, whatever was learned, or taken back, or asked meanwhile."""
    settings = LearnerSettings(kind="voted-perceptron", budget=budget)
    one, clock, since = VotedPerceptron(settings, 1), 0, 0
    asked: Features = (("a", 1.0),)
    one.begin()
    for act, x, positive in todo:
        match act:
            case "ask":
                asked = x
            case "learn":
                clock += 1
                one.fold(0, x, positive, clock, None)
            case "begin":
                one.begin()
                since = clock
            case "roll back":
                one.rollback()
                one.begin()
                clock = since
            case _:
                clock += 1
        fresh = VotedPerceptron(settings, 1)
        fresh.load(one.dump())
        assert one.score(asked, clock) == fresh.score(asked, clock)
