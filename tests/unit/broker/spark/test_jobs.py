from __future__ import annotations

from broker.errors import QueryError
from broker.spark.jobs import cause_of


def test_cause_when_rows_do_not_fit_a_table_then_the_query_is_at_fault() -> None:
    failure = Exception(
        "An error occurred while calling o1.append.\n"
        ": org.apache.spark.sql.AnalysisException: [INCOMPATIBLE_DATA_FOR_TABLE.EXTRA_COLUMNS] "
        "Cannot write incompatible data for the table `t`: Cannot write extra columns `other`. "
        "SQLSTATE: KD000"
    )

    cause = cause_of(failure)

    assert isinstance(cause, QueryError)
    assert "extra columns `other`" in str(cause)
