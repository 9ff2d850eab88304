"""`pylogctl perf`: how fast a cluster takes messages, and how fast it gives them back.

Puts the commands together. Those that go as fast as they can stand in `perf_loads`, latency at a
fixed rate in `perf_latency`, what is done with saved runs in `perf_saved`.
"""

from __future__ import annotations

from pylogctl.commands import perf_latency, perf_loads, perf_saved
from pylogctl.tree import Command, new_app

app = new_app("Measure throughput and latency.")

app.command("produce", cls=Command)(perf_loads.produce)
app.command("consume", cls=Command)(perf_loads.consume)
app.command("simple", cls=Command)(perf_loads.simple)
app.command("e2e", cls=Command)(perf_latency.e2e)
app.command("compare", cls=Command)(perf_saved.compare)
app.command("report", cls=Command)(perf_saved.report)
