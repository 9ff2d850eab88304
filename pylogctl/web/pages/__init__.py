"""The pages for browsers, made from templates over the operations that the API has too.

charts.py         charts as SVG, drawn without script: what they show is also in a table behind
                  a disclosure
messages_view.py  the message browser: pages of messages in both directions, and single messages
payloads.py       payloads of messages as a page shows them: text, a JSON tree, or hex, whatever
                  bytes they are
rendering.py      templates and assets: what handlers need to return a page
views.py          the pages for browsers: their handlers, in a table of routes
"""
