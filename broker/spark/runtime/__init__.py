"""The processes of Spark: what they need, keep and leave behind, and how calls are interrupted."""
