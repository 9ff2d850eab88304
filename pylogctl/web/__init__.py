"""`pylogctl web`: a JSON API and pages over a cluster.

api.py        the JSON API below `/api/v1`: its handlers that read, in its table of routes
app.py        the application: its table of routes, served behind the guard
changes.py    the handlers of the API that change the cluster, in their table of routes
command.py    `pylogctl web`: serve a JSON API and pages over a cluster
document.py   the document that `pylogctl web` writes once it serves
documents.py  the JSON documents of the API, most of them made from the records of
              `broker.admin`
events.py     server-sent events: messages as they come, and figures of the cluster
messages.py   pages of messages: the next ones, or those before, of one partition or of several
openapi.py    the description of the API, OpenAPI 3.1, made from the table of routes
options.py    the options of `pylogctl web`
problems.py   errors as problem documents (RFC 9457)
registry.py   the paths of Confluent's schema registry, so that its serializers and tools work
              with brokers
run.py        runs `pylogctl web`: listens, connects to the cluster, and serves until a signal
sampler.py    looks at the cluster each few seconds, and keeps for an hour what pages draw and
              show live
security.py   guards the application: who may ask, from where, for how much; and headers for
              browsers
server.py     runs the application on uvicorn, with limits for clients that are slow
site.py       what all requests share: the client of the cluster, threads for its calls, and
              what is allowed
"""
