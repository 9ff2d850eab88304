"""The processes of Spark: what they need, keep and leave behind, and how calls are interrupted.

interruption.py  calls of the JVM that a signal handler can interrupt
requirements.py  what must be installed for Spark: packages of Python, and a Java runtime that
                 it accepts
temporary.py     temporary directories and logs of killed processes, which the next process
                 removes
workers.py       Python workers of Spark, in which the data source runs: what they keep between
                 tasks
"""
