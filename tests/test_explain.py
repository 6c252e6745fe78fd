import pytest
import typer
from typer.testing import CliRunner

from ranklake.cli.explain import explain
from ranklake.errors import ConfigError

app = typer.Typer()
app.command()(explain)


def explained(*arguments: str) -> str:
    """What explain prints on a wide terminal. Raises what the command raises."""
    result = CliRunner().invoke(app, arguments, env={"COLUMNS": "200", "NO_COLOR": "1"})
    if result.exception:
        raise result.exception
    return result.output


def meanings(output: str) -> dict[str, str]:
    """The printed lines by what each of them says."""
    lines = [line.strip().split("  ", 1) for line in output.splitlines()]
    return {line[0]: line[1].strip() for line in lines if len(line) == 2}


def test_a_metric_is_explained_in_words() -> None:
    told = meanings(explained("recall"))
    assert {what: told[what] for what in list(told)[:10]} == {
        "name": "recall, R",
        "column": "recall_at_k; without a cut-off recall",
        "title": "Recall at k",
        "formula": "h / |G|",
        "null when": "the query has no relevant item",
        "order": "score descending, unscored last; equal scores as rules.tie_break says: item_id"
        " descending",
        "mean over": "queries with a relevant item; also published over all queries",
        "reads as": "of a query's relevant items, on average x are in the top k",
        "range": "0 to 1",
        "source": "Manning, Raghavan, Schütze, Introduction to Information Retrieval (2008), ch. 8",
    }


def test_an_alias_explains_its_metric() -> None:
    assert explained("MAP") == explained("ap")


def test_a_ratio_of_sums_is_no_mean() -> None:
    assert meanings(explained("recall_micro"))["mean over"] == (
        "nothing: it is a ratio of sums, over all relevant items"
    )


def test_what_has_no_upper_bound_says_so() -> None:
    assert meanings(explained("dcg"))["range"] == "0 or more"


def test_without_a_name_every_metric_has_a_line() -> None:
    lines = meanings(explained())
    assert lines["recall"].split() == ["R", "Recall", "at", "k", "h", "/", "|G|"]
    assert {"name", "recall", "precision", "ndcg", "ctr", "precision_micro"} <= {*lines}


def test_an_unknown_name_is_an_error_with_the_near_miss() -> None:
    with pytest.raises(ConfigError, match=r"unknown metric 'recal', .* did you mean 'recall'"):
        explained("recal")


def test_a_measure_is_explained_with_its_options() -> None:
    told = meanings(explained("nDCG(gain=exp2)@10"))
    assert told["name"] == "ndcg(gain=exp2)@10"
    assert told["column"] == "ndcg_gain_exp2_at_10"
    assert told["reads as"].startswith("the order of the top 10 reaches")
    assert told["gain"].split()[:2] == ["exp2", "linear"]
    assert told["ideal"].split()[:2] == ["judged", "judged"]


def test_what_a_measure_costs_is_said() -> None:
    assert "every query's order" in meanings(explained("Judged@10"))["needs"]
    assert "equal scores" in meanings(explained("recall(tie_break=expected)@10"))["needs"]


@pytest.mark.parametrize("text", ["ndcg(gain=exp3)@10", "auc@3", "ndcg(gian=exp2)"])
def test_a_wrong_option_or_cut_off_is_an_error(text: str) -> None:
    with pytest.raises(ConfigError, match=r"expected|known are|no cut-off"):
        explained(text)


def test_ties_are_explained_where_they_count() -> None:
    told = meanings(explained("recall(tie_break=expected)@5"))
    assert told["order"].endswith("equal scores: the mean over all their orders")
    assert meanings(explained("auc"))["order"].endswith("equal scores count as such")
    assert meanings(explained("auc"))["column"] == "auc"
